//! One try on one channel: its states, the exact content that is sent, and who is sending it.

pub mod transition;

use serde::{Deserialize, Serialize};

use crate::channel::{AccountName, ChannelName};
use crate::channel_ref::ChannelRef;
use crate::clock::Timestamp;
use crate::failure::Failure;
use crate::id::AttemptId;
use crate::money::Money;
use crate::secret::Sealed;

/// What an attempt is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptStatus {
    /// Stored; perhaps sent; no answer known.
    Prepared,
    /// The channel has it, and it can be paid.
    Pending,
    /// It was sent, and nobody knows what became of it.
    Unknown,
    /// The money is reserved.
    Authorized,
    /// The money is taken.
    Succeeded,
    /// Refused; nothing at the channel can still be paid.
    Declined,
    /// Ended unpaid; nothing at the channel can still be paid.
    Closed,
}

impl AttemptStatus {
    /// Every status, in the order of the grid.
    pub const ALL: [Self; 7] =
        [Self::Prepared, Self::Pending, Self::Unknown, Self::Authorized, Self::Succeeded, Self::Declined, Self::Closed];

    /// Whether an attempt in this status may still take money (I1), unless it was released.
    pub const fn is_live(self) -> bool {
        match self {
            Self::Prepared | Self::Pending | Self::Unknown | Self::Authorized => true,
            Self::Succeeded | Self::Declined | Self::Closed => false,
        }
    }

    /// The public name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::Pending => "pending",
            Self::Unknown => "unknown",
            Self::Authorized => "authorized",
            Self::Succeeded => "succeeded",
            Self::Declined => "declined",
            Self::Closed => "closed",
        }
    }
}

/// Who is sending, since when, and until when a byte may still be written (I3). Stored before sending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendLease {
    /// The process and task that sends.
    pub sender: String,
    /// When the first send of this content began: the key window counts from here.
    pub first_sent_at: Timestamp,
    /// No byte is written after this.
    pub send_until: Timestamp,
    /// How many sends there were.
    pub sends: u32,
    /// How many of them have had no answer that says what became of the order: they may still be under way.
    #[serde(default)]
    pub unanswered: u32,
    /// The channel asked to be left alone until then (`Retry-After`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
}

impl SendLease {
    /// Whether a further send may begin: nobody is sending, and the channel has not asked to wait.
    pub fn is_free(&self, now: Timestamp) -> bool {
        self.send_until <= now && self.not_before.is_none_or(|wait| wait <= now)
    }

    /// The request of `sender` has ended, with an answer that is definite or not. Only its own lease is given back: a late answer to an earlier
    /// sender says nothing of a request that somebody else is sending by now (I3). What the channel asks for counts whoever was asked.
    pub fn ended(&mut self, sender: &str, now: Timestamp, not_before: Option<Timestamp>, definite: bool) {
        if self.sender == sender {
            self.send_until = self.send_until.min(now);
        }
        self.not_before = self.not_before.max(not_before);
        if definite {
            self.unanswered = self.unanswered.saturating_sub(1);
        }
    }
}

/// One try on one channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Ours.
    pub id: AttemptId,
    /// Which one of the payment, from 1.
    pub n: u32,
    /// On which channel.
    pub channel: ChannelName,
    /// With which credentials.
    pub account: AccountName,
    /// How: `page`, `qr`, `barcode` …, the channel's own list.
    pub method: String,
    /// The number that the channel knows it by.
    pub channel_ref: ChannelRef,
    /// How much.
    pub amount: Money,
    /// Whether the money is first reserved and captured later.
    pub manual_capture: bool,
    /// What it is in.
    pub status: AttemptStatus,
    /// Released by an audited `force_surplus`: no longer counts as live, and money that comes is surplus.
    #[serde(default)]
    pub released: bool,
    /// The channel's own transaction id.
    pub channel_txn: Option<String>,
    /// Why it failed, or why the last try at the channel did.
    pub failure: Option<Failure>,
    /// The exact content that is sent, sealed (I2).
    pub content: Sealed,
    /// What the buyer has to do, sealed.
    pub action: Option<Sealed>,
    /// Who sends.
    pub send: Option<SendLease>,
    /// The idempotency key that made it, so that this key resumes to its own answer.
    pub made_by: String,
    /// When it was stored.
    pub created_at: Timestamp,
    /// After this the channel takes no money for it.
    pub expires_at: Timestamp,
    /// How many look-ups there were.
    #[serde(default)]
    pub looks: u32,
    /// When it is looked at next.
    pub due_at: Option<Timestamp>,
}

impl Attempt {
    /// Whether it may still take money and nobody has released it (I1).
    pub const fn is_live(&self) -> bool {
        self.status.is_live() && !self.released
    }

    /// Whether a byte of it may have left this machine.
    pub const fn was_sent(&self) -> bool {
        self.send.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_unix(1_000);

    fn lease(sender: &str) -> SendLease {
        let send_until = Timestamp(NOW.0 + 20_000);
        SendLease { sender: sender.to_owned(), first_sent_at: NOW, send_until, sends: 2, unanswered: 2, not_before: None }
    }

    #[test]
    fn only_the_sender_gives_its_lease_back() {
        let mut own = lease("b");
        own.ended("b", NOW, None, true);
        assert_eq!((own.is_free(NOW), own.unanswered), (true, 1));
        // A zombie's late answer: the second sender is still sending, and one request less is under way.
        let mut taken = lease("b");
        taken.ended("a", NOW, None, true);
        assert_eq!((taken.is_free(NOW), taken.send_until, taken.unanswered), (false, lease("b").send_until, 1));
        taken.ended("b", NOW, None, false);
        assert_eq!((taken.is_free(NOW), taken.unanswered), (true, 1), "no definite answer: it may still be under way");
    }

    #[test]
    fn a_wait_that_the_channel_asked_for_is_not_shortened() {
        let wait = Timestamp(NOW.0 + 5_000);
        let mut asked = lease("a");
        asked.ended("a", NOW, Some(wait), false);
        asked.ended("z", NOW, None, true);
        assert!(!asked.is_free(Timestamp(wait.0 - 1)) && asked.is_free(wait));
    }
}
