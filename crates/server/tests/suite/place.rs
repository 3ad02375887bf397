//! A service with its sandbox and its database file, for one test.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use payonce_server::config::{Config, Environment, Options};
use payonce_server::{App, Running};
use serde_json::{Value, json};

use crate::client::{Client, Reply};

/// The key of the tenant `default`.
pub(crate) const KEY: &str = "pk_test_first";
/// The key of the tenant `second`.
pub(crate) const KEY_2: &str = "pk_test_second";
/// Pays at once.
pub(crate) const CODE_PAYS: &str = "2876000000000000001234";
/// Is declined for want of money, which the channel would still take.
pub(crate) const CODE_NO_BALANCE: &str = "2800020000000000001234";
/// Is declined for good: the code is not valid, and no trade is left.
pub(crate) const CODE_INVALID: &str = "2800030000000000001234";
/// Waits for the buyer's password.
pub(crate) const CODE_ASKS: &str = "2800010000000000001234";

/// What has been made for a test.
pub(crate) struct Place {
    pub(crate) running: Option<Running>,
    pub(crate) base: String,
    pub(crate) sandbox: String,
    pub(crate) client: Client,
    pub(crate) dir: Dir,
    n: AtomicUsize,
}

/// A folder that goes with the test.
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new() -> Self {
        static N: AtomicUsize = AtomicUsize::new(0);
        let path = std::env::temp_dir().join(format!("payonce-server-{}-{}", std::process::id(), N.fetch_add(1, Ordering::SeqCst)));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn database(&self) -> String {
        format!("sqlite://{}", self.path("payonce.db").display())
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Starts a service on a database, with more variables.
pub(crate) async fn serve(database: String, more: &[(&str, &str)]) -> Running {
    let fixed = [("PAYONCE_SANDBOX_API_KEY", KEY), ("PAYONCE_SANDBOX_API_KEY_2", KEY_2)];
    let environment = Environment::of(fixed.iter().chain(more).copied());
    let options = Options { listen: Some("127.0.0.1:0".to_owned()), database: Some(database), sandbox: true, ..Options::default() };
    let config = Config::load(&options, &environment).expect("a configuration");
    if std::env::var_os("PAYONCE_TEST_LOG").is_some() {
        payonce_server::observe::init_logs(&config.log);
    }
    App::build(config).await.expect("built").serve().await.expect("served")
}

impl Place {
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    pub(crate) async fn with(more: &[(&str, &str)]) -> Self {
        let dir = Dir::new();
        let running = serve(dir.database(), more).await;
        let base = format!("http://{}", running.addr);
        let sandbox = running.sandbox_url.clone().expect("a sandbox");
        Self { running: Some(running), base, sandbox, client: Client::new(), dir, n: AtomicUsize::new(0) }
    }

    /// A fresh key.
    pub(crate) fn key(&self) -> String {
        format!("k-{}", self.n.fetch_add(1, Ordering::SeqCst))
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.get_as(KEY, path).await
    }

    pub(crate) async fn get_as(&self, api_key: &str, path: &str) -> Reply {
        let bearer = format!("Bearer {api_key}");
        self.client.send(Method::GET, &format!("{}{path}", self.base), &[("authorization", &bearer)], "").await
    }

    pub(crate) async fn post(&self, path: &str, key: &str, body: &Value) -> Reply {
        self.post_as(KEY, path, key, body.to_string()).await
    }

    pub(crate) async fn post_raw(&self, path: &str, key: &str, body: impl Into<bytes::Bytes>) -> Reply {
        self.post_as(KEY, path, key, body).await
    }

    pub(crate) async fn post_as(&self, api_key: &str, path: &str, key: &str, body: impl Into<bytes::Bytes>) -> Reply {
        let bearer = format!("Bearer {api_key}");
        let headers = [("authorization", bearer.as_str()), ("idempotency-key", key), ("content-type", "application/json")];
        self.client.send(Method::POST, &format!("{}{path}", self.base), &headers, body).await
    }

    /// A control call of the sandbox.
    pub(crate) async fn control(&self, path: &str, body: Value) -> Value {
        let url = format!("{}/_sandbox/{path}", self.sandbox);
        let reply = self.client.send(Method::POST, &url, &[("content-type", "application/json")], body.to_string()).await;
        assert!(reply.status < 300, "{path} {body}: {}", reply.text());
        reply.json()
    }

    pub(crate) async fn fault(&self, operation: &str, fault: &str, times: u32, delay_ms: Option<u64>) {
        self.control(
            "faults",
            json!({ "channel": "alipay", "operation": operation, "fault": fault, "times": times, "delay_ms": delay_ms }),
        )
        .await;
    }

    /// What the buyer does with the payment's newest attempt.
    pub(crate) async fn buyer(&self, payment: &Value, action: &str) -> Value {
        self.control("buyer", json!({ "channel": "alipay", "channel_ref": channel_ref(payment), "action": action })).await
    }

    pub(crate) async fn notify(&self, payment: &Value, mode: &str) -> Value {
        self.control("notifications", json!({ "channel": "alipay", "channel_ref": channel_ref(payment), "mode": mode })).await
    }

    /// The true ledger of the channel.
    pub(crate) async fn ledger(&self) -> Vec<Value> {
        let reply = self.client.send(Method::GET, &format!("{}/_sandbox/ledger?channel=alipay", self.sandbox), &[], "").await.expect(200);
        reply.json().as_array().expect("a list").clone()
    }

    /// How much of a kind the channel has really executed: times and sum.
    pub(crate) async fn executed(&self, kind: &str) -> (u64, i64) {
        let rows = self.ledger().await;
        let of_kind = rows.iter().filter(|row| row["kind"] == kind && row["executed"].as_u64() > Some(0));
        of_kind.fold((0, 0), |(times, sum), row| {
            let executed = row["executed"].as_u64().expect("a number");
            (times + executed, sum + row["amount"].as_i64().unwrap_or(0) * i64::try_from(executed).expect("few"))
        })
    }

    pub(crate) async fn requests(&self) -> Vec<Value> {
        let reply = self.client.send(Method::GET, &format!("{}/_sandbox/requests?channel=alipay", self.sandbox), &[], "").await.expect(200);
        reply.json().as_array().expect("a list").clone()
    }

    /// Returns once the channel has got so many requests.
    pub(crate) async fn until_requests(&self, at_least: usize) {
        for _ in 0..400 {
            if self.requests().await.len() >= at_least {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("the channel did not get {at_least} requests");
    }

    pub(crate) async fn payment(&self, id: &Value) -> Value {
        self.get(&format!("/v1/payments/{}", id.as_str().expect("an id"))).await.expect(200).json()
    }

    /// The payment once it is as it should be.
    pub(crate) async fn until(&self, id: &Value, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        for _ in 0..400 {
            last = self.payment(id).await;
            if fits(&last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{what} did not come about: {last:#}");
    }

    pub(crate) async fn until_status(&self, id: &Value, status: &str) -> Value {
        self.until(id, status, |payment| payment["status"] == status).await
    }

    /// The events of the feed, once there are so many.
    pub(crate) async fn events(&self, at_least: usize) -> Vec<Value> {
        for _ in 0..400 {
            let page = self.get("/v1/events?limit=100").await.expect(200).json();
            let events = page["data"].as_array().expect("a list").clone();
            if events.len() >= at_least {
                return events;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("there are no {at_least} events");
    }

    pub(crate) async fn event_types(&self, at_least: usize) -> Vec<String> {
        self.events(at_least).await.iter().map(|event| event["type"].as_str().expect("a type").to_owned()).collect()
    }

    /// A payment that its buyer has paid with a code.
    pub(crate) async fn paid(&self, order: &str, amount: i64) -> Value {
        self.post("/v1/payments", &self.key(), &barcode(order, amount, CODE_PAYS)).await.expect(201).json()
    }

    pub(crate) async fn stop(mut self) {
        assert!(self.running.take().expect("running").shutdown().await, "everything ended");
    }
}

pub(crate) fn channel_ref(payment: &Value) -> String {
    payment["attempt"]["channel_ref"].as_str().expect("a reference").to_owned()
}

/// An order that is paid by the code that the buyer shows.
pub(crate) fn barcode(order: &str, amount: i64, code: &str) -> Value {
    json!({ "order_id": order, "amount": amount, "currency": "CNY", "channel": "alipay", "method": "barcode", "channel_options": { "auth_code": code } })
}

/// An order that is paid by scanning our code.
pub(crate) fn qr(order: &str, amount: i64) -> Value {
    json!({ "order_id": order, "amount": amount, "currency": "CNY", "channel": "alipay", "method": "qr" })
}
