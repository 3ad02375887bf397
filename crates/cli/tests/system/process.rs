//! Processes of the product, as an operator starts them, and what a merchant and a tester do with them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use payonce_testkit::ports::wait_until;
use serde_json::{Value, json};

use crate::http::{self, Answer};

/// The merchant's API key in all of these tests.
pub(crate) const KEY: &str = "sk_test_0123456789abcdef0123456789abcdef";
/// Scaled down together; their order is the one of the defaults.
pub(crate) const LEASE_S: u64 = 3;

static SERIAL: AtomicU32 = AtomicU32::new(0);

/// A folder that goes with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let serial = SERIAL.fetch_add(1, Ordering::SeqCst);
        let path = std::env::temp_dir().join(format!("payonce-system-{}-{serial}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running process of the product.
pub(crate) struct Process {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    pub(crate) addr: String,
}

impl Process {
    fn start(args: &[&str], env: &[(&str, String)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_payonce"));
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        for (name, value) in env {
            command.env(name, value);
        }
        let mut child = command.spawn().expect("the binary starts");
        let stderr = child.stderr.take().expect("stderr is piped");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                sink.lock().expect("no panic holds it").push(line);
            }
        });
        let mut process = Self { child, lines, addr: String::new() };
        process.addr = process.line_after("listening on http://");
        process
    }

    /// Waits for a line with this beginning; panics with all lines if the process ends first.
    fn line_after(&mut self, prefix: &str) -> String {
        let mut found = None;
        let lines = Arc::clone(&self.lines);
        let child = &mut self.child;
        let _ = wait_until(Duration::from_secs(30), || {
            found = lines
                .lock()
                .expect("no panic holds it")
                .iter()
                .find_map(|line| line.strip_prefix(prefix).map(|rest| rest.trim().to_owned()));
            found.is_some() || child.try_wait().is_ok_and(|ended| ended.is_some())
        });
        found.unwrap_or_else(|| panic!("no line {prefix:?} in:\n{}", self.log()))
    }

    pub(crate) fn log(&self) -> String {
        self.lines.lock().expect("no panic holds it").join("\n")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process ends within this time.
    pub(crate) fn ends_within(&mut self, within: Duration) -> bool {
        let child = &mut self.child;
        wait_until(within, || child.try_wait().is_ok_and(|ended| ended.is_some()))
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub(crate) fn signal(&self, name: &str) {
        let done = Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status().expect("kill runs");
        assert!(done.success(), "kill -{name}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A sandbox of its own, so that it outlives the servers.
pub(crate) struct Sandbox(Process);

impl Sandbox {
    pub(crate) fn start() -> Self {
        Self(Process::start(&["sandbox", "--listen", "127.0.0.1:0"], &[]))
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.0.addr)
    }

    pub(crate) fn control(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = http::send(&self.0.addr, method, path, &[("content-type", "application/json")], body.to_string().as_bytes())
            .expect("the sandbox answers");
        assert!(answer.status < 300, "{path}: {} {}", answer.status, String::from_utf8_lossy(&answer.body));
        if answer.body.is_empty() { Value::Null } else { answer.json() }
    }

    /// The next `times` calls of an operation go wrong like this.
    pub(crate) fn fault(&self, operation: &str, fault: &str, times: u32, delay_ms: u64) {
        let body = json!({ "channel": "alipay", "operation": operation, "fault": fault, "times": times, "delay_ms": delay_ms });
        self.control("POST", "/_sandbox/faults", &body);
    }

    pub(crate) fn clear_faults(&self) {
        self.control("DELETE", "/_sandbox/faults", &Value::Null);
    }

    /// How often money really moved in this way, over all references: (executed, requests).
    pub(crate) fn executed(&self, kind: &str) -> (u64, u64) {
        let rows = self.control("GET", "/_sandbox/ledger?channel=alipay", &Value::Null);
        let rows = rows.as_array().cloned().unwrap_or_default();
        let of_kind = rows.iter().filter(|row| row["kind"] == kind);
        of_kind.fold((0, 0), |(executed, requests), row| {
            (executed + row["executed"].as_u64().unwrap_or(0), requests + row["requests"].as_u64().unwrap_or(0))
        })
    }
}

/// Which store a test runs on.
pub(crate) enum Store {
    Sqlite(Folder),
    Postgres(String),
}

impl Store {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(Folder::new())
    }

    pub(crate) fn postgres() -> Self {
        Self::Postgres(payonce_testkit::postgres::Cluster::shared().fresh_database())
    }

    fn url(&self) -> String {
        match self {
            Self::Sqlite(folder) => format!("sqlite://{}", folder.path().join("payonce.db").display()),
            Self::Postgres(url) => url.clone(),
        }
    }
}

/// A merchant's installation: one store, one key file, any number of servers.
pub(crate) struct Installation {
    pub(crate) sandbox: Sandbox,
    store: Store,
    keys: Folder,
}

impl Installation {
    pub(crate) fn new(store: Store) -> Self {
        Self { sandbox: Sandbox::start(), store, keys: Folder::new() }
    }

    /// A server, with more environment.
    pub(crate) fn serve(&self, more: &[(&str, &str)]) -> Process {
        let mut env = vec![
            ("PAYONCE_SANDBOX_URL", self.sandbox.url()),
            ("PAYONCE_SANDBOX_API_KEY", KEY.to_owned()),
            ("PAYONCE_SECRETS_KEY_FILE", self.keys.path().join("keys").display().to_string()),
            ("PAYONCE_GUARD_LEASE", format!("{LEASE_S}s")),
            ("PAYONCE_CHANNEL_DEADLINE", "2s".to_owned()),
            ("PAYONCE_HTTP_ANSWER_DUE", "5s".to_owned()),
            ("PAYONCE_RECONCILE_FIRST_LOOK_UP", "300ms".to_owned()),
            ("PAYONCE_LOG", "info".to_owned()),
        ];
        env.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
        Process::start(&["serve", "--sandbox", "--listen", "127.0.0.1:0", "--database", &self.store.url()], &env)
    }
}

/// What a merchant sends.
pub(crate) fn post(server: &Process, key: &str, path: &str, body: &Value) -> std::io::Result<Answer> {
    let bearer = format!("Bearer {KEY}");
    let headers = [("authorization", bearer.as_str()), ("idempotency-key", key), ("content-type", "application/json")];
    http::send(&server.addr, "POST", path, &headers, body.to_string().as_bytes())
}

/// What a merchant reads.
pub(crate) fn get(server: &Process, path: &str) -> Value {
    let bearer = format!("Bearer {KEY}");
    let answer = http::send(&server.addr, "GET", path, &[("authorization", &bearer)], b"").expect("the server answers");
    assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
    answer.json()
}

/// A barcode payment: the money moves in the call itself.
pub(crate) fn order(id: &str, amount: i64) -> Value {
    json!({ "order_id": id, "amount": amount, "currency": "CNY", "channel": "alipay", "method": "barcode", "channel_options": { "auth_code": "280000000000000000" } })
}

/// Sends the same request under the same key until its answer is final; panics if that takes longer than `within`.
pub(crate) fn retry_until_final(server: &Process, key: &str, path: &str, body: &Value, within: Duration) -> Answer {
    let started = Instant::now();
    let mut last = None;
    let done = wait_until(within, || {
        let answer = post(server, key, path, body);
        let is_final = answer.as_ref().is_ok_and(|answer| matches!(answer.status, 200 | 201));
        if !is_final {
            std::thread::park_timeout(Duration::from_millis(250));
        }
        last = Some(answer);
        is_final
    });
    let shown = format!("{last:?}");
    assert!(done, "not final after {:?}: {shown}\n{}", started.elapsed(), server.log());
    last.and_then(Result::ok).expect("an answer")
}

/// Waits until the payment of an order is in this status.
pub(crate) fn wait_for_status(server: &Process, order_id: &str, status: &str, within: Duration) -> Value {
    let mut seen = Value::Null;
    let done = wait_until(within, || {
        let list = get(server, &format!("/v1/payments?order_id={order_id}"));
        seen = list["data"][0].clone();
        let is = seen["status"] == status;
        if !is {
            std::thread::park_timeout(Duration::from_millis(200));
        }
        is
    });
    assert!(done, "order {order_id} is not {status}: {seen}\n{}", server.log());
    seen
}

/// The events of the feed of one type.
pub(crate) fn events(server: &Process, kind: &str) -> usize {
    let feed = get(server, "/v1/events?limit=100");
    feed["data"].as_array().map_or(0, |rows| rows.iter().filter(|row| row["type"] == kind).count())
}
