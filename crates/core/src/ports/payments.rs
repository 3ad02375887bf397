//! Payments and all that belongs to them.

use std::time::Duration;

use async_trait::async_trait;

use super::StoreFault;
use crate::channel::{AccountName, ChannelName};
use crate::clock::Timestamp;
use crate::id::{MerchantRef, PaymentId, RefundId, TenantId};
use crate::payment::change::{AuditEntry, Change};
use crate::payment::{Payment, PaymentStatus};

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// All of it is stored.
    Done,
    /// Somebody else moved the payment first (or, for an insert, the id exists): load again and decide again. Nothing was written.
    Conflict,
    /// For an insert: the order exists under this payment. Nothing was written.
    OrderTaken(PaymentId),
    /// A unique row stands in the way: a second live attempt (I1), a refund number, a surplus that is booked elsewhere, an inbox row that
    /// was settled already. Names the rule. Nothing was written.
    Violates(Rule),
}

/// The unique rules that the database holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// At most one live attempt per payment (I1).
    OneLiveAttempt,
    /// A channel reference is used once per tenant and account.
    ChannelRef,
    /// A merchant's refund number is used once per payment.
    RefundId,
    /// A surplus is booked once per tenant, account and channel transaction (I9).
    SurplusTxn,
    /// An inbox row is settled once.
    InboxRow,
}

/// What is looked for in a list of payments. All given members must hold.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The merchant's own number.
    pub order_id: Option<MerchantRef>,
    /// The status.
    pub status: Option<PaymentStatus>,
    /// The channel of any attempt.
    pub channel: Option<ChannelName>,
    /// Payments older than this one (ids sort by age): the newest come first.
    pub after: Option<PaymentId>,
    /// At most so many, 1–100.
    pub limit: usize,
}

/// Payments and all that belongs to them.
#[async_trait]
pub trait Payments: Send + Sync + 'static {
    /// The whole aggregate, from one snapshot of the primary.
    async fn load(&self, tenant: &TenantId, id: &PaymentId) -> Result<Option<Payment>, StoreFault>;

    /// The aggregate of an order.
    async fn load_order(&self, tenant: &TenantId, order: &MerchantRef) -> Result<Option<Payment>, StoreFault>;

    /// Which payment an attempt's reference belongs to.
    async fn find_attempt(&self, tenant: &TenantId, account: &AccountName, channel_ref: &str) -> Result<Option<PaymentId>, StoreFault>;

    /// Which payment a refund belongs to.
    async fn find_refund(&self, tenant: &TenantId, id: &RefundId) -> Result<Option<PaymentId>, StoreFault>;

    /// Payments of a tenant, newest first.
    async fn list(&self, tenant: &TenantId, filter: &Filter) -> Result<Vec<Payment>, StoreFault>;

    /// Applies a change in one transaction, guarded by the version that was seen (I5).
    async fn apply(&self, change: &Change) -> Result<Applied, StoreFault>;

    /// Takes at most `limit` payments whose due time has come and that no node holds, and holds them for `hold`. Several nodes share the work.
    async fn take_due(&self, now: Timestamp, hold: Duration, limit: usize) -> Result<Vec<(TenantId, PaymentId)>, StoreFault>;

    /// Lets a held payment go, so that its next due time counts again.
    async fn let_go(&self, tenant: &TenantId, id: &PaymentId) -> Result<(), StoreFault>;

    /// The timeline, in order.
    async fn timeline(&self, tenant: &TenantId, id: &PaymentId) -> Result<Vec<AuditEntry>, StoreFault>;
}
