//! Runs an operation over a transport: the only place where the two meet.

use std::time::Duration;

use crate::contract::{Call, FromFault};
use crate::transport::{Deadlines, SendFault, Transport};

/// What a call came to, and when the channel asked to be left alone until.
#[derive(Debug)]
pub struct Ran<T> {
    /// The outcome.
    pub outcome: T,
    /// `Retry-After`, where the channel gave one: at most an hour.
    pub retry_after: Option<Duration>,
    /// The HTTP status, if there was a reply.
    pub status: Option<u16>,
}

const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);

/// Sends the call once and reads its reply. A fault of the network becomes an outcome that says whether a byte may have left.
pub async fn run<T: FromFault>(transport: &dyn Transport, call: Call<T>, deadlines: Deadlines) -> Ran<T> {
    match transport.send(call.request, deadlines).await {
        Ok(reply) => {
            let seconds = reply.header("retry-after").and_then(|text| text.trim().parse::<u64>().ok());
            let retry_after = seconds.map(|s| Duration::from_secs(s).min(RETRY_AFTER_MAX));
            Ran { outcome: (call.read)(&reply), retry_after, status: Some(reply.status) }
        }
        Err(SendFault::NotSent(why)) => Ran { outcome: T::not_sent(why), retry_after: None, status: None },
        Err(SendFault::Lost(why)) => Ran { outcome: T::lost(why), retry_after: None, status: None },
    }
}
