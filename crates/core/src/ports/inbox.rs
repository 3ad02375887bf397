//! Verified notifications, stored before they are acknowledged and settled once.

use std::time::Duration;

use async_trait::async_trait;

use super::StoreFault;
use crate::channel::{AccountName, ChannelName};
use crate::clock::Timestamp;
use crate::id::{InboxId, PaymentId, TenantId};
use crate::notification::{Notification, Verified};
use crate::secret::Sealed;

/// What an inbox row is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InboxStatus {
    /// Waits to be settled.
    Waiting,
    /// Settled: its effect, if it had one, is stored.
    Settled,
    /// Authentic, but matches no payment of ours yet; tried again for 24 h.
    Unmatched,
    /// Authentic, and not ours: another merchant's, or unmatched to the end.
    Foreign,
}

impl InboxStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Settled, Self::Unmatched, Self::Foreign];

    /// The public name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Settled => "settled",
            Self::Unmatched => "unmatched",
            Self::Foreign => "foreign",
        }
    }

    /// Parses the public name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// A stored notification. It is another type than [`Verified`]: it was verified when it came in, and only the store makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxRow {
    /// Ours.
    pub id: InboxId,
    /// Whose account it came to.
    pub tenant: TenantId,
    /// The channel.
    pub channel: ChannelName,
    /// The account.
    pub account: AccountName,
    /// The event.
    pub notification: Notification,
    /// What it is in.
    pub status: InboxStatus,
    /// The payment that it was settled into.
    pub payment_id: Option<PaymentId>,
    /// Why it is where it is.
    pub note: Option<String>,
    /// When it came in first.
    pub received_at: Timestamp,
    /// How often settling it was tried.
    pub tries: u32,
    /// The raw message, sealed.
    pub raw: Sealed,
}

/// What becomes of an inbox row that no payment's change settles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxVerdict {
    /// Waiting (to be tried again), settled (of no consequence), unmatched or foreign.
    pub status: InboxStatus,
    /// Why.
    pub note: String,
    /// When it is tried again, if it is.
    pub next_try_at: Option<Timestamp>,
}

/// Verified notifications.
#[async_trait]
pub trait Inbox: Send + Sync + 'static {
    /// Stores the events of a verified notification in one transaction; those whose identity the account knows are left as they are. `ids` are
    /// for the events in order. Returns the ids of the rows that are new.
    #[expect(clippy::too_many_arguments, reason = "each is one column of the rows; a struct of them would have this one use")]
    async fn receive(
        &self,
        tenant: &TenantId,
        channel: &ChannelName,
        account: &AccountName,
        verified: &Verified,
        raw: &Sealed,
        ids: &[InboxId],
        now: Timestamp,
    ) -> Result<Vec<InboxId>, StoreFault>;

    /// Takes at most `limit` rows whose time has come and that no node holds, oldest first, and holds them for `hold`.
    async fn take_waiting(&self, now: Timestamp, hold: Duration, limit: usize) -> Result<Vec<InboxRow>, StoreFault>;

    /// Ends or postpones a row that changes no payment. A settled row stays settled.
    async fn judge(&self, tenant: &TenantId, id: &InboxId, verdict: &InboxVerdict) -> Result<(), StoreFault>;

    /// One row.
    async fn inbox_row(&self, tenant: &TenantId, id: &InboxId) -> Result<Option<InboxRow>, StoreFault>;

    /// Rows of a tenant, newest first.
    async fn inbox_list(&self, tenant: &TenantId, status: Option<InboxStatus>, limit: usize) -> Result<Vec<InboxRow>, StoreFault>;

    /// Removes at most `limit` rows that are settled or foreign and came in before `before`. How many went.
    async fn sweep_inbox(&self, before: Timestamp, limit: usize) -> Result<usize, StoreFault>;
}
