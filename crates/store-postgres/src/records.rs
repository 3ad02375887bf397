//! The guard's table.
//!
//! In: batches of the guard's one writer. Out: each row's own result. Claims are one statement that commits by itself, with the read of those that
//! were lost behind it in the same round trip when the last batch had any. Leases follow the database's clock.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join;
use payonce_core::clock::Timestamp;
use payonce_core::id::TenantId;
use payonce_core::ports::StoreFault;
use payonce_core::ports::records::{NewClaim, Records, Seen, TakeOver, Write, Written};
use payonce_core::record::{ClaimId, Fence, Record, RecordKey};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use crate::PostgresStore;
use crate::fault::{Effect, repeating};
use crate::rows::{self, at, bound, fingerprint_bytes, state_number, total};
use crate::session::{Failed, Params, Sends, Session};
use crate::statement as sql;

pub(crate) mod write;

/// A scope has at most so many bytes: with tenant and key it has to fit into an entry of an index.
const SCOPE_MAX_BYTES: usize = 2048;

/// Rows that were met but gone when they were read are claimed again, so often.
const ROUNDS: usize = 8;

#[async_trait]
impl Records for PostgresStore {
    async fn claim(&self, rows: &[NewClaim]) -> Result<Vec<Seen>, StoreFault> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        if rows.iter().any(|row| row.key.scope.len() > SCOPE_MAX_BYTES) {
            return Err(StoreFault::Refused("a scope is too long for the index".to_owned()));
        }
        repeating(|| self.claim_once(rows)).await
    }

    async fn take_over(&self, row: &TakeOver) -> Result<Option<Fence>, StoreFault> {
        let now = self.now();
        let once = || async {
            let session = self.session().await?;
            let work = async { take_over(&session, row, now).await.map_err(|failed| session.fault(failed, Effect::Commits)) };
            session.within(Effect::Commits, work).await
        };
        repeating(once).await
    }

    async fn park_lapsed(&self, key: &RecordKey, seen_claim: ClaimId, seen_fence: Fence) -> Result<Written, StoreFault> {
        let (tenant, name) = (key.tenant.as_str(), key.key.as_str());
        let count = self.count(&sql::RECORDS_PARK_LAPSED, &[&tenant, &name, &key.scope, &seen_claim.0, &seen_fence.0, &self.now()]).await?;
        Ok(written(count))
    }

    async fn write(&self, rows: &[Write]) -> Result<Vec<Written>, StoreFault> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        repeating(|| write::write_once(self, rows)).await
    }

    async fn read(&self, keys: &[RecordKey]) -> Result<(Vec<Option<Record>>, Timestamp), StoreFault> {
        let now = self.now();
        let columns = Keys::of(keys.iter());
        let found = match keys {
            // A row that cannot be there, for the clock beside it.
            [] => self.rows(&sql::RECORDS_READ, &[&"", &"", &"", &now]).await?,
            [one] => self.rows(&sql::RECORDS_READ, &[&one.tenant.as_str(), &one.key.as_str(), &one.scope, &now]).await?,
            _ => self.rows(&sql::BATCH_READ, &[&columns.tenants, &columns.keys, &columns.scopes, &now]).await?,
        };
        let now = found.last().map_or(Ok(0), |row| at(row, 0))?;
        let records = keys.iter().zip(&found).map(|(key, row)| read_row(row, key).map(|(record, _)| record));
        Ok((records.collect::<Result<_, _>>()?, Timestamp(now)))
    }

    async fn find(&self, tenant: &TenantId, key: Option<&str>, limit: usize) -> Result<Vec<Record>, StoreFault> {
        let found = self.rows(&sql::RECORDS_FIND, &[&tenant.as_str(), &key, &bound(limit)]).await?;
        found.iter().map(|row| rows::record_of(row, tenant)).collect()
    }

    async fn remove_stuck(&self, key: &RecordKey) -> Result<Written, StoreFault> {
        let (tenant, name) = (key.tenant.as_str(), key.key.as_str());
        Ok(written(self.count(&sql::RECORDS_REMOVE_STUCK, &[&tenant, &name, &key.scope, &self.now()]).await?))
    }

    async fn sweep_records(&self, limit: usize) -> Result<usize, StoreFault> {
        Ok(total(self.count(&sql::RECORDS_SWEEP, &[&self.now(), &bound(limit)]).await?))
    }
}

