//! The guard inside your own transaction: claim, business writes and answer commit together, so there is no crash window at all for work that stays
//! inside the database.
//!
//! In: a transaction that you began, on the database with the schema in it. Out: what the guard's ports give. It never commits and never rolls back.
//!
//! Begin the transaction, [`claim`], decide (`payonce_core::record::decision::decide`), do your work, [`write`](fn@write) the answer, commit.
//! Whoever claims the same key meanwhile waits for your commit or rollback inside its own claim, and then finds the answer, or nothing. If you roll back,
//! the claim goes too. A transaction that claims several keys claims them in key order, or risks a deadlock with another that does not. With isolation
//! above READ COMMITTED the loser of a race gets [`StoreFault::Retry`] and has to repeat its whole transaction.

use payonce_core::ports::StoreFault;
use payonce_core::ports::records::{NewClaim, Seen, TakeOver, Write, Written};
use payonce_core::record::Fence;
use tokio_postgres::Transaction;

use crate::fault::{Effect, fault};
use crate::records;
use crate::session::Failed;

/// A row that was met but gone when it was read is claimed again, so often.
const ROUNDS: usize = 8;

/// Claims a key. The lease plays no part as long as the transaction is open: nobody else sees the row.
pub async fn claim(transaction: &Transaction<'_>, row: &NewClaim) -> Result<Seen, StoreFault> {
    for _ in 0..ROUNDS {
        if !records::claim(transaction, &[row], None).await.map_err(told)?.is_empty() {
            return Ok(Seen::Won { fence: Fence(1) });
        }
        let found = records::read(transaction, &[&row.key], None).await.map_err(told)?;
        if let Some((Some(record), now)) = found.into_iter().next() {
            return Ok(Seen::Found { record: Box::new(record), now });
        }
    }
    Err(StoreFault::Retry("a key is claimed and released faster than it can be read".to_owned()))
}

/// Takes a lapsed, parked or expired row over. `None` if it is no longer as seen.
pub async fn take_over(transaction: &Transaction<'_>, row: &TakeOver) -> Result<Option<Fence>, StoreFault> {
    records::take_over(transaction, row, None).await.map_err(told)
}

/// Keeps the answer, parks or releases the row. Refused if the claim is not, or no longer, the row's.
pub async fn write(transaction: &Transaction<'_>, row: &Write) -> Result<Written, StoreFault> {
    records::write::write_one(transaction, row, None).await.map_err(told)
}

/// Nothing of an open transaction is there, so a lost answer leaves nothing in doubt here; the caller's own COMMIT is another matter.
fn told(failed: Failed) -> StoreFault {
    match failed {
        Failed::Sql(error) => fault(&error, Effect::None),
        Failed::Fault(fault) => fault,
    }
}
