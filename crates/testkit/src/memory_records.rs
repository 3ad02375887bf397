//! The guard's table in memory: the shortest true reading of the `Records` port, and the model that real stores are compared with.
//!
//! One mutex stands for one transaction at a time. Leases and expiry follow the clock it was built with, which a test sets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use payonce_core::clock::{Clock, Timestamp};
use payonce_core::id::TenantId;
use payonce_core::ports::StoreFault;
use payonce_core::ports::records::{NewClaim, Records, Seen, TakeOver, Verb, Write, Written};
use payonce_core::record::{ClaimId, Fence, Record, RecordKey, RecordState};

/// See the module.
pub struct MemoryRecords {
    clock: Arc<dyn Clock>,
    rows: Mutex<BTreeMap<RecordKey, Record>>,
}

impl MemoryRecords {
    /// An empty table whose leases follow `clock` (for one that a test moves: [`payonce_core::clock::Fixed`]).
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, rows: Mutex::default() }
    }

    /// The row as it is.
    pub fn row(&self, key: &RecordKey) -> Option<Record> {
        self.rows().get(key).cloned()
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows().is_empty()
    }

    fn rows(&self) -> std::sync::MutexGuard<'_, BTreeMap<RecordKey, Record>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for MemoryRecords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MemoryRecords({} rows)", self.len())
    }
}

#[async_trait]
impl Records for MemoryRecords {
    async fn claim(&self, batch: &[NewClaim]) -> Result<Vec<Seen>, StoreFault> {
        let now = self.clock.now();
        let mut rows = self.rows();
        let seen = batch.iter().map(|row| match rows.get(&row.key) {
            Some(record) => Seen::Found { record: Box::new(record.clone()), now },
            None => {
                let fresh = Record {
                    key: row.key.clone(),
                    fingerprint: row.fingerprint.clone(),
                    claim_id: row.claim_id,
                    fence: Fence(1),
                    state: RecordState::Running,
                    created_at: now,
                    locked_until: now.plus(row.lease),
                    expires_at: now.plus(row.ttl),
                    answer: None,
                };
                rows.insert(row.key.clone(), fresh);
                Seen::Won { fence: Fence(1) }
            }
        });
        Ok(seen.collect())
    }

    async fn take_over(&self, row: &TakeOver) -> Result<Option<Fence>, StoreFault> {
        let now = self.clock.now();
        let mut rows = self.rows();
        let as_seen = |r: &&mut Record| r.claim_id == row.seen_claim && r.fence == row.seen_fence && r.state == row.seen_state;
        let Some(record) = rows.get_mut(&row.key).filter(as_seen) else { return Ok(None) };
        let reused = record.state == RecordState::Answered;
        let free = match record.state {
            RecordState::Running => record.locked_until <= now,
            RecordState::Parked => true,
            RecordState::Answered => record.expires_at <= now,
        };
        if !free {
            return Ok(None);
        }
        record.claim_id = row.claim_id;
        record.fence = Fence(record.fence.0 + 1);
        record.state = RecordState::Running;
        record.fingerprint = row.fingerprint.clone();
        record.locked_until = now.plus(row.lease);
        record.answer = None;
        if let Some(ttl) = row.ttl {
            record.expires_at = now.plus(ttl);
        }
        if reused {
            record.created_at = now;
        }
        Ok(Some(record.fence))
    }

    async fn park_lapsed(&self, key: &RecordKey, seen_claim: ClaimId, seen_fence: Fence) -> Result<Written, StoreFault> {
        let now = self.clock.now();
        let mut rows = self.rows();
        let lapsed =
            |r: &&mut Record| r.claim_id == seen_claim && r.fence == seen_fence && r.state == RecordState::Running && r.locked_until <= now;
        Ok(match rows.get_mut(key).filter(lapsed) {
            Some(record) => {
                record.state = RecordState::Parked;
                Written::Applied
            }
            None => Written::Refused,
        })
    }

    async fn write(&self, batch: &[Write]) -> Result<Vec<Written>, StoreFault> {
        let now = self.clock.now();
        let mut rows = self.rows();
        let written = batch.iter().map(|row| {
            let held = |r: &&mut Record| r.claim_id == row.claim_id && r.fence == row.fence && r.state == RecordState::Running;
            let Some(record) = rows.get_mut(&row.key).filter(held) else { return Written::Refused };
            match &row.verb {
                Verb::Renew(lease) => record.locked_until = now.plus(*lease),
                Verb::Keep(answer) => {
                    record.state = RecordState::Answered;
                    record.answer = Some(answer.clone());
                }
                Verb::Park(answer) => {
                    record.state = RecordState::Parked;
                    record.answer.clone_from(answer);
                }
                Verb::Release => {
                    rows.remove(&row.key);
                }
            }
            Written::Applied
        });
        Ok(written.collect())
    }

    async fn read(&self, keys: &[RecordKey]) -> Result<(Vec<Option<Record>>, Timestamp), StoreFault> {
        let rows = self.rows();
        Ok((keys.iter().map(|key| rows.get(key).cloned()).collect(), self.clock.now()))
    }

    async fn find(&self, tenant: &TenantId, key: Option<&str>, limit: usize) -> Result<Vec<Record>, StoreFault> {
        let rows = self.rows();
        let fits = |r: &&Record| r.key.tenant == *tenant && key.is_none_or(|key| r.key.key.as_str() == key);
        let mut found: Vec<Record> = rows.values().filter(fits).cloned().collect();
        found.sort_by_key(|record| std::cmp::Reverse(record.created_at));
        found.truncate(limit);
        Ok(found)
    }

    async fn remove_stuck(&self, key: &RecordKey) -> Result<Written, StoreFault> {
        let now = self.clock.now();
        let mut rows = self.rows();
        let stuck = rows.get(key).is_some_and(|record| match record.state {
            RecordState::Parked => true,
            RecordState::Running => record.locked_until <= now,
            RecordState::Answered => false,
        });
        if !stuck {
            return Ok(Written::Refused);
        }
        rows.remove(key);
        Ok(Written::Applied)
    }

    async fn sweep_records(&self, limit: usize) -> Result<usize, StoreFault> {
        let now = self.clock.now();
        let mut rows = self.rows();
        let expired: Vec<RecordKey> =
            rows.values().filter(|r| r.state == RecordState::Answered && r.expires_at <= now).take(limit).map(|r| r.key.clone()).collect();
        for key in &expired {
            rows.remove(key);
        }
        Ok(expired.len())
    }
}
