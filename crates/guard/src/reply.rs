//! What goes into a guard and what comes out of it.

use std::time::Duration;

use payonce_core::failure::{MoneyMoved, Retry};
use payonce_core::record::{ClaimId, Fence, RecordKey};

use crate::answer::Answer;
use crate::policy::Route;

/// A request that carries a key.
#[derive(Clone, Debug)]
pub struct Request {
    /// Tenant, scope and key.
    pub key: RecordKey,
    /// The canonical bytes of the request ([`payonce_core::fingerprint::canonical`]).
    pub canonical: Vec<u8>,
    /// What its route asks of the guard.
    pub route: Route,
}

/// Told to the work when it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// Whether an earlier run under this key began and its outcome is not known. Only resumable routes see true.
    pub resumed: bool,
    /// Goes up with each takeover.
    pub fence: Fence,
    /// Names this run.
    pub claim_id: ClaimId,
}

/// How a run ended, and with it the fate of its key (I10: by what may have happened, not by the status alone).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Success or a terminal failure: the answer is kept and replayed.
    Keep(Answer),
    /// Proved that nothing happened: the key is free again.
    Release(Answer),
    /// Nobody knows yet: the key is parked; a resumable route will find out.
    Park(Answer),
    /// As [`Self::Park`], without an answer to give: the work broke off.
    Broken,
}

/// What the caller gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The work ran, its end is stored, and this is its answer.
    Fresh(Answer),
    /// The work had run before; this is the kept answer.
    Replayed(Answer),
    /// Neither.
    Refused(Refusal),
}

/// Why a request got no answer of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The key was used for another request.
    Mismatch,
    /// The first is still running.
    InUse {
        /// When to ask again.
        retry_after: Duration,
    },
    /// The first ended without a known outcome, and the route cannot resume.
    OutcomeUnknown,
    /// The store cannot be asked. Nothing was run.
    StoreUnavailable {
        /// When to ask again.
        retry_after: Duration,
    },
    /// Too much is running or waiting. Nothing was run.
    Busy {
        /// When to ask again.
        retry_after: Duration,
    },
    /// The work panicked or broke off without an answer. The key is parked.
    Broken,
    /// The work ran and its end could not be stored in time: the answer that it gave is withheld, because nobody could repeat it.
    NotStored,
    /// A record stands there that this installation's keys do not open.
    Unreadable,
}

impl Refusal {
    /// The stable code of the problem.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Mismatch => "idempotency_key_reused",
            Self::InUse { .. } => "idempotency_key_in_use",
            Self::OutcomeUnknown => "idempotency_outcome_unknown",
            Self::StoreUnavailable { .. } => "store_unavailable",
            Self::Busy { .. } => "too_busy",
            Self::Broken => "internal_error",
            Self::NotStored => "idempotency_result_not_stored",
            Self::Unreadable => "idempotency_record_unreadable",
        }
    }

    /// Whether money may have moved by *this* request's key, as far as the guard knows.
    pub const fn money_moved(self) -> MoneyMoved {
        match self {
            // Said of this request: it was not run.
            Self::Mismatch | Self::StoreUnavailable { .. } | Self::Busy { .. } => MoneyMoved::No,
            Self::InUse { .. } | Self::OutcomeUnknown | Self::Broken | Self::NotStored | Self::Unreadable => MoneyMoved::Unknown,
        }
    }

    /// Whether the same request may be sent again with the same key.
    pub const fn retry(self) -> Retry {
        match self {
            Self::InUse { .. } | Self::StoreUnavailable { .. } | Self::Busy { .. } => Retry::Safe,
            Self::OutcomeUnknown | Self::Broken | Self::NotStored => Retry::AfterLookup,
            Self::Mismatch | Self::Unreadable => Retry::Never,
        }
    }

    /// When to ask again, where asking again helps.
    pub const fn retry_after(self) -> Option<Duration> {
        match self {
            Self::InUse { retry_after } | Self::StoreUnavailable { retry_after } | Self::Busy { retry_after } => Some(retry_after),
            Self::Mismatch | Self::OutcomeUnknown | Self::Broken | Self::NotStored | Self::Unreadable => None,
        }
    }
}
