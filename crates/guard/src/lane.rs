//! A queue that one writer empties: whatever came while the last batch was being written becomes the next one. No timer.
//!
//! What comes in: rows, one caller each. What goes out: each caller's own result. The queue is bounded: one kind of caller is refused when
//! it is full, another waits. It never puts two rows of one key into a batch where the store could not tell which was meant to come last.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use payonce_core::ports::StoreFault;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

/// Why a row was not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitFault {
    /// The queue is full. Nothing was written.
    #[error("too many requests are waiting for the store")]
    Full,
    /// The writer has been shut down. Nothing was written.
    #[error("the writer has been shut down")]
    Closed,
    /// What the store said.
    #[error(transparent)]
    Store(#[from] StoreFault),
}

impl CommitFault {
    /// Whether the row may have been written all the same.
    pub const fn is_ambiguous(&self) -> bool {
        match self {
            Self::Store(StoreFault::Ambiguous(_)) => true,
            Self::Full | Self::Closed | Self::Store(StoreFault::Unavailable(_) | StoreFault::Retry(_) | StoreFault::Refused(_)) => false,
        }
    }
}

/// What a lane does with a batch.
pub(crate) trait Commit: Send + Sync + 'static {
    type Row: Send + Sync + 'static;
    type Out: Send + 'static;
    type Key: Eq + Hash + Send;

    /// Rows with the same key never share a batch; `None` for rows that may.
    fn apart(row: &Self::Row) -> Option<Self::Key>;

    /// Whether nobody needs the row written once its caller has gone.
    fn idle_without_caller(row: &Self::Row) -> bool;

    /// Writes a batch: one result for each row, in order.
    fn commit(&self, rows: &[Self::Row]) -> impl Future<Output = Vec<Result<Self::Out, StoreFault>>> + Send;
}

struct Job<C: Commit> {
    row: C::Row,
    reply: oneshot::Sender<Result<C::Out, StoreFault>>,
}

pub(crate) struct Lane<C: Commit> {
    queue: mpsc::Sender<Job<C>>,
    closing: Arc<Notify>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl<C: Commit> Lane<C> {
    /// Starts the writer. `queue_rows` wait at most, `batch_rows` go at once at most.
    pub(crate) fn start(commit: C, queue_rows: usize, batch_rows: usize) -> Self {
        let (queue, jobs) = mpsc::channel(queue_rows.max(1));
        let closing = Arc::new(Notify::new());
        let writer = tokio::spawn(run(commit, jobs, closing.clone(), batch_rows.max(1)));
        Self { queue, closing, writer: Mutex::new(Some(writer)) }
    }

    /// Writes a row, or refuses at once if the queue is full.
    pub(crate) async fn offer(&self, row: C::Row) -> Result<C::Out, CommitFault> {
        let (reply, result) = oneshot::channel();
        self.queue.try_send(Job { row, reply }).map_err(|fault| match fault {
            mpsc::error::TrySendError::Full(_) => CommitFault::Full,
            mpsc::error::TrySendError::Closed(_) => CommitFault::Closed,
        })?;
        received(result.await)
    }

    /// Writes a row; waits for room.
    pub(crate) async fn push(&self, row: C::Row) -> Result<C::Out, CommitFault> {
        let (reply, result) = oneshot::channel();
        self.queue.send(Job { row, reply }).await.map_err(|_| CommitFault::Closed)?;
        received(result.await)
    }

    /// Takes no more rows, writes those that wait, and ends.
    pub(crate) async fn drain(&self) {
        self.closing.notify_one();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // Its panics were caught batch by batch; a cancelled one has nothing left to say.
            let _ = writer.await;
        }
    }
}

fn received<T>(result: Result<Result<T, StoreFault>, oneshot::error::RecvError>) -> Result<T, CommitFault> {
    match result {
        Ok(result) => result.map_err(CommitFault::Store),
        // The writer went while it held the row, so nobody knows.
        Err(_) => Err(CommitFault::Store(StoreFault::Ambiguous("the writer ended".to_owned()))),
    }
}

async fn run<C: Commit>(commit: C, mut jobs: mpsc::Receiver<Job<C>>, closing: Arc<Notify>, batch_rows: usize) {
    let mut waiting: VecDeque<Job<C>> = VecDeque::new();
    let mut arrived = Vec::new();
    let mut open = true;
    loop {
        if waiting.is_empty() {
            tokio::select! {
                biased;
                () = closing.notified(), if open => {
                    jobs.close();
                    open = false;
                    continue;
                }
                count = jobs.recv_many(&mut arrived, batch_rows) => if count == 0 { return },
            }
        } else {
            while waiting.len() + arrived.len() < batch_rows
                && let Ok(job) = jobs.try_recv()
            {
                arrived.push(job);
            }
        }
        waiting.extend(arrived.drain(..).filter(|job| !(job.reply.is_closed() && C::idle_without_caller(&job.row))));
        let (rows, replies) = next_batch(&mut waiting, batch_rows);
        if rows.is_empty() {
            continue;
        }
        // After a panic no row has a result.
        let results = AssertUnwindSafe(commit.commit(&rows)).catch_unwind().await.unwrap_or_default();
        let mut results = results.into_iter();
        for reply in replies {
            let result = results.next().unwrap_or_else(|| Err(StoreFault::Ambiguous("the store panicked or miscounted".to_owned())));
            // A caller that has gone does not need its result.
            let _ = reply.send(result);
        }
    }
}

type Batch<C> = (Vec<<C as Commit>::Row>, Vec<oneshot::Sender<Result<<C as Commit>::Out, StoreFault>>>);

/// Takes the next batch off the queue; a second row of a key stays, in its order, for the batch after.
fn next_batch<C: Commit>(waiting: &mut VecDeque<Job<C>>, batch_rows: usize) -> Batch<C> {
    let mut taken = HashSet::new();
    let mut kept = VecDeque::new();
    let (mut rows, mut replies) = (Vec::new(), Vec::new());
    while rows.len() < batch_rows
        && let Some(job) = waiting.pop_front()
    {
        if C::apart(&job.row).is_none_or(|key| taken.insert(key)) {
            rows.push(job.row);
            replies.push(job.reply);
        } else {
            kept.push_back(job);
        }
    }
    kept.append(waiting);
    *waiting = kept;
    (rows, replies)
}

impl<C: Commit> fmt::Debug for Lane<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lane({} waiting)", self.queue.max_capacity() - self.queue.capacity())
    }
}
