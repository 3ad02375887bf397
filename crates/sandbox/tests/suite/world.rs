//! A running sandbox and a small client of it. The client signs and verifies on its own.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair;
use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use payonce_core::clock::{Fixed, Timestamp};
use payonce_sandbox::{Options, Running, Sandbox};
use serde_json::{Value, json};

/// 2026-12-01 21:45:36 in Beijing.
pub(crate) const START: Timestamp = Timestamp::from_unix(1_796_132_736);

/// No answer came.
#[derive(Debug)]
pub(crate) struct NoAnswer;

/// Status, headers by name, body.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Raw {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

pub(crate) struct World {
    pub(crate) running: Running,
    pub(crate) base: String,
    client: Client<HttpConnector, Full<Bytes>>,
    pub(crate) account: Account,
}

/// One of the merchants.
#[derive(Clone)]
pub(crate) struct Account {
    pub(crate) app_id: String,
    key: Arc<KeyPair>,
    pub(crate) channel_key: Vec<u8>,
}

impl Account {
    pub(crate) fn read(shown: &Value) -> Self {
        let text = |pointer: &str| shown.pointer(pointer).and_then(Value::as_str).expect(pointer).to_owned();
        Self {
            app_id: text("/settings/app_id"),
            key: Arc::new(KeyPair::from_pkcs8(&der(&text("/keys/merchant_private_key"))).expect("key")),
            channel_key: der(&text("/keys/channel_public_key")),
        }
    }

    /// The complete form, signed.
    pub(crate) fn form(&self, params: &[(String, Vec<u8>)]) -> String {
        let mut sorted: Vec<_> = params.iter().filter(|(_, value)| !value.is_empty()).collect();
        sorted.sort();
        let text = sorted.iter().map(|(name, value)| [name.as_bytes(), b"=", value].concat()).collect::<Vec<_>>().join(&b'&');
        let mut signature = vec![0; self.key.public_modulus_len()];
        self.key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), &text, &mut signature).expect("signature");
        let mut pairs: Vec<String> = params.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        pairs.push(format!("sign={}", escaped(STANDARD.encode(signature).as_bytes())));
        pairs.join("&")
    }
}

pub(crate) fn der(pem: &str) -> Vec<u8> {
    STANDARD.decode(pem.lines().filter(|line| !line.starts_with('-')).collect::<String>()).expect("PEM")
}

pub(crate) fn escaped(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("%{byte:02X}")).collect()
}

pub(crate) fn verifies(key_der: &[u8], text: &[u8], signature: &str) -> bool {
    let Ok(signature) = STANDARD.decode(signature) else { return false };
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key_der).verify(text, &signature).is_ok()
}

