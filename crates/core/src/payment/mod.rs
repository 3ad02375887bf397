//! The aggregate for one order: the payment with its attempts, captures, refunds and surpluses.
//!
//! It is loaded whole, changed by the pure functions of this module, and applied whole as one [`change::Change`] guarded by the version
//! that was loaded (I5).

pub mod change;
pub mod draft;
pub mod observe;
pub mod refunds;
pub mod view;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::attempt::{Attempt, AttemptStatus};
use crate::channel::{AccountName, ChannelName};
use crate::channel_ref::ChannelRef;
use crate::clock::Timestamp;
use crate::id::{AttemptId, CaptureId, MerchantRef, PaymentId, RefundId, SurplusId, TenantId};
use crate::money::{Currency, Money};
use crate::refund::{Origin, Refund, RefundOf, RefundStatus};

/// What a payment is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaymentStatus {
    /// An attempt may still take money.
    Pending,
    /// The money is reserved.
    Authorized,
    /// The money is there.
    Paid,
    /// Ended without money.
    Closed,
    /// Declined.
    Failed,
    /// A person has to look.
    Review,
}

impl PaymentStatus {
    /// Every status.
    pub const ALL: [Self; 6] = [Self::Pending, Self::Authorized, Self::Paid, Self::Closed, Self::Failed, Self::Review];

    /// The public name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Authorized => "authorized",
            Self::Paid => "paid",
            Self::Closed => "closed",
            Self::Failed => "failed",
            Self::Review => "review",
        }
    }

    /// Parses the public name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// Why a person has to look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// `amount_mismatch`, `currency_mismatch`, `refund_overlap`, `refund_contradicted`, `unresolved`, `unexpected_outcome`.
    pub code: String,
    /// For people, with both values where two disagree.
    pub detail: String,
}

/// One capture of an authorised attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// Ours.
    pub id: CaptureId,
    /// The merchant's own number; none for the only capture.
    pub capture_id: Option<MerchantRef>,
    /// Of which attempt.
    pub attempt_id: AttemptId,
    /// The key that the channel knows it by.
    pub channel_ref: ChannelRef,
    /// How much.
    pub amount: Money,
    /// Pending, unknown, succeeded or failed, as for a refund.
    pub status: RefundStatus,
    /// When it was stored.
    pub created_at: Timestamp,
}

/// Money beside the payment: paid after close, or a second time (I9). Unique by account and channel transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surplus {
    /// Ours.
    pub id: SurplusId,
    /// On which attempt it came.
    pub attempt_id: AttemptId,
    /// With which credentials.
    pub account: AccountName,
    /// The channel's transaction.
    pub channel_txn: String,
    /// How much.
    pub amount: Money,
    /// When we learned of it.
    pub at: Timestamp,
}

/// What happens with a surplus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SurplusPolicy {
    /// It goes back, once.
    #[default]
    Refund,
    /// It waits for a person.
    Hold,
}

/// The aggregate for one order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payment {
    /// Whose.
    pub tenant: TenantId,
    /// Ours.
    pub id: PaymentId,
    /// The merchant's own number, unique per tenant.
    pub order_id: MerchantRef,
    /// Goes up by one with each change; 1 when first stored.
    pub version: u64,
    /// What it is in. Follows from the attempts and from `review`; kept here because it is searched for.
    pub status: PaymentStatus,
    /// Why a person has to look, if so.
    pub review: Option<Review>,
    /// How much the order is over.
    pub amount: Money,
    /// For people.
    pub description: Option<String>,
    /// Where the channel sends the buyer back to.
    pub return_url: Option<String>,
    /// Where the merchant is told.
    pub notify_url: Option<String>,
    /// The merchant's own.
    pub metadata: BTreeMap<String, String>,
    /// In the order in which they were made; the last is the newest.
    #[serde(skip)]
    pub attempts: Vec<Attempt>,
    /// Captures of authorised attempts.
    #[serde(skip)]
    pub captures: Vec<Capture>,
    /// In the order in which they were made.
    #[serde(skip)]
    pub refunds: Vec<Refund>,
    /// Money beside the payment.
    #[serde(skip)]
    pub surpluses: Vec<Surplus>,
    /// A switch to another attempt is under way, until then at the most: that the old attempt ends meanwhile is no end of the payment.
    #[serde(default)]
    pub switching_until: Option<Timestamp>,
    /// How many timeline entries there are.
    pub audit_len: u64,
    /// The hash of the last timeline entry; zeros before the first.
    pub audit_head: [u8; 32],
    /// When it was stored.
    pub created_at: Timestamp,
    /// When it last moved.
    pub updated_at: Timestamp,
}

impl Payment {
    /// The attempt that was made last.
    pub fn newest(&self) -> Option<&Attempt> {
        self.attempts.last()
    }

