//! What the merchant is told, once: an outbox row of the same transaction that moved the payment.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::{EventId, PaymentId, TenantId};

/// What happened, by its public name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EventKind {
    /// The money is there.
    #[serde(rename = "payment.paid")]
    Paid,
    /// The money is reserved.
    #[serde(rename = "payment.authorized")]
    Authorized,
    /// Ended without money.
    #[serde(rename = "payment.closed")]
    Closed,
    /// Declined.
    #[serde(rename = "payment.failed")]
    Failed,
    /// A person has to look.
    #[serde(rename = "payment.review")]
    Review,
    /// Late or second money.
    #[serde(rename = "payment.surplus")]
    Surplus,
    /// A refund went through.
    #[serde(rename = "refund.succeeded")]
    RefundSucceeded,
    /// A refund failed for good.
    #[serde(rename = "refund.failed")]
    RefundFailed,
}

impl EventKind {
    /// The public name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Paid => "payment.paid",
            Self::Authorized => "payment.authorized",
            Self::Closed => "payment.closed",
            Self::Failed => "payment.failed",
            Self::Review => "payment.review",
            Self::Surplus => "payment.surplus",
            Self::RefundSucceeded => "refund.succeeded",
            Self::RefundFailed => "refund.failed",
        }
    }
}

/// An outbox row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The merchant's dedupe key.
    pub id: EventId,
    /// Whose.
    pub tenant: TenantId,
    /// Of which payment.
    pub payment_id: PaymentId,
    /// The payment's version that it belongs to; with `n` the order within the payment.
    pub version: u64,
    /// Which one of that version, from 0.
    pub n: u32,
    /// What happened.
    pub kind: EventKind,
    /// When.
    pub created_at: Timestamp,
    /// The payment (or refund) as it was then, in the API's form, without the buyer's action.
    pub data: serde_json::Value,
}
