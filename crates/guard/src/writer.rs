//! Group commit over the guard's table: many runs share one transaction, and each still gets its own result.
//!
//! Claims and holders' writes (renew, keep, release, park) go through a lane each, so a finish never waits behind claims; reads have a third,
//! so that many waiting repeats cost one statement. A batch is what came while the last one was being written. Back-pressure refuses
//! claims only: a holder's write waits for room, because losing it would lose the truth about money.
//!
//! A batch that failed or whose commit was lost is taken apart in [`settle`]. Nothing here runs without a tokio runtime.

mod settle;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use payonce_core::clock::Timestamp;
use payonce_core::ports::StoreFault;
use payonce_core::ports::records::{NewClaim, Records, Seen, TakeOver, Verb, Write, Written};
use payonce_core::record::{ClaimId, Fence, Record, RecordKey};

pub use crate::lane::CommitFault;
use crate::lane::{Commit, Lane};

/// The writer's limits.
#[derive(Clone, Copy, Debug)]
pub struct WriterLimits {
    /// So many rows go in one transaction at most.
    pub batch_rows: usize,
    /// So many claims wait at most; the next is refused.
    pub queued_claims: usize,
    /// So many holders' writes are queued at most; the next waits for room.
    pub queued_writes: usize,
    /// A store call that takes longer counts as lost: it may or may not have been applied.
    pub store_call: Duration,
}

impl Default for WriterLimits {
    fn default() -> Self {
        Self { batch_rows: 256, queued_claims: 4096, queued_writes: 4096, store_call: Duration::from_secs(15) }
    }
}

/// One writer for one store. Share it in an `Arc` or through the [`Guard`](crate::Guard).
pub struct GroupCommit {
    claims: Lane<Claims>,
    writes: Lane<Writes>,
    reads: Lane<Reads>,
    table: Table,
}

impl GroupCommit {
    /// Starts the writer on `records`. Must be called inside a tokio runtime.
    pub fn start(records: Arc<dyn Records>, limits: WriterLimits) -> Self {
        let table = Table { records, call: limits.store_call };
        Self {
            claims: Lane::start(Claims(table.clone()), limits.queued_claims, limits.batch_rows),
            writes: Lane::start(Writes(table.clone()), limits.queued_writes, limits.batch_rows),
            reads: Lane::start(Reads(table.clone()), limits.queued_claims, limits.batch_rows),
            table,
        }
    }

    /// Claims a row. Refused with [`CommitFault::Full`] when too many wait.
    pub async fn claim(&self, row: NewClaim) -> Result<Seen, CommitFault> {
        self.claims.offer(row).await
    }

    /// Writes what a holder does to its row.
    pub async fn write(&self, row: Write) -> Result<Written, CommitFault> {
        self.writes.push(row).await
    }

    /// Reads a row, with the store's clock at that time.
    pub async fn read(&self, key: RecordKey) -> Result<(Option<Record>, Timestamp), CommitFault> {
        self.reads.offer(key).await
    }

    /// Takes a row over; the new fence, or `None` if it is no longer as seen. A lost answer is settled by reading back.
    pub async fn take_over(&self, row: &TakeOver) -> Result<Option<Fence>, CommitFault> {
        settle::take_over(&self.table, row).await.map_err(CommitFault::Store)
    }

    /// Parks a lapsed row of a route that cannot resume.
    pub async fn park_lapsed(&self, key: &RecordKey, seen_claim: ClaimId, seen_fence: Fence) -> Result<Written, CommitFault> {
        // A lost answer needs no settling: the caller only learns that the outcome is unknown, which holds either way.
        self.table.call(self.table.records.park_lapsed(key, seen_claim, seen_fence)).await.map_err(CommitFault::Store)
    }

    /// Refuses new claims and reads, and writes those that wait.
    pub async fn drain_claims(&self) {
        self.claims.drain().await;
        self.reads.drain().await;
    }

    /// Refuses new writes, writes those that wait, and ends. Call it when nothing runs any more.
    pub async fn drain_writes(&self) {
        self.writes.drain().await;
    }
}

impl fmt::Debug for GroupCommit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupCommit").field("claims", &self.claims).field("writes", &self.writes).finish_non_exhaustive()
    }
}

/// The store, with a limit on every call.
#[derive(Clone)]
pub(crate) struct Table {
    pub(crate) records: Arc<dyn Records>,
    call: Duration,
}

impl Table {
    pub(crate) async fn call<T>(&self, call: impl Future<Output = Result<T, StoreFault>>) -> Result<T, StoreFault> {
        match tokio::time::timeout(self.call, call).await {
            Ok(result) => result,
            Err(_) => Err(StoreFault::Ambiguous("the store did not answer in time".to_owned())),
        }
    }
}

struct Claims(Table);
struct Writes(Table);
struct Reads(Table);

impl Commit for Claims {
    type Row = NewClaim;
    type Out = Seen;
    type Key = ();

    fn apart(_: &NewClaim) -> Option<()> {
        // The store answers the second claim of a key in one batch with `Found`.
        None
    }

    fn idle_without_caller(_: &NewClaim) -> bool {
        // A claim that nobody will run would only block its key.
        true
    }

    async fn commit(&self, rows: &[NewClaim]) -> Vec<Result<Seen, StoreFault>> {
        settle::claim(&self.0, rows).await
    }
}

impl Commit for Writes {
    type Row = Write;
    type Out = Written;
    type Key = RecordKey;

    fn apart(row: &Write) -> Option<RecordKey> {
        // A renewal and the end of the same run must not meet in one UPDATE, which would apply only one of them.
        Some(row.key.clone())
    }

    fn idle_without_caller(row: &Write) -> bool {
        match row.verb {
            Verb::Renew(_) => true,
            Verb::Keep(_) | Verb::Release | Verb::Park(_) => false,
        }
    }

    async fn commit(&self, rows: &[Write]) -> Vec<Result<Written, StoreFault>> {
        settle::write(&self.0, rows).await
    }
}

impl Commit for Reads {
    type Row = RecordKey;
    type Out = (Option<Record>, Timestamp);
    type Key = ();

    fn apart(_: &RecordKey) -> Option<()> {
        None
    }

    fn idle_without_caller(_: &RecordKey) -> bool {
        true
    }

    async fn commit(&self, rows: &[RecordKey]) -> Vec<Result<(Option<Record>, Timestamp), StoreFault>> {
        match self.0.call(self.0.records.read(rows)).await {
            Ok((records, now)) => records.into_iter().map(|record| Ok((record, now))).collect(),
            Err(fault) => rows.iter().map(|_| Err(fault.clone())).collect(),
        }
    }
}