impl PostgresStore {
    async fn claim_once(&self, rows: &[NewClaim]) -> Result<Vec<Seen>, StoreFault> {
        let session = self.session().await?;
        session.within(Effect::Commits, self.claim_in(&session, rows)).await
    }

    async fn claim_in(&self, session: &Session, rows: &[NewClaim]) -> Result<Vec<Seen>, StoreFault> {
        session.ready(&[&sql::RECORDS_CLAIM, &sql::RECORDS_READ]).await?;
        let mut seen: Vec<Option<Seen>> = vec![None; rows.len()];
        for _ in 0..ROUNDS {
            let open: Vec<usize> = seen.iter().enumerate().filter(|(_, one)| one.is_none()).map(|(n, _)| n).collect();
            if open.is_empty() {
                break;
            }
            let asked: Vec<&NewClaim> = open.iter().filter_map(|n| rows.get(*n)).collect();
            for (n, one) in open.into_iter().zip(self.claim_round(session, &asked).await?) {
                if let Some(slot) = seen.get_mut(n) {
                    *slot = one;
                }
            }
        }
        let all: Option<Vec<Seen>> = seen.into_iter().collect();
        // Some were won by then, so the caller has to read back.
        all.ok_or_else(|| StoreFault::Ambiguous("a key is claimed and released faster than it can be read".to_owned()))
    }

    /// Claims, and reads what was there. `None` for a row that was met but is gone by now.
    async fn claim_round(&self, session: &Session, rows: &[&NewClaim]) -> Result<Vec<Option<Seen>>, StoreFault> {
        let now = self.now();
        let keys: Vec<&RecordKey> = rows.iter().map(|row| &row.key).collect();
        let (claimed, found) = if self.meets_rows.load(Ordering::Relaxed) {
            let (claimed, found) = join(claim(session, rows, now), read(session, &keys, now)).await;
            (claimed.map_err(|failed| taken(session, failed))?, Some(found))
        } else {
            let claimed = claim(session, rows, now).await.map_err(|failed| taken(session, failed))?;
            let found = if claimed.len() < rows.len() { Some(read(session, &keys, now).await) } else { None };
            (claimed, found)
        };
        self.meets_rows.store(claimed.len() < rows.len(), Ordering::Relaxed);
        let Some(found) = found else { return Ok(rows.iter().map(|_| Some(Seen::Won { fence: Fence(1) })).collect()) };
        // The claims are committed by now, so a read that failed leaves the winners in doubt.
        let found = found.map_err(|failed| match session.fault(failed, Effect::Commits) {
            StoreFault::Unavailable(why) | StoreFault::Retry(why) => StoreFault::Ambiguous(why),
            fault @ (StoreFault::Ambiguous(_) | StoreFault::Refused(_)) => fault,
        })?;
        let mut unclaimed = claimed;
        let seen = rows.iter().zip(found).map(|(row, (record, now))| {
            // Of two rows that are the same claim, the first has won.
            if unclaimed.remove(&row.claim_id.0) {
                return Some(Seen::Won { fence: Fence(1) });
            }
            record.map(|record| Seen::Found { record: Box::new(record), now })
        });
        Ok(seen.collect())
    }
}

