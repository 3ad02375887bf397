//! Channel-neutral results. An adapter translates the channel's words into one of these, and the rules read nothing else.
//!
//! An [`Outcome`] of a charge or a [`RefundOutcome`], together with who told us, is an observation (design §5).

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::failure::Failure;
use crate::money::Money;

/// What the buyer has to do next. Holds tokens: it is sealed before it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Action {
    /// Open this address.
    Redirect {
        /// Where to.
        url: String,
    },
    /// Show this as a QR code.
    QrCode {
        /// What the code says.
        code_url: String,
    },
    /// Hand these to the channel's SDK in the app or page.
    Sdk {
        /// The parameters, as the SDK wants them.
        params: serde_json::Value,
    },
    /// Nothing.
    None,
}

/// Money that a channel says it has taken or reserved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// The channel's own transaction id.
    pub txn: String,
    /// How much. `None` where the message does not say and the channel is single-currency by contract, or where only the status is told.
    pub amount: Option<Money>,
    /// When, by the channel's clock, if it says.
    pub at: Option<Timestamp>,
}

/// What became of an attempt to take money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The channel has the order; it is not paid yet and can still be paid.
    Waiting {
        /// What the buyer has to do, if the message says.
        action: Option<Action>,
        /// The channel's transaction id, if there is one already.
        txn: Option<String>,
    },
    /// The money is taken.
    Paid(Taken),
    /// The money is reserved and waits for a capture.
    Authorized(Taken),
    /// Refused for this reference, and nothing at the channel can still be paid.
    Declined(Failure),
    /// This try failed, but the order at the channel can still be paid.
    DeclinedOpen(Failure),
    /// The channel confirms that the order is closed and cannot be paid.
    Closed,
    /// A look-up found nothing, and by the channel's rules that is final now.
    AbsentFinal,
    /// A look-up found nothing, which proves nothing yet.
    AbsentYet,
    /// The channel refused the request before anything came of it: malformed, not signed as it likes, not permitted.
    NotAccepted(Failure),
    /// Not one byte of the request left this machine.
    NotSent(String),
    /// The same reference is being worked on, or the channel asks to come back: nothing is known yet.
    InProgress,
    /// Nobody knows: no answer, a 5xx, an answer that does not verify or parse.
    Unknown(String),
}

/// What became of an attempt to give money back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefundOutcome {
    /// Accepted; the channel tells later.
    Processing,
    /// The money is on its way back.
    Succeeded {
        /// The channel's id of the refund, if it has one.
        channel_refund_id: Option<String>,
    },
    /// Definitely not refunded under this reference.
    Failed(Failure),
    /// A look-up found nothing and the reference may be sent again.
    Absent,
    /// Refused before anything came of it.
    NotAccepted(Failure),
    /// Not one byte of the request left this machine.
    NotSent(String),
    /// The same reference is being worked on.
    InProgress,
    /// Nobody knows.
    Unknown(String),
}

/// What became of an attempt to end an unpaid order at the channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseOutcome {
    /// The channel confirms that it cannot be paid any more.
    Closed,
    /// Paying won; the details come from a look-up.
    AlreadyPaid,
    /// The close has returned money that was already taken.
    Returned(Taken),
    /// The channel does not know the order (yet).
    Absent,
    /// The channel has no way to close, or refuses to for now.
    Refused(Failure),
    /// Not one byte of the request left this machine.
    NotSent(String),
    /// Nobody knows.
    Unknown(String),
}

/// Who told us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The channel's answer to our own request.
    Answer,
    /// A verified notification.
    Notification,
    /// A look-up.
    LookUp,
    /// A line of the channel's statement.
    Statement,
    /// An operator, with evidence.
    Operator,
}