/// The node of an answer and whether its signature is right over the node's bytes as they came.
pub(crate) fn read_answer(body: &[u8], key_der: &[u8]) -> (Value, bool) {
    let outer: Value = serde_json::from_slice(body).unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(body)));
    let (name, node) = outer.as_object().expect("object").iter().find(|(name, _)| *name != "sign").expect("a node");
    let from = 2 + name.len() + 2;
    let mut stream = serde_json::Deserializer::from_slice(&body[from..]).into_iter::<Value>();
    stream.next().expect("a value").expect("JSON");
    let raw = &body[from..from + stream.byte_offset()];
    let good = outer["sign"].as_str().is_some_and(|signature| verifies(key_der, raw, signature));
    (node.clone(), good)
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        let mut options =
            Options { listen: "127.0.0.1:0".parse().expect("address"), clock: Arc::new(Fixed::new(START, 1)), ..Options::default() };
        change(&mut options);
        let running = Sandbox::start(options).await.expect("start");
        let base = running.base_url().to_owned();
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http();
        let shown = serde_json::to_value(running.accounts()).expect("JSON");
        let account = Account::read(&shown[0]);
        Self { running, base, client, account }
    }

    pub(crate) fn second(&self) -> Account {
        Account::read(&serde_json::to_value(self.running.accounts()).expect("JSON")[1])
    }

    pub(crate) async fn http(&self, method: &str, path: &str, content_type: &str, body: impl Into<Bytes>) -> Result<Raw, NoAnswer> {
        let url = if path.starts_with('/') { format!("{}{path}", self.base) } else { path.to_owned() };
        let request = Request::builder().method(method).uri(url).header("content-type", content_type);
        let request = request.body(Full::new(body.into())).expect("request");
        let answer = self.client.request(request).await.map_err(|_| NoAnswer)?;
        let (head, body) = answer.into_parts();
        let body = body.collect().await.map_err(|_| NoAnswer)?.to_bytes().to_vec();
        Ok(Raw { status: head.status.as_u16(), headers: head.headers, body })
    }

    pub(crate) async fn get(&self, path: &str) -> Raw {
        self.http("GET", path, "text/plain", "").await.expect("an answer")
    }

    /// A control call that must succeed.
    pub(crate) async fn control(&self, path: &str, body: Value) -> Value {
        let raw = self.http("POST", &format!("/_sandbox/{path}"), "application/json", body.to_string()).await.expect("an answer");
        assert!(raw.status < 300, "{path} {body}: {} {}", raw.status, raw.text());
        raw.json()
    }

    pub(crate) async fn fault(&self, operation: &str, fault: &str) {
        self.control("faults", json!({ "channel": "alipay", "operation": operation, "fault": fault, "delay_ms": 300 })).await;
    }

    pub(crate) async fn buyer(&self, reference: &str, action: &str) -> Value {
        self.control("buyer", json!({ "channel": "alipay", "channel_ref": reference, "action": action })).await
    }

    pub(crate) async fn mode(&self, reference: Option<&str>, mode: &str) -> Value {
        self.control("notifications", json!({ "channel": "alipay", "channel_ref": reference, "mode": mode })).await
    }

    pub(crate) async fn advance(&self, seconds: u64) -> Value {
        self.control("clock", json!({ "advance_s": seconds })).await
    }

    /// Public parameters and content, unsigned.
    pub(crate) fn params(&self, account: &Account, method: &str, biz: &Value) -> Vec<(String, Vec<u8>)> {
        [
            ("app_id", account.app_id.as_str()),
            ("method", method),
            ("charset", "utf-8"),
            ("sign_type", "RSA2"),
            ("timestamp", "2026-12-01 21:45:36"),
            ("version", "1.0"),
            ("biz_content", &biz.to_string()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()))
        .collect()
    }

    pub(crate) async fn post_form(&self, form: String) -> Result<Raw, NoAnswer> {
        self.http("POST", "/alipay/gateway.do", "application/x-www-form-urlencoded;charset=utf-8", form).await
    }

    /// A gateway call without any judgement on its answer.
    pub(crate) async fn try_call(&self, method: &str, biz: Value, notify_url: Option<&str>) -> Result<Raw, NoAnswer> {
        let mut params = self.params(&self.account, method, &biz);
        if let Some(url) = notify_url {
            params.push(("notify_url".to_owned(), url.as_bytes().to_vec()));
        }
        self.post_form(self.account.form(&params)).await
    }

    /// A gateway call; its answer must be signed rightly.
    pub(crate) async fn call(&self, method: &str, biz: Value) -> Value {
        self.call_from(&self.account.clone(), method, biz).await
    }

    pub(crate) async fn call_from(&self, account: &Account, method: &str, biz: Value) -> Value {
        let raw = self.post_form(account.form(&self.params(account, method, &biz))).await.expect("an answer");
        assert_eq!(raw.status, 200);
        let (node, good) = read_answer(&raw.body, &account.channel_key);
        assert!(good, "{}", raw.text());
        node
    }

    /// Offers an order by QR code; the answer is the code's address.
    pub(crate) async fn precreate(&self, number: &str, notify_url: Option<&str>) -> String {
        let raw = self.try_call("alipay.trade.precreate", order(number), notify_url).await.expect("an answer");
        let node = read_answer(&raw.body, &self.account.channel_key).0;
        assert_eq!(node["code"], "10000", "{node}");
        node["qr_code"].as_str().expect("a code").to_owned()
    }

    /// An order that is paid.
    pub(crate) async fn paid(&self, number: &str, notify_url: Option<&str>) {
        self.precreate(number, notify_url).await;
        self.buyer(number, "pay").await;
    }

    pub(crate) async fn ledger(&self, reference: &str) -> Vec<Value> {
        self.get(&format!("/_sandbox/ledger?channel=alipay&channel_ref={reference}")).await.json().as_array().expect("a list").clone()
    }

    /// How often that was executed, how many requests named it, and its amount.
    pub(crate) async fn booked(&self, reference: &str, kind: &str) -> (u64, u64, Option<i64>) {
        let rows = self.ledger(reference).await;
        let row = rows.iter().find(|row| row["kind"] == kind && row["channel_ref"] == reference);
        row.map_or((0, 0, None), |row| {
            (row["executed"].as_u64().expect("executed"), row["requests"].as_u64().expect("requests"), row["amount"].as_i64())
        })
    }
}

/// An order of 88.80 yuan.
pub(crate) fn order(number: &str) -> Value {
    json!({ "out_trade_no": number, "total_amount": "88.80", "subject": "手机壳📱 \"50% off\" {}" })
}

pub(crate) fn barcode(number: &str, auth_code: &str) -> Value {
    json!({ "out_trade_no": number, "total_amount": "88.80", "subject": "可乐", "scene": "bar_code", "auth_code": auth_code })
}

/// Waits for something that happens on another task; the limit is generous because it is only reached by a defect.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what).await.expect("in time")
}
