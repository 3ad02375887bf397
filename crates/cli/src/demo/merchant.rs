//! The merchant's side of the demo: receives callbacks on loopback, checks every signature, and remembers what it was told.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use payonce_core::secret::{Secret, equal_in_constant_time};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::exit::Fault;

/// One event, however often it was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) order_id: String,
    pub(super) kind: String,
    pub(super) deliveries: u32,
}

#[derive(Debug, Default)]
struct Memory {
    /// By `webhook-id`: the merchant's dedupe key.
    events: BTreeMap<String, Told>,
    unsigned: u32,
}

#[derive(Clone)]
struct Desk {
    memory: Arc<Mutex<Memory>>,
    secret: Secret,
}

/// The receiver.
pub(super) struct Merchant {
    addr: SocketAddr,
    memory: Arc<Mutex<Memory>>,
    task: JoinHandle<()>,
}

impl Merchant {
    /// Listens on a free port.
    pub(super) async fn start(secret: Secret) -> Result<Self, Fault> {
        let fault = |why: std::io::Error| Fault::new(format!("the merchant's receiver does not start: {why}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(fault)?;
        let addr = listener.local_addr().map_err(fault)?;
        let memory = Arc::new(Mutex::new(Memory::default()));
        let router = Router::new().route("/callbacks", post(receive)).with_state(Desk { memory: memory.clone(), secret });
        let task = tokio::spawn(async move {
            // It ends with the demo.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { addr, memory, task })
    }

    /// `host:port`, for the list of allowed hosts.
    pub(super) fn host(&self) -> String {
        self.addr.to_string()
    }

    /// The address for `notify_url`.
    pub(super) fn url(&self) -> String {
        format!("http://{}/callbacks", self.addr)
    }

    /// What was told about orders whose number begins with `prefix`.
    pub(super) fn told(&self, prefix: &str) -> Vec<Told> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.events.values().filter(|told| told.order_id.starts_with(prefix)).cloned().collect()
    }

    /// Deliveries whose signature was not right.
    pub(super) fn unsigned(&self) -> u32 {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).unsigned
    }
}

impl Drop for Merchant {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn receive(State(desk): State<Desk>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let id = header("webhook-id");
    let at: i64 = header("webhook-timestamp").parse().unwrap_or_default();
    let expected = payonce_flows::merchant::sign(&desk.secret, id, at, &body).unwrap_or_default();
    let genuine = header("webhook-signature").split(' ').any(|given| equal_in_constant_time(given.as_bytes(), expected.as_bytes()));
    let mut memory = desk.memory.lock().unwrap_or_else(PoisonError::into_inner);
    if !genuine {
        memory.unsigned += 1;
        return StatusCode::UNAUTHORIZED;
    }
    let event: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let told = Told { order_id: text("/data/payment/order_id"), kind: text("/type"), deliveries: 0 };
    memory.events.entry(id.to_owned()).or_insert(told).deliveries += 1;
    StatusCode::NO_CONTENT
}
