//! A merchant that listens for callbacks, and checks their signature by a reader of its own.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::any;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use tokio::sync::watch;

/// A callback as it came.
#[derive(Clone, Debug)]
pub(crate) struct Callback {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Callback {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// Checks the signature as the Standard Webhooks scheme says.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let header = |name: &str| self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let key = BASE64.decode(secret.strip_prefix("whsec_").expect("a secret")).expect("Base64");
        let mut signed = format!("{}.{}.", header("webhook-id"), header("webhook-timestamp")).into_bytes();
        signed.extend_from_slice(&self.body);
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &key);
        header("webhook-signature")
            .split(' ')
            .filter_map(|one| BASE64.decode(one.strip_prefix("v1,")?).ok())
            .any(|tag| aws_lc_rs::hmac::verify(&key, &signed, &tag).is_ok())
    }
}

/// A merchant's server.
pub(crate) struct Shop {
    pub(crate) addr: SocketAddr,
    got: Arc<Mutex<Vec<Callback>>>,
    count: watch::Receiver<usize>,
    task: tokio::task::JoinHandle<()>,
}

type Kept = (Arc<Mutex<Vec<Callback>>>, watch::Sender<usize>, Arc<Mutex<Vec<u16>>>);

impl Shop {
    /// Answers with these statuses in turn, then with 200.
    pub(crate) async fn open(statuses: &[u16]) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let addr = listener.local_addr().expect("an address");
        let got = Arc::new(Mutex::new(Vec::new()));
        let (counts, count) = watch::channel(0);
        let mut statuses = statuses.to_vec();
        statuses.reverse();
        let kept: Kept = (Arc::clone(&got), counts, Arc::new(Mutex::new(statuses)));
        let router = Router::new().fallback(any(take)).with_state(Arc::new(kept));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("served") });
        Self { addr, got, count, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook?shop=1", self.addr)
    }

    pub(crate) fn got(&self) -> Vec<Callback> {
        self.got.lock().expect("unpoisoned").clone()
    }

    pub(crate) async fn until(&self, at_least: usize) -> Vec<Callback> {
        let wait = self.count.clone();
        let mut wait = wait;
        let waited = tokio::time::timeout(std::time::Duration::from_secs(20), wait.wait_for(|count| *count >= at_least)).await;
        waited.expect("callbacks in time").expect("a shop");
        self.got()
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn take(State(kept): State<Arc<Kept>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let (got, counts, statuses) = kept.as_ref();
    let status = statuses.lock().expect("unpoisoned").pop().unwrap_or(200);
    got.lock().expect("unpoisoned").push(Callback { headers, body });
    counts.send_modify(|count| *count += 1);
    StatusCode::from_u16(status).expect("a status")
}
