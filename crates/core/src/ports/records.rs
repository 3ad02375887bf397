//! The guard's table. Batches come from one writer per process (group commit); each row of a batch has its own result.
//!
//! Leases use the store's own clock (PostgreSQL: `clock_timestamp()` or `now()`; SQLite and memory: the clock they were built with), so
//! that nodes with wrong clocks agree. A store is built with an optional clock that tests set.

use std::time::Duration;

use async_trait::async_trait;

use super::StoreFault;
use crate::clock::Timestamp;
use crate::record::{ClaimId, Fence, Record, RecordKey, RecordState};
use crate::secret::{KeyedDigest, Sealed};

/// A claim on a key that nobody is known to hold.
#[derive(Clone, Debug)]
pub struct NewClaim {
    /// Which record.
    pub key: RecordKey,
    /// Of which request.
    pub fingerprint: KeyedDigest,
    /// Names this run.
    pub claim_id: ClaimId,
    /// How long the lease holds from now.
    pub lease: Duration,
    /// How long the answer will be kept from now.
    pub ttl: Duration,
}

/// What a claim met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The row was absent and is ours now.
    Won {
        /// The new row's fence: 1.
        fence: Fence,
    },
    /// A row stands there. Decide on it; `now` is the store's clock at the time it was read.
    Found {
        /// The row.
        record: Box<Record>,
        /// The store's clock.
        now: Timestamp,
    },
}

/// Takes a row over that was seen lapsed, parked or expired: an update guarded by what was seen.
#[derive(Clone, Debug)]
pub struct TakeOver {
    /// Which record.
    pub key: RecordKey,
    /// The run that was seen.
    pub seen_claim: ClaimId,
    /// Its fence.
    pub seen_fence: Fence,
    /// In which state it was seen. A running row is only taken if its lease has lapsed and an answered one only if it has expired, both by the store's clock.
    pub seen_state: RecordState,
    /// The new run.
    pub claim_id: ClaimId,
    /// The new request's fingerprint (the same, unless an expired row is reused).
    pub fingerprint: KeyedDigest,
    /// How long the new lease holds.
    pub lease: Duration,
    /// For an expired row that is reused: how long its new answer will be kept. A resumed row keeps its expiry.
    pub ttl: Option<Duration>,
}

/// What a holder does to its row. Guarded by claim and fence; a row that is no longer its own is left alone.
#[derive(Clone, Debug)]
pub struct Write {
    /// Which record.
    pub key: RecordKey,
    /// The holder.
    pub claim_id: ClaimId,
    /// Its fence.
    pub fence: Fence,
    /// What to do.
    pub verb: Verb,
}

/// See [`Write`].
#[derive(Clone, Debug)]
pub enum Verb {
    /// Holds on for so long from now. Only a running row.
    Renew(Duration),
    /// Keeps the answer: the row is answered. Only a running row.
    Keep(Sealed),
    /// Nothing happened: the row goes. Only a running row.
    Release,
    /// The outcome is unknown: the row is parked, with the answer that was given if there was one. Only a running row.
    Park(Option<Sealed>),
}

/// Whether a guarded write met its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Done.
    Applied,
    /// The row has another claim or fence, is gone, or is no longer running: the late writer is refused.
    Refused,
}

/// The guard's table.
#[async_trait]
pub trait Records: Send + Sync + 'static {
    /// Claims a batch in one transaction: absent rows are inserted in key order by one statement, the rest are read by a second
    /// one with a fresh snapshot. If two rows of the batch name one key, the first is inserted and the other is answered `Found`.
    /// The results are in the order of `rows`. After a lost answer the caller reads back by `claim_id` (a `Found` row with its own claim is won).
    async fn claim(&self, rows: &[NewClaim]) -> Result<Vec<Seen>, StoreFault>;

    /// Takes one row over; the new fence, or `None` if the row is no longer as seen.
    async fn take_over(&self, row: &TakeOver) -> Result<Option<Fence>, StoreFault>;

    /// Parks a lapsed running row of a route that is not resumable, guarded by what was seen. Whether it met the row.
    async fn park_lapsed(&self, key: &RecordKey, seen_claim: ClaimId, seen_fence: Fence) -> Result<Written, StoreFault>;

    /// Renews and ends a batch in one transaction, locking in key order. The results are in the order of `rows`.
    async fn write(&self, rows: &[Write]) -> Result<Vec<Written>, StoreFault>;

    /// Reads rows as they are, with the store's clock. In the order of `keys`.
    async fn read(&self, keys: &[RecordKey]) -> Result<(Vec<Option<Record>>, Timestamp), StoreFault>;

    /// Rows of a tenant whose key is `key`, in any scope; with no key, the newest `limit` rows. Newest first, at most `limit`.
    async fn find(&self, tenant: &crate::id::TenantId, key: Option<&str>, limit: usize) -> Result<Vec<Record>, StoreFault>;

    /// An operator removes a parked or lapsed row after having made sure of the outcome. Never removes a row whose lease is live.
    async fn remove_stuck(&self, key: &RecordKey) -> Result<Written, StoreFault>;

    /// Removes at most `limit` answered rows that expired before the store's now. How many went.
    async fn sweep_records(&self, limit: usize) -> Result<usize, StoreFault>;
}
