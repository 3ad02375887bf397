//! One change: everything that a store applies in one transaction, or not at all (I5).

use serde::{Deserialize, Serialize};

use super::{Capture, Payment, Surplus};
use crate::attempt::Attempt;
use crate::clock::Timestamp;
use crate::event::Event;
use crate::id::{InboxId, PaymentId};
use crate::outcome::Source;
use crate::refund::Refund;
use crate::secret::sha256;

/// An entry of a payment's timeline. Each holds the hash of the one before, so that a removed or altered entry shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Which one of the payment, from 1.
    pub n: u64,
    /// When.
    pub at: Timestamp,
    /// `created`, `sending`, `observed`, `refund_created` …
    pub kind: String,
    /// Who told us, where it is an observation.
    pub source: Option<Source>,
    /// The particulars. Holds no secret and no body.
    pub detail: serde_json::Value,
    /// The hash of the entry before.
    #[serde(with = "hex::serde")]
    pub prev: [u8; 32],
    /// The hash of this one.
    #[serde(with = "hex::serde")]
    pub hash: [u8; 32],
}

impl AuditEntry {
    /// The entry that follows `prev`.
    pub fn following(
        payment: &PaymentId,
        prev: [u8; 32],
        n: u64,
        at: Timestamp,
        kind: &str,
        source: Option<Source>,
        detail: serde_json::Value,
    ) -> Self {
        let mut entry = Self { n, at, kind: kind.to_owned(), source, detail, prev, hash: [0; 32] };
        entry.hash = entry.expected_hash(payment);
        entry
    }

    /// The hash that this entry must have.
    pub fn expected_hash(&self, payment: &PaymentId) -> [u8; 32] {
        let source = self.source.map(|source| serde_json::json!(source)).unwrap_or_default();
        let text = serde_json::json!([payment, self.n, self.at, self.kind, source, self.detail, hex::encode(self.prev)]).to_string();
        sha256(text.as_bytes())
    }
}

/// What becomes of the inbox row that a change settles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxMark {
    /// Which row.
    pub id: InboxId,
    /// What it was found to be about.
    pub note: Option<String>,
}

/// Everything that changes together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The version that was loaded; `None` inserts the payment.
    pub seen: Option<u64>,
    /// The payment as it is to be, with its new version and all its children.
    pub payment: Payment,
    /// Children that are new or differ from what was loaded.
    pub attempts: Vec<Attempt>,
    /// See `attempts`.
    pub captures: Vec<Capture>,
    /// See `attempts`.
    pub refunds: Vec<Refund>,
    /// New surpluses.
    pub surpluses: Vec<Surplus>,
    /// What the merchant will be told.
    pub events: Vec<Event>,
    /// New timeline entries.
    pub audit: Vec<AuditEntry>,
    /// The inbox row that this settles.
    pub inbox: Option<InboxMark>,
}
