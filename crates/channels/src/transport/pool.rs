//! Connections that wait for their next request. In: connections whose last request was answered whole. Out: the newest that still lives.
//! Never: one that idled longer than a channel keeps it, and never more than a bounded number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::gate::Gate;
use super::target::Origin;

/// A peer may close an idle connection while our request is on its way, and then nobody knows whether it was read. Short idling keeps
/// that rare.
const IDLE_MAX: Duration = Duration::from_secs(15);
const PER_ORIGIN_MAX: usize = 16;

/// A connection, and the gates that its writes pass.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) sender: SendRequest<Full<Bytes>>,
    pub(super) requests: Gate,
    pub(super) records: Option<Gate>,
    pub(super) driver: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Whatever ends a connection, nothing more is written on it.
        self.requests.shut();
        if let Some(records) = &self.records {
            records.shut();
        }
        self.driver.abort();
    }
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Instant,
}

/// The waiting connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    idle: Arc<Mutex<HashMap<Origin, Vec<Idle>>>>,
}

impl Pool {
    /// The newest living connection to `origin`.
    pub(super) fn take(&self, origin: &Origin) -> Option<Connection> {
        let mut idle = self.lock();
        Self::drop_stale(&mut idle);
        let waiting = idle.get_mut(origin)?;
        while let Some(Idle { connection, .. }) = waiting.pop() {
            if connection.sender.is_ready() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps `connection` for the next request.
    pub(super) fn put(&self, origin: Origin, connection: Connection) {
        let mut idle = self.lock();
        Self::drop_stale(&mut idle);
        let waiting = idle.entry(origin).or_default();
        if waiting.len() < PER_ORIGIN_MAX {
            waiting.push(Idle { connection, since: Instant::now() });
        }
    }

    fn drop_stale(idle: &mut HashMap<Origin, Vec<Idle>>) {
        let now = Instant::now();
        idle.retain(|_, waiting| {
            waiting.retain(|one| now.saturating_duration_since(one.since) < IDLE_MAX && !one.connection.sender.is_closed());
            !waiting.is_empty()
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Origin, Vec<Idle>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
