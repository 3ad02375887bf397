//! The list of stories, and what has to be counted at the end of each.

use super::act::Act;
use super::stories::{change, charge, notify, refund};
use crate::exit::Fault;

/// A failure that has charged buyers twice somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Story {
    LostRequest,
    LostAnswer,
    ErrorBefore,
    ErrorAfter,
    Crash,
    DoubleClick,
    TwoKeys,
    ChangedBody,
    RepeatedNotification,
    ForgedNotification,
    TamperedNotification,
    EarlyNotification,
    LostNotification,
    Switch,
    PaidAfterClose,
    PartialRefunds,
    RefundLostAnswer,
    RefundCrash,
}

/// What must have moved, and what the merchant must have been told, no more and no less.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// For people.
    pub(super) title: &'static str,
    /// For order numbers and `--json`.
    pub(super) slug: &'static str,
    /// Charges executed at the channel.
    pub(super) charges: u64,
    /// Refunds executed at the channel.
    pub(super) refunds: u64,
    /// Kinds of events, in any order.
    pub(super) events: &'static [&'static str],
}

const PAID: &[&str] = &["payment.paid"];

impl Story {
    pub(super) const ALL: [Self; 18] = [
        Self::LostRequest,
        Self::LostAnswer,
        Self::ErrorBefore,
        Self::ErrorAfter,
        Self::Crash,
        Self::DoubleClick,
        Self::TwoKeys,
        Self::ChangedBody,
        Self::RepeatedNotification,
        Self::ForgedNotification,
        Self::TamperedNotification,
        Self::EarlyNotification,
        Self::LostNotification,
        Self::Switch,
        Self::PaidAfterClose,
        Self::PartialRefunds,
        Self::RefundLostAnswer,
        Self::RefundCrash,
    ];

    pub(super) const fn expected(self) -> Expected {
        let (title, slug, charges, refunds, events): (_, _, _, _, &'static [&'static str]) = match self {
            Self::LostRequest => ("the request to the channel is lost", "lost-request", 1, 0, PAID),
            Self::LostAnswer => ("the channel's answer is lost", "lost-answer", 1, 0, PAID),
            Self::ErrorBefore => ("the channel fails before it acts", "error-before", 1, 0, PAID),
            Self::ErrorAfter => ("the channel fails after it acted", "error-after", 1, 0, PAID),
            Self::Crash => ("kill -9 in the middle of a payment", "crash", 1, 0, PAID),
            Self::DoubleClick => ("twenty clicks at once", "double-click", 1, 0, PAID),
            Self::TwoKeys => ("two keys for one order", "two-keys", 1, 0, PAID),
            Self::ChangedBody => ("the same key with another amount", "changed-body", 1, 0, PAID),
            Self::RepeatedNotification => ("a notification comes again and again", "repeated", 1, 0, PAID),
            Self::ForgedNotification => ("a forged notification", "forged", 1, 0, PAID),
            Self::TamperedNotification => ("a notification that was changed on its way", "tampered", 1, 0, PAID),
            Self::EarlyNotification => ("a notification before the channel's answer", "early", 1, 0, PAID),
            Self::LostNotification => ("no notification comes at all", "lost-notification", 1, 0, PAID),
            Self::Switch => ("the buyer switches the way of paying", "switch", 1, 0, PAID),
            Self::PaidAfterClose => {
                ("paid after the order was closed", "paid-after-close", 1, 1, &["payment.closed", "payment.surplus", "refund.succeeded"])
            }
            Self::PartialRefunds => {
                ("partial refunds, one too many", "partial-refunds", 1, 2, &["payment.paid", "refund.succeeded", "refund.succeeded"])
            }
            Self::RefundLostAnswer => ("the answer to a refund is lost", "refund-lost-answer", 1, 1, &["payment.paid", "refund.succeeded"]),
            Self::RefundCrash => ("kill -9 in the middle of a refund", "refund-crash", 1, 1, &["payment.paid", "refund.succeeded"]),
        };
        Expected { title, slug, charges, refunds, events }
    }

    /// Plays it.
    pub(super) async fn play(self, act: &mut Act<'_>) -> Result<(), Fault> {
        match self {
            Self::LostRequest => charge::meets_fault(act, "drop_request").await,
            Self::LostAnswer => charge::meets_fault(act, "drop_response").await,
            Self::ErrorBefore => charge::meets_fault(act, "error_before").await,
            Self::ErrorAfter => charge::meets_fault(act, "error_after").await,
            Self::Crash => charge::crash(act).await,
            Self::DoubleClick => charge::double_click(act).await,
            Self::TwoKeys => charge::two_keys(act).await,
            Self::ChangedBody => charge::changed_body(act).await,
            Self::RepeatedNotification => notify::repeated(act).await,
            Self::ForgedNotification => notify::false_one(act, "forge").await,
            Self::TamperedNotification => notify::false_one(act, "tamper").await,
            Self::EarlyNotification => notify::early(act).await,
            Self::LostNotification => notify::lost(act).await,
            Self::Switch => change::switch(act).await,
            Self::PaidAfterClose => change::paid_after_close(act).await,
            Self::PartialRefunds => refund::partial(act).await,
            Self::RefundLostAnswer => refund::lost_answer(act).await,
            Self::RefundCrash => refund::crash(act).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_story_is_told_apart_and_tells_the_merchant_something() {
        let mut slugs: Vec<&str> = Story::ALL.iter().map(|story| story.expected().slug).collect();
        slugs.sort_unstable();
        slugs.dedup();
        assert_eq!(slugs.len(), Story::ALL.len());
        assert!(Story::ALL.iter().all(|story| story.expected().charges == 1 && !story.expected().events.is_empty()));
    }
}
