//! Notifications: raw bytes, the proof that they were verified, the facts inside, and whether those facts fit our books (I6).
//!
//! [`Verified`] has a private field and one way to make it, so a channel that forgets to verify does not compile.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::money::{Currency, Money};

/// A request as it arrived: nothing parsed, nothing decoded.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RawRequest {
    /// `POST`.
    pub method: String,
    /// Path and query as received.
    pub path_and_query: String,
    /// In order. Names in lower case.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Untouched.
    pub body: Vec<u8>,
}

impl RawRequest {
    /// The first value of a header, if it is text. `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).and_then(|(_, v)| std::str::from_utf8(v).ok())
    }

    /// How many headers of this name there are.
    pub fn count(&self, name: &str) -> usize {
        self.headers.iter().filter(|(n, _)| n == name).count()
    }
}

/// What a notification is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Facts {
    /// The order is paid.
    Paid {
        /// The channel's transaction id.
        txn: String,
        /// When, by the channel.
        at: Option<Timestamp>,
    },
    /// The money is reserved.
    Authorized {
        /// The channel's transaction id.
        txn: String,
    },
    /// A try failed.
    Failed {
        /// The channel's code.
        channel_code: String,
        /// For people.
        message: String,
        /// Whether the order can still be paid.
        open: bool,
    },
    /// The order was closed unpaid.
    Closed,
    /// The order exists and is not paid; nothing has changed.
    Waiting,
    /// Money went back.
    Refund {
        /// Our reference of the refund, if the message names one that may be ours.
        refund_ref: Option<String>,
        /// The channel's id of the refund.
        channel_refund_id: Option<String>,
        /// This refund's amount, if told.
        amount: Option<Money>,
        /// The running total of the order's refunds, if that is what the channel tells.
        total: Option<Money>,
        /// What became of it.
        status: RefundFact,
    },
    /// Authentic, and of no consequence to a payment.
    Other {
        /// The channel's name for it.
        what: String,
    },
}

/// What a notification says of a refund.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefundFact {
    /// It went through.
    Succeeded,
    /// It is under way.
    Processing,
    /// It failed.
    Failed {
        /// The channel's code.
        channel_code: String,
    },
}

/// One event out of a notification, in neutral terms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    /// The business event's identity within the account: the same event again has the same one, different events never share one.
    pub identity: String,
    /// The channel's name for the merchant that it is addressed to (app id and seller, mchid …), as read.
    pub merchant: Vec<(String, String)>,
    /// Our reference of the order, if the message names one.
    pub channel_ref: Option<String>,
    /// The order's amount as told. `None` where the message does not carry it.
    pub amount: Option<Money>,
    /// A currency that was named without an amount, or that is no ISO 4217 currency: kept as text for the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency_text: Option<String>,
    /// The channel's word for the state.
    pub status: String,
    /// What it is about.
    pub facts: Facts,
}

/// Why a message is refused, in the order in which the checks come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A header that the scheme needs is not there.
    MissingHeader,
    /// A field that the scheme needs is not there.
    MissingField,
    /// Not of the form at all.
    Malformed,
    /// A parameter or security header stands there twice.
    DuplicateParameter,
    /// Too old.
    Stale,
    /// From the future.
    Future,
    /// Signed with a key that we do not know.
    UnknownKey,
    /// The certificate's address is not the channel's.
    CertUrlNotAllowed,
    /// The certificate's chain does not hold.
    UntrustedCertificate,
    /// An algorithm that the account does not allow.
    AlgorithmNotAllowed,
    /// The signature does not fit.
    BadSignature,
    /// The resource does not decrypt.
    DecryptFailed,
    /// Addressed to another merchant.
    WrongMerchant,
    /// From another issuer.
    WrongIssuer,
    /// Live where test was meant, or the other way round.
    WrongMode,
    /// An order that we never made.
    UnknownOrder,
    /// Another amount than the order's.
    AmountMismatch,
    /// Another currency than the order's.
    CurrencyMismatch,
    /// A transmission that was handled before, under another body.
    ReplayedTransmission,
}