    /// The attempt that may still take money, if there is one (I1: at most one).
    pub fn live(&self) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| attempt.is_live())
    }

    /// The attempt by its id.
    pub fn attempt(&self, id: &AttemptId) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| &attempt.id == id)
    }

    /// The attempt by its reference at an account.
    pub fn attempt_by_ref(&self, account: &AccountName, channel_ref: &str) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| &attempt.account == account && attempt.channel_ref.as_str() == channel_ref)
    }

    /// The refund by its id.
    pub fn refund(&self, id: &RefundId) -> Option<&Refund> {
        self.refunds.iter().find(|refund| &refund.id == id)
    }

    /// The refund by the merchant's own number.
    pub fn refund_by_merchant(&self, id: &MerchantRef) -> Option<&Refund> {
        self.refunds.iter().find(|refund| refund.refund_id.as_ref() == Some(id))
    }

    /// The attempt whose money counts for the order.
    pub fn paid_attempt(&self) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| attempt.status == AttemptStatus::Succeeded)
    }

    /// The payment's currency.
    pub const fn currency(&self) -> Currency {
        self.amount.currency
    }

    /// What was taken for the order, surpluses apart.
    pub fn captured(&self) -> Money {
        let minor = self.paid_attempt().map_or(0, |attempt| attempt.amount.minor);
        Money::new(minor, self.currency())
    }

    /// What went back of it: succeeded refunds, ours and observed.
    pub fn refunded(&self) -> Money {
        self.refund_sum(|refund| refund.status == RefundStatus::Succeeded)
    }

    /// What may still be refunded: captured less all that went back or is reserved to (I7).
    pub fn refundable(&self) -> Money {
        let reserved = self.refund_sum(|refund| refund.status != RefundStatus::Failed);
        Money::new(self.captured().minor.saturating_sub(reserved.minor).max(0), self.currency())
    }

    /// Whether what went back, or is reserved to, is more than what was taken: of the payment, or of a surplus.
    pub fn is_over_refunded(&self) -> bool {
        let of_payment = self.refund_sum(|refund| refund.status != RefundStatus::Failed).minor > self.captured().minor;
        of_payment || self.surpluses.iter().any(|surplus| self.sum_of(&RefundOf::Surplus(surplus.id.clone())) > surplus.amount.minor)
    }

    fn sum_of(&self, of: &RefundOf) -> i64 {
        let counts = |refund: &&Refund| refund.of == *of && refund.status != RefundStatus::Failed;
        self.refunds.iter().filter(counts).fold(0i64, |sum, refund| sum.saturating_add(refund.amount.minor))
    }

    fn refund_sum(&self, counts: impl Fn(&Refund) -> bool) -> Money {
        let minor = self
            .refunds
            .iter()
            .filter(|refund| refund.of == RefundOf::Payment && counts(refund))
            .fold(0i64, |sum, refund| sum.saturating_add(refund.amount.minor));
        Money::new(minor, self.currency())
    }

    /// Refunds that we send and that are not at their end.
    pub fn open_refunds(&self) -> impl Iterator<Item = &Refund> {
        self.refunds.iter().filter(|refund| refund.origin == Origin::Ours && refund.status.is_open())
    }

    /// When something of it has to be looked at next.
    pub fn due_at(&self) -> Option<Timestamp> {
        let attempts = self.attempts.iter().filter_map(|attempt| attempt.due_at);
        let refunds = self.refunds.iter().filter_map(|refund| refund.due_at);
        attempts.chain(refunds).chain(self.switching_until).min()
    }

    /// The status that follows from the attempts and the review.
    pub fn rolled_up(&self) -> PaymentStatus {
        if self.review.is_some() {
            return PaymentStatus::Review;
        }
        if self.paid_attempt().is_some() {
            return PaymentStatus::Paid;
        }
        if let Some(live) = self.live() {
            return match live.status {
                AttemptStatus::Authorized => PaymentStatus::Authorized,
                AttemptStatus::Prepared
                | AttemptStatus::Pending
                | AttemptStatus::Unknown
                | AttemptStatus::Succeeded
                | AttemptStatus::Declined
                | AttemptStatus::Closed => PaymentStatus::Pending,
            };
        }
        if self.switching_until.is_some() {
            return PaymentStatus::Pending;
        }
        match self.newest().map(|attempt| attempt.status) {
            Some(AttemptStatus::Declined) => PaymentStatus::Failed,
            Some(AttemptStatus::Closed) => PaymentStatus::Closed,
            // Only released attempts are left, or none was made yet.
            Some(
                AttemptStatus::Prepared
                | AttemptStatus::Pending
                | AttemptStatus::Unknown
                | AttemptStatus::Authorized
                | AttemptStatus::Succeeded,
            )
            | None => PaymentStatus::Pending,
        }
    }

    /// Which channel and account the newest attempt names.
    pub fn route(&self) -> Option<(&ChannelName, &AccountName, &str)> {
        self.newest().map(|attempt| (&attempt.channel, &attempt.account, attempt.method.as_str()))
    }
}
