//! Money back: a refund that we send, or one that we only observe.

pub mod transition;

use serde::{Deserialize, Serialize};

use crate::attempt::SendLease;
use crate::channel::{AccountName, ChannelName};
use crate::channel_ref::ChannelRef;
use crate::clock::Timestamp;
use crate::failure::Failure;
use crate::id::{AttemptId, MerchantRef, RefundId, SurplusId};
use crate::money::Money;
use crate::secret::Sealed;

/// What a refund is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefundStatus {
    /// Reserved; to be sent, sent, or accepted by the channel.
    Pending,
    /// It was sent, and nobody knows what became of it.
    Unknown,
    /// The money went back.
    Succeeded,
    /// It did not, and never will under this reference.
    Failed,
}

impl RefundStatus {
    /// Every status, in the order of the grid.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Unknown, Self::Succeeded, Self::Failed];

    /// The public name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Unknown => "unknown",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
        }
    }

    /// Whether the channel still has to be asked.
    pub const fn is_open(self) -> bool {
        match self {
            Self::Pending | Self::Unknown => true,
            Self::Succeeded | Self::Failed => false,
        }
    }
}

/// Who began it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// We send it; its amount is reserved first (I7).
    Ours,
    /// Seen at the channel: a console, a dispute. Always booked.
    Observed,
}

/// Which money goes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefundOf {
    /// The payment's own.
    Payment,
    /// Money beside the payment (I9). It never counts against the payment.
    Surplus(SurplusId),
}

/// Money back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refund {
    /// Ours.
    pub id: RefundId,
    /// Which one of the payment, from 1.
    pub n: u32,
    /// The merchant's own number; none for observed and surplus refunds.
    pub refund_id: Option<MerchantRef>,
    /// Who began it.
    pub origin: Origin,
    /// Which money goes back.
    pub of: RefundOf,
    /// Through which attempt the money came.
    pub attempt_id: AttemptId,
    /// On which channel.
    pub channel: ChannelName,
    /// With which credentials.
    pub account: AccountName,
    /// The number that the channel knows the refund by.
    pub channel_ref: ChannelRef,
    /// How much.
    pub amount: Money,
    /// The merchant's reason.
    pub reason: Option<String>,
    /// What it is in.
    pub status: RefundStatus,
    /// Whether the channel has said that it has it and is working on it. A pending refund without that is still on its way there.
    #[serde(default)]
    pub accepted: bool,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// The channel's id of the refund.
    pub channel_refund_id: Option<String>,
    /// The exact content that is sent, sealed (I2). None until it is prepared, and for observed refunds.
    pub content: Option<Sealed>,
    /// Who sends.
    pub send: Option<SendLease>,
    /// The idempotency key that made it.
    pub made_by: String,
    /// When it was stored.
    pub created_at: Timestamp,
    /// When it last moved.
    pub updated_at: Timestamp,
    /// How many look-ups there were.
    #[serde(default)]
    pub looks: u32,
    /// When it is looked at next.
    pub due_at: Option<Timestamp>,
}
