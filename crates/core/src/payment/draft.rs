//! A change in the making: the payment as it will be, the events and the timeline entries that go with it.
//!
//! [`Draft::finish`] works out what differs, rolls the status up, and gives the events their ids.

use serde_json::{Value, json};

use super::change::{AuditEntry, Change, InboxMark};
use super::{Payment, PaymentStatus, view};
use crate::clock::Timestamp;
use crate::event::{Event, EventKind};
use crate::id::{EventId, RefundId};
use crate::outcome::Source;
use crate::secret::sha256;

/// A change in the making.
#[derive(Clone, Debug)]
pub struct Draft {
    before: Option<Payment>,
    /// The payment as it will be.
    pub after: Payment,
    told: Vec<(EventKind, Option<RefundId>, Value)>,
    audit: Vec<AuditEntry>,
    now: Timestamp,
}

impl Draft {
    /// A change of a payment that was loaded.
    pub fn of(before: Payment, now: Timestamp) -> Self {
        Self { after: before.clone(), before: Some(before), told: Vec::new(), audit: Vec::new(), now }
    }

    /// A payment that is stored for the first time.
    pub const fn new(payment: Payment, now: Timestamp) -> Self {
        Self { after: payment, before: None, told: Vec::new(), audit: Vec::new(), now }
    }

    /// The moment of the change.
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// Adds a timeline entry.
    pub fn note(&mut self, kind: &str, source: Option<Source>, detail: Value) {
        let n = self.after.audit_len + 1;
        let entry = AuditEntry::following(&self.after.id, self.after.audit_head, n, self.now, kind, source, detail);
        self.after.audit_len = n;
        self.after.audit_head = entry.hash;
        self.audit.push(entry);
    }

    /// Tells the merchant, with more particulars beside the payment.
    pub fn tell(&mut self, kind: EventKind, refund: Option<&RefundId>, more: Value) {
        self.told.push((kind, refund.cloned(), more));
    }

    /// Whether nothing has been noted, told or moved.
    pub fn is_empty(&self) -> bool {
        self.told.is_empty() && self.audit.is_empty() && self.before.as_ref() == Some(&self.after)
    }

    /// The change: `None` where nothing differs and no inbox row is to be marked.
    pub fn finish(mut self, inbox: Option<InboxMark>) -> Option<Change> {
        if self.is_empty() && inbox.is_none() {
            return None;
        }
        let was = self.before.as_ref().map(|payment| payment.status);
        self.after.status = self.after.rolled_up();
        if was != Some(self.after.status) {
            self.note("status", None, json!({ "from": was, "to": self.after.status }));
            if let Some(kind) = status_event(self.after.status) {
                let more = self.after.review.as_ref().map_or(Value::Null, |review| json!({ "review": review }));
                // The word on the payment comes before what was told in the same change about its refunds and surpluses.
                self.told.insert(0, (kind, None, more));
            }
        }
        let had_money = self.before.as_ref().is_some_and(|payment| payment.paid_attempt().is_some());
        if !had_money && self.after.paid_attempt().is_some() {
            // Told when the money comes, also to a payment under review: tied to the status, the word would be lost when the review ends.
            self.told.insert(0, (EventKind::Paid, None, Value::Null));
        }
        self.after.version = self.before.as_ref().map_or(1, |payment| payment.version + 1);
        self.after.updated_at = self.now;
        let events = self.events();
        let before = self.before.as_ref();
        Some(Change {
            seen: before.map(|payment| payment.version),
            attempts: differing(&self.after.attempts, before.map(|p| p.attempts.as_slice())),
            captures: differing(&self.after.captures, before.map(|p| p.captures.as_slice())),
            refunds: differing(&self.after.refunds, before.map(|p| p.refunds.as_slice())),
            surpluses: differing(&self.after.surpluses, before.map(|p| p.surpluses.as_slice())),
            payment: self.after,
            events,
            audit: self.audit,
            inbox,
        })
    }

    fn events(&self) -> Vec<Event> {
        let payment = &self.after;
        let rows = self.told.iter().zip(0u32..);
        rows.map(|((kind, refund, more), n)| {
            // Derived, not drawn: the same change made twice tells the same event.
            let seed = format!("{}/{}/{n}", payment.id, payment.version);
            Event {
                id: EventId::derived(&sha256(seed.as_bytes())),
                tenant: payment.tenant.clone(),
                payment_id: payment.id.clone(),
                version: payment.version,
                n,
                kind: *kind,
                created_at: self.now,
                data: view::event_data(payment, refund.as_ref(), more),
            }
        })
        .collect()
    }
}

/// What the merchant is told when the status changes.
const fn status_event(is: PaymentStatus) -> Option<EventKind> {
    match is {
        // A new attempt after a decline, or a payment that was just stored, is no news.
        PaymentStatus::Pending => None,
        PaymentStatus::Authorized => Some(EventKind::Authorized),
        // Told when the money comes.
        PaymentStatus::Paid => None,
        PaymentStatus::Closed => Some(EventKind::Closed),
        PaymentStatus::Failed => Some(EventKind::Failed),
        PaymentStatus::Review => Some(EventKind::Review),
    }
}

/// The rows that are new or differ. Children are only ever added at the end or changed in place.
fn differing<T: Clone + PartialEq>(after: &[T], before: Option<&[T]>) -> Vec<T> {
    let before = before.unwrap_or_default();
    after.iter().enumerate().filter(|(i, row)| before.get(*i) != Some(row)).map(|(_, row)| row.clone()).collect()
}
