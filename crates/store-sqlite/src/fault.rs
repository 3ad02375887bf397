//! What SQLite's errors mean to a caller.
//!
//! In: an error of rusqlite or of a stored document. Out: a [`StoreFault`], or the unique rule that stands in the way.

use payonce_core::ports::StoreFault;
use payonce_core::ports::payments::Rule;
use rusqlite::ErrorCode;

/// A [`StoreFault`] that `?` makes from the errors of this crate's work.
#[derive(Debug)]
pub(crate) struct Fault(pub(crate) StoreFault);

impl Fault {
    /// A row that does not read as what it was stored as.
    pub(crate) fn damaged(what: &str) -> Self {
        Self(StoreFault::Refused(format!("a stored {what} cannot be read")))
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        Self(match error.sqlite_error_code() {
            // The statement was undone. Another process holds the file, or the disk or memory is at its end: later it may work.
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::CannotOpen
                | ErrorCode::DiskFull
                | ErrorCode::ReadOnly
                | ErrorCode::OutOfMemory
                | ErrorCode::SystemIoFailure
                | ErrorCode::OperationInterrupted,
            ) => StoreFault::Unavailable(text),
            Some(_) | None => StoreFault::Refused(text),
        })
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self(StoreFault::Refused(format!("a stored document cannot be read: {error}")))
    }
}

/// Why a piece of work in the writer's transaction is undone: with an answer all the same, or with a fault.
#[derive(Debug)]
pub(crate) enum Undo<T> {
    /// Nothing of it stays, and this is what the caller is told.
    Answer(T),
    /// It could not be done.
    Fault(Fault),
}

impl<T, E: Into<Fault>> From<E> for Undo<T> {
    fn from(error: E) -> Self {
        Self::Fault(error.into())
    }
}

/// The unique rule behind an error, by the columns that SQLite names.
pub(crate) fn violated(error: &rusqlite::Error) -> Option<Rule> {
    let rusqlite::Error::SqliteFailure(code, Some(message)) = error else { return None };
    if code.code != ErrorCode::ConstraintViolation {
        return None;
    }
    match message.strip_prefix("UNIQUE constraint failed: ")? {
        "attempts.tenant, attempts.payment_id" => Some(Rule::OneLiveAttempt),
        "attempts.tenant, attempts.account, attempts.channel_ref" | "refunds.tenant, refunds.account, refunds.channel_ref" => {
            Some(Rule::ChannelRef)
        }
        "refunds.tenant, refunds.payment_id, refunds.refund_id" => Some(Rule::RefundId),
        "surpluses.tenant, surpluses.account, surpluses.channel_txn" => Some(Rule::SurplusTxn),
        _ => None,
    }
}
