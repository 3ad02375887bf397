//! The guard's table.
//!
//! In: batches of the guard. Out: each row's own result. A batch is one piece of work for the writer, so one transaction; leases follow the
//! store's clock, read when the transaction is under way.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use payonce_core::clock::Timestamp;
use payonce_core::id::TenantId;
use payonce_core::ports::StoreFault;
use payonce_core::ports::records::{NewClaim, Records, Seen, TakeOver, Verb, Write, Written};
use payonce_core::record::{ClaimId, Fence, Record, RecordKey, RecordState};
use rusqlite::{Connection, OptionalExtension, params};

use crate::SqliteStore;
use crate::fault::Fault;
use crate::rows::{self, fingerprint_bytes, state_number};
use crate::statements as sql;

#[async_trait]
impl Records for SqliteStore {
    async fn claim(&self, rows: &[NewClaim]) -> Result<Vec<Seen>, StoreFault> {
        let (rows, clock) = (rows.to_vec(), Arc::clone(&self.clock));
        self.write(move |connection| {
            let now = clock.now();
            rows.iter().map(|row| Ok(claim(connection, row, now)?)).collect()
        })
        .await
    }

    async fn take_over(&self, row: &TakeOver) -> Result<Option<Fence>, StoreFault> {
        let (row, clock) = (row.clone(), Arc::clone(&self.clock));
        self.write(move |connection| {
            let key = &row.key;
            let params = params![
                key.tenant.as_str(),
                key.key.as_str(),
                key.scope,
                row.seen_claim.0.as_bytes(),
                row.seen_fence.0,
                state_number(row.seen_state),
                row.claim_id.0.as_bytes(),
                fingerprint_bytes(&row.fingerprint),
                row.ttl.map(millis),
                clock.now().0,
                millis(row.lease),
            ];
            let fence = connection.prepare_cached(sql::RECORDS_TAKE_OVER)?.query_row(params, |row| row.get(0)).optional()?;
            Ok(fence.map(Fence))
        })
        .await
    }

    async fn park_lapsed(&self, key: &RecordKey, seen_claim: ClaimId, seen_fence: Fence) -> Result<Written, StoreFault> {
        let (key, clock) = (key.clone(), Arc::clone(&self.clock));
        self.write(move |connection| {
            let params = params![key.tenant.as_str(), key.key.as_str(), key.scope, seen_claim.0.as_bytes(), seen_fence.0, clock.now().0];
            Ok(written(connection.prepare_cached(sql::RECORDS_PARK_LAPSED)?.execute(params)?))
        })
        .await
    }

    async fn write(&self, rows: &[Write]) -> Result<Vec<Written>, StoreFault> {
        let (rows, clock) = (rows.to_vec(), Arc::clone(&self.clock));
        SqliteStore::write(self, move |connection| {
            let now = clock.now();
            rows.iter().map(|row| Ok(write(connection, row, now)?)).collect()
        })
        .await
    }

    async fn read(&self, keys: &[RecordKey]) -> Result<(Vec<Option<Record>>, Timestamp), StoreFault> {
        let (keys, clock) = (keys.to_vec(), Arc::clone(&self.clock));
        SqliteStore::read(self, move |connection| {
            let found = keys.iter().map(|key| read(connection, key)).collect::<Result<_, _>>()?;
            Ok((found, clock.now()))
        })
        .await
    }

    async fn find(&self, tenant: &TenantId, key: Option<&str>, limit: usize) -> Result<Vec<Record>, StoreFault> {
        let (tenant, key) = (tenant.clone(), key.map(str::to_owned));
        SqliteStore::read(self, move |connection| {
            let mut statement = connection.prepare_cached(sql::RECORDS_FIND)?;
            let found = statement.query_and_then(params![tenant.as_str(), key, bound(limit)], |row| rows::record_of(row, &tenant))?;
            found.collect()
        })
        .await
    }

    async fn remove_stuck(&self, key: &RecordKey) -> Result<Written, StoreFault> {
        let (key, clock) = (key.clone(), Arc::clone(&self.clock));
        self.write(move |connection| {
            let params = params![key.tenant.as_str(), key.key.as_str(), key.scope, clock.now().0];
            Ok(written(connection.prepare_cached(sql::RECORDS_REMOVE_STUCK)?.execute(params)?))
        })
        .await
    }

    async fn sweep_records(&self, limit: usize) -> Result<usize, StoreFault> {
        let clock = Arc::clone(&self.clock);
        self.write(move |connection| Ok(connection.prepare_cached(sql::RECORDS_SWEEP)?.execute(params![clock.now().0, bound(limit)])?))
            .await
    }
}

fn claim(connection: &Connection, row: &NewClaim, now: Timestamp) -> Result<Seen, Fault> {
    let key = &row.key;
    let params = params![
        key.tenant.as_str(),
        key.key.as_str(),
        key.scope,
        fingerprint_bytes(&row.fingerprint),
        row.claim_id.0.as_bytes(),
        now.0,
        millis(row.lease),
        millis(row.ttl),
    ];
    if connection.prepare_cached(sql::RECORDS_CLAIM)?.execute(params)? == 1 {
        return Ok(Seen::Won { fence: Fence(1) });
    }
    // The writer's transaction holds the file: what stood in the way a moment ago stands there still.
    let record = read(connection, key)?.ok_or_else(|| Fault::damaged("record"))?;
    Ok(Seen::Found { record: Box::new(record), now })
}

fn write(connection: &Connection, row: &Write, now: Timestamp) -> Result<Written, Fault> {
    let (state, lease, answer) = match &row.verb {
        Verb::Renew(lease) => (RecordState::Running, millis(*lease), None),
        Verb::Keep(answer) => (RecordState::Answered, 0, Some(answer.as_bytes())),
        Verb::Park(answer) => (RecordState::Parked, 0, answer.as_ref().map(|answer| answer.as_bytes())),
        Verb::Release => {
            let key = &row.key;
            let params = params![key.tenant.as_str(), key.key.as_str(), key.scope, row.claim_id.0.as_bytes(), row.fence.0];
            return Ok(written(connection.prepare_cached(sql::RECORDS_RELEASE)?.execute(params)?));
        }
    };
    let key = &row.key;
    let params = params![
        key.tenant.as_str(),
        key.key.as_str(),
        key.scope,
        row.claim_id.0.as_bytes(),
        row.fence.0,
        state_number(state),
        now.0,
        lease,
        answer,
    ];
    Ok(written(connection.prepare_cached(sql::RECORDS_FINISH)?.execute(params)?))
}

fn read(connection: &Connection, key: &RecordKey) -> Result<Option<Record>, Fault> {
    let mut statement = connection.prepare_cached(sql::RECORDS_READ)?;
    let mut found =
        statement.query_and_then(params![key.tenant.as_str(), key.key.as_str(), key.scope], |row| rows::record(row, key.clone()))?;
    found.next().transpose()
}

const fn written(count: usize) -> Written {
    if count == 0 { Written::Refused } else { Written::Applied }
}

pub(crate) fn millis(duration: Duration) -> i64 {
    // Far below the largest number of the column, so that a clock may be added to it.
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

/// A limit as SQL takes it.
pub(crate) fn bound(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
