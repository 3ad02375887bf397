//! The one way out: deadlines, connection reuse, no redirects, bounded bodies, and faults that say whether a byte may have left.

mod gate;
pub mod http;
mod pool;
mod target;

use async_trait::async_trait;
use tokio::time::Instant;

/// A request, byte for byte.
#[derive(Clone, PartialEq, Eq)]
pub struct WireRequest {
    /// `POST`.
    pub method: &'static str,
    /// Absolute.
    pub url: String,
    /// In order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl WireRequest {
    /// The address without its query, fit for logs.
    pub fn url_without_query(&self) -> &str {
        self.url.split('?').next().unwrap_or_default()
    }
}

impl std::fmt::Debug for WireRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} [{} bytes]", self.method, self.url_without_query(), self.body.len())
    }
}

/// A reply, byte for byte.
#[derive(Clone, PartialEq, Eq)]
pub struct WireReply {
    /// HTTP status.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body, whole.
    pub body: Vec<u8>,
}

impl std::fmt::Debug for WireReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} [{} bytes]", self.status, self.body.len())
    }
}

impl WireReply {
    /// The first value of a header, if it is text. `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).and_then(|(_, v)| std::str::from_utf8(v).ok())
    }
}

/// Until when. By the monotonic clock of this process, taken before the send lease was stored, so that it ends before the lease does (I3).
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// No byte of the request is written after this.
    pub write_by: Instant,
    /// No answer is waited for after this.
    pub answer_by: Instant,
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendFault {
    /// Not one byte of the request left this machine: it may be sent again at once.
    #[error("not sent: {0}")]
    NotSent(String),
    /// Bytes may have left: the channel may have acted.
    #[error("no answer: {0}")]
    Lost(String),
}

/// Sends one request once. It never retries, never follows a redirect, and gives up at the deadlines.
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// Sends.
    async fn send(&self, request: WireRequest, deadlines: Deadlines) -> Result<WireReply, SendFault>;
}
