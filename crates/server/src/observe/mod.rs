//! What the service tells about itself: logs, metrics, and a line per request. Never a body, never a secret (I12).

pub(crate) mod access;
mod logs;
pub(crate) mod meter;

pub use logs::init_logs;

use payonce::{Ending, Reply};
use payonce_core::id::{PaymentId, TenantId};

/// Notes on the request's span whose it is.
pub(crate) fn tenant_is(tenant: &TenantId) {
    tracing::Span::current().record("tenant", tenant.as_str());
}

/// Notes on the request's span which payment it is about.
pub(crate) fn payment_is(payment: &PaymentId) {
    tracing::Span::current().record("payment", payment.as_str());
}

/// Counts what the guard answered.
pub(crate) fn guard_replied(reply: &Reply) {
    let kind = match reply {
        Reply::Fresh(_) => "fresh",
        Reply::Replayed(_) => "replayed",
        Reply::Refused(refusal) => refusal.code(),
    };
    metrics::counter!("payonce_guard_replies_total", "kind" => kind).increment(1);
}

/// Counts what became of a key.
pub(crate) fn run_ended(ending: &Ending) {
    let fate = match ending {
        Ending::Keep(_) => "kept",
        Ending::Release(_) => "released",
        Ending::Park(_) => "parked",
        Ending::Broken => "broken",
    };
    metrics::counter!("payonce_guard_endings_total", "fate" => fate).increment(1);
}

/// Counts a delivery of a channel.
pub(crate) fn notification(channel: &str, result: &'static str) {
    metrics::counter!("payonce_notifications_total", "channel" => channel.to_owned(), "result" => result).increment(1);
}

/// Counts what a worker did.
pub(crate) fn worked(worker: &'static str, result: &'static str, rows: usize) {
    if rows > 0 {
        metrics::counter!("payonce_worker_rows_total", "worker" => worker, "result" => result).increment(rows as u64);
    }
}

/// Counts a worker's round that failed.
pub(crate) fn worker_failed(worker: &'static str) {
    metrics::counter!("payonce_worker_failures_total", "worker" => worker).increment(1);
}