/// Where in the order of checks a reason belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The form.
    Envelope,
    /// Time or key.
    FreshnessOrKey,
    /// The signature.
    Signature,
    /// The encryption.
    Decrypt,
    /// The meaning.
    Semantic,
}

impl Reason {
    /// The stage of this reason.
    pub const fn stage(self) -> Stage {
        match self {
            Self::MissingHeader | Self::MissingField | Self::Malformed | Self::DuplicateParameter => Stage::Envelope,
            Self::Stale | Self::Future | Self::UnknownKey | Self::CertUrlNotAllowed | Self::UntrustedCertificate => Stage::FreshnessOrKey,
            Self::AlgorithmNotAllowed | Self::BadSignature => Stage::Signature,
            Self::DecryptFailed => Stage::Decrypt,
            Self::WrongMerchant
            | Self::WrongIssuer
            | Self::WrongMode
            | Self::UnknownOrder
            | Self::AmountMismatch
            | Self::CurrencyMismatch
            | Self::ReplayedTransmission => Stage::Semantic,
        }
    }
}

/// Why a message was refused before anything was looked up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("notification refused: {reason:?}: {detail}")]
pub struct Rejection {
    /// The reason.
    pub reason: Reason,
    /// For the log. Holds no secret and nothing of the body.
    pub detail: String,
}

impl Rejection {
    /// A refusal.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }
}

/// The proof that a message came from the channel. There is no other way to get one than [`Verified::by`].
///
/// ```compile_fail
/// use payonce_core::notification::{Notification, Verified};
/// fn forge(events: Vec<Notification>) -> Verified { Verified { events } }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    events: Vec<Notification>,
}

/// Checks a message: envelope, freshness, key, signature, decryption, in that order, and nothing that needs our books.
pub trait Verify {
    /// The events inside (a batch has several), or why the message is refused. `now` is the clock to judge freshness by.
    fn verify(&self, raw: &RawRequest, now: Timestamp) -> Result<Vec<Notification>, Rejection>;
}

impl Verified {
    /// Verifies `raw`.
    pub fn by(verifier: &dyn Verify, raw: &RawRequest, now: Timestamp) -> Result<Self, Rejection> {
        verifier.verify(raw, now).map(|events| Self { events })
    }

    /// The events inside.
    pub fn events(&self) -> &[Notification] {
        &self.events
    }
}

/// What our books say of the order that a notification names.
#[derive(Clone, Copy, Debug)]
pub struct Booked {
    /// The attempt's amount.
    pub amount: Money,
}

/// Whether an authentic event may be acted on (I6): addressed to us, about an order of ours, over its amount and currency.
///
/// `ours` are the account's own identifiers (field name and value); every field of the event that the account knows must be equal. An
/// amount that the message does not carry is accepted only where `single_currency` says that the channel has one currency by contract.
pub fn bind(
    event: &Notification,
    ours: &[(String, String)],
    booked: Option<Booked>,
    single_currency: Option<Currency>,
) -> Result<(), Reason> {
    for (field, value) in &event.merchant {
        if let Some((_, own)) = ours.iter().find(|(name, _)| name == field)
            && own != value
        {
            return Err(Reason::WrongMerchant);
        }
    }
    let Some(booked) = booked else { return Err(Reason::UnknownOrder) };
    match event.amount {
        Some(told) if told.currency != booked.amount.currency => Err(Reason::CurrencyMismatch),
        // For a refund the order's amount is not what the message is about; its own figures are checked when it is booked.
        Some(told) if told.minor != booked.amount.minor && !matches!(event.facts, Facts::Refund { .. }) => Err(Reason::AmountMismatch),
        Some(_) => Ok(()),
        None if event.currency_text.is_some() => Err(Reason::CurrencyMismatch),
        None => match &event.facts {
            // Money of a currency that nobody named is taken only where the channel has just one.
            Facts::Paid { .. } | Facts::Authorized { .. } if single_currency.is_none() => Err(Reason::CurrencyMismatch),
            Facts::Paid { .. }
            | Facts::Authorized { .. }
            | Facts::Failed { .. }
            | Facts::Closed
            | Facts::Waiting
            | Facts::Refund { .. }
            | Facts::Other { .. } => Ok(()),
        },
    }
}