/// Claims the absent rows of a batch. Which claims won.
pub(crate) async fn claim(on: &impl Sends, rows: &[&NewClaim], now: Option<i64>) -> Result<HashSet<Uuid>, Failed> {
    if let [row] = rows {
        let (tenant, key, claim) = (row.key.tenant.as_str(), row.key.key.as_str(), row.claim_id.0);
        let (fingerprint, lease, ttl) = (fingerprint_bytes(&row.fingerprint), millis(row.lease), millis(row.ttl));
        let columns: Params<'_> = &[&tenant, &key, &row.key.scope, &fingerprint, &claim, &now, &lease, &ttl];
        let won = on.count(&sql::RECORDS_CLAIM, columns).await?;
        return Ok((won > 0).then_some(claim).into_iter().collect());
    }
    let keys = Keys::of(rows.iter().map(|row| &row.key));
    let fingerprints: Vec<Vec<u8>> = rows.iter().map(|row| fingerprint_bytes(&row.fingerprint)).collect();
    let claims: Vec<Uuid> = rows.iter().map(|row| row.claim_id.0).collect();
    let leases: Vec<i64> = rows.iter().map(|row| millis(row.lease)).collect();
    let ttls: Vec<i64> = rows.iter().map(|row| millis(row.ttl)).collect();
    let columns: Params<'_> = &[&keys.tenants, &keys.keys, &keys.scopes, &fingerprints, &claims, &leases, &ttls, &now];
    let won = on.rows(&sql::BATCH_CLAIM, columns).await?;
    Ok(won.iter().map(|row| at(row, 0)).collect::<Result<_, _>>()?)
}

/// Rows as they are, each with the clock.
pub(crate) async fn read(on: &impl Sends, keys: &[&RecordKey], now: Option<i64>) -> Result<Vec<(Option<Record>, Timestamp)>, Failed> {
    let found = if let [one] = keys {
        on.rows(&sql::RECORDS_READ, &[&one.tenant.as_str(), &one.key.as_str(), &one.scope, &now]).await?
    } else {
        let columns = Keys::of(keys.iter().copied());
        on.rows(&sql::BATCH_READ, &[&columns.tenants, &columns.keys, &columns.scopes, &now]).await?
    };
    Ok(found.iter().zip(keys).map(|(row, key)| read_row(row, key)).collect::<Result<_, _>>()?)
}

/// Takes a row over that is still as it was seen.
pub(crate) async fn take_over(on: &impl Sends, row: &TakeOver, now: Option<i64>) -> Result<Option<Fence>, Failed> {
    let (tenant, key, state) = (row.key.tenant.as_str(), row.key.key.as_str(), state_number(row.seen_state));
    let (fingerprint, ttl, lease) = (fingerprint_bytes(&row.fingerprint), row.ttl.map(millis), millis(row.lease));
    let columns: Params<'_> =
        &[&tenant, &key, &row.key.scope, &row.seen_claim.0, &row.seen_fence.0, &state, &row.claim_id.0, &fingerprint, &ttl, &now, &lease];
    let taken = on.rows(&sql::RECORDS_TAKE_OVER, columns).await?;
    Ok(taken.first().map(|row| at(row, 0).map(Fence)).transpose()?)
}

/// Some engines of PostgreSQL's kind answer a lost race with a duplicate key instead of with no row: the batch is undone, and the next try finds it.
fn taken(session: &Session, failed: Failed) -> StoreFault {
    match failed {
        Failed::Sql(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => StoreFault::Retry(error.to_string()),
        failed => session.fault(failed, Effect::Commits),
    }
}

fn read_row(row: &Row, key: &RecordKey) -> Result<(Option<Record>, Timestamp), StoreFault> {
    let now = Timestamp(at(row, 0)?);
    // The outer join gives a row of nulls where there is none.
    let record = match at::<Option<&[u8]>>(row, 1)? {
        None => None,
        Some(_) => Some(rows::record(row, 1, key.clone())?),
    };
    Ok((record, now))
}

/// Keys as the columns of a batch.
struct Keys<'a> {
    tenants: Vec<&'a str>,
    keys: Vec<&'a str>,
    scopes: Vec<&'a str>,
}

impl<'a> Keys<'a> {
    fn of(keys: impl Iterator<Item = &'a RecordKey> + Clone) -> Self {
        Self {
            tenants: keys.clone().map(|key| key.tenant.as_str()).collect(),
            keys: keys.clone().map(|key| key.key.as_str()).collect(),
            scopes: keys.map(|key| key.scope.as_str()).collect(),
        }
    }
}

const fn written(count: u64) -> Written {
    if count == 0 { Written::Refused } else { Written::Applied }
}

fn millis(duration: Duration) -> i64 {
    // Far below the largest number of the column, so that a clock may be added to it.
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX).min(i64::MAX / 4)
}
