//! What PostgreSQL's errors mean to a caller (I10).
//!
//! In: an error of the driver, and whether what was sent may have been committed. Out: a [`StoreFault`], or the unique rule that stands in the way.
//! It never calls an outcome known that is not.

use std::future::Future;
use std::time::Duration;

use payonce_core::ports::StoreFault;
use payonce_core::ports::payments::Rule;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// What it means that the answer to a statement is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing was to be written, or the transaction was still open: nothing is there.
    None,
    /// It commits by itself, or was the commit: it may be there.
    Commits,
}

impl Effect {
    /// The fault of a lost answer.
    pub(crate) fn lost(self, why: impl Into<String>) -> StoreFault {
        match self {
            Self::None => StoreFault::Unavailable(why.into()),
            Self::Commits => StoreFault::Ambiguous(why.into()),
        }
    }
}

/// What an error means.
pub(crate) fn fault(error: &Error, effect: Effect) -> StoreFault {
    let Some(told) = error.as_db_error() else {
        // The connection is gone, or the answer does not decode: what became of the statement is not told.
        return if is_local(error) { StoreFault::Refused(chain(error)) } else { effect.lost(chain(error)) };
    };
    let text = format!("{} ({})", told.message(), told.code().code());
    match told.code().code() {
        // Statement completion unknown.
        "40003" => StoreFault::Ambiguous(text),
        "40001" | "40P01" => StoreFault::Retry(text),
        // A statement that the server was to keep is not there, or is there already: there is a pooler where none was seen. It was not run.
        "26000" | "42P05" => StoreFault::Retry(text),
        // The server or a pooler ended the connection; a commit may have gone through before the word came.
        code if code.starts_with("08") || matches!(code, "57P01" | "57P02" | "57P05") => effect.lost(text),
        // Undone, and it may work later or elsewhere: out of resources, starting up, cancelled, a lock that could not be had in time,
        // and a server that only reads (a replica, or an old primary after a failover).
        code if code.starts_with("53") || matches!(code, "57P03" | "57014" | "55P03" | "25006" | "57P04" | "58000" | "58030") => {
            StoreFault::Unavailable(text)
        }
        _ => StoreFault::Refused(text),
    }
}

/// Whether the connection must not be used again.
pub(crate) fn is_fatal(error: &Error) -> bool {
    match error.as_db_error() {
        None => !is_local(error),
        Some(told) => {
            let code = told.code().code();
            code.starts_with("08") || code.starts_with("57P") || matches!(code, "25006" | "26000" | "42P05") || told.severity() == "FATAL"
        }
    }
}

/// Whether the request was refused by the driver, before anything was sent: a value that does not fit its type.
fn is_local(error: &Error) -> bool {
    !error.is_closed() && {
        let text = error.to_string();
        text.starts_with("error serializing parameter") || text.starts_with("error encoding message")
    }
}

/// The message with its causes: the driver's own says only "db error" or "error communicating with the server".
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}

/// The unique rule behind an error.
pub(crate) fn violated(error: &Error) -> Option<Rule> {
    let told = error.as_db_error()?;
    if told.code() != &SqlState::UNIQUE_VIOLATION {
        return None;
    }
    match told.constraint()? {
        "attempts_live" => Some(Rule::OneLiveAttempt),
        "attempts_ref" | "refunds_ref" => Some(Rule::ChannelRef),
        "refunds_merchant" => Some(Rule::RefundId),
        "surpluses_txn" => Some(Rule::SurplusTxn),
        _ => None,
    }
}

/// A row that does not read as what it was stored as.
pub(crate) fn damaged(what: &str) -> StoreFault {
    StoreFault::Refused(format!("a stored {what} cannot be read"))
}

/// A document that does not read as what it was stored as.
pub(crate) fn unreadable(error: &serde_json::Error) -> StoreFault {
    StoreFault::Refused(format!("a stored document cannot be read: {error}"))
}

/// A transaction is tried at most so often where the database asks to repeat it.
const TRIES: u32 = 6;
/// The pause before the second try; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(2);

/// Repeats a transaction, and nothing but the transaction, as long as the database asks for it (B036).
pub(crate) async fn repeating<T, F>(mut once: impl FnMut() -> F + Send) -> Result<T, StoreFault>
where
    F: Future<Output = Result<T, StoreFault>> + Send,
{
    let mut pause = FIRST_PAUSE;
    for _ in 1..TRIES {
        match once().await {
            Err(StoreFault::Retry(why)) => tracing::debug!(%why, "the database asks to repeat a transaction"),
            done => return done,
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    once().await
}
