//! The one writer: a thread with its own connection, and group commit.
//!
//! In: pieces of work over a bounded queue. Out: their answers, after the commit. Whatever waits when a transaction begins (at most
//! [`GROUP_MAX`]) shares it, each under its own savepoint, so that one that fails harms no other. There is no timer: a lone piece goes out at once.
//! It never answers before the commit has returned.

use std::panic::{AssertUnwindSafe, catch_unwind};

use payonce_core::ports::StoreFault;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::fault::{Fault, Undo};

/// At most so many pieces of work share a transaction.
pub(crate) const GROUP_MAX: usize = 256;
/// At most so many wait; beyond that callers wait for a place.
pub(crate) const QUEUE_MAX: usize = 1024;

/// A piece of work in the queue.
pub(crate) trait Job: Send {
    /// Does it, inside the group's transaction.
    fn run(&mut self, connection: &Connection);
    /// Answers, now that the transaction has ended so.
    fn end(self: Box<Self>, committed: Result<(), StoreFault>);
}

struct Task<T, W> {
    work: Option<W>,
    result: Option<Result<T, StoreFault>>,
    reply: oneshot::Sender<Result<T, StoreFault>>,
}

impl<T, W> Job for Task<T, W>
where
    T: Send,
    W: FnOnce(&Connection) -> Result<T, Undo<T>> + Send,
{
    fn run(&mut self, connection: &Connection) {
        let Some(work) = self.work.take() else { return };
        self.result = Some(in_savepoint(connection, work));
    }

    fn end(self: Box<Self>, committed: Result<(), StoreFault>) {
        let result = match (self.result, committed) {
            // Its own fault stands: it was undone before the transaction ended.
            (Some(Err(fault)), _) => Err(fault),
            (Some(Ok(answer)), Ok(())) => Ok(answer),
            (Some(Ok(_)) | None, Err(fault)) => Err(fault),
            (None, Ok(())) => Err(StoreFault::Unavailable("the writer skipped this piece of work".to_owned())),
        };
        // The caller may be gone; what was written stays.
        drop(self.reply.send(result));
    }
}

fn in_savepoint<T>(connection: &Connection, work: impl FnOnce(&Connection) -> Result<T, Undo<T>>) -> Result<T, StoreFault> {
    execute(connection, "SAVEPOINT job")?;
    // A defect in one piece of work must not take the writer, and with it the whole store, down.
    let done = catch_unwind(AssertUnwindSafe(|| work(connection)));
    let (keep, result) = match done {
        Ok(Ok(answer)) => (true, Ok(answer)),
        Ok(Err(Undo::Answer(answer))) => (false, Ok(answer)),
        Ok(Err(Undo::Fault(Fault(fault)))) => (false, Err(fault)),
        Err(_) => (false, Err(StoreFault::Refused("the store's own code failed".to_owned()))),
    };
    // Some errors (disk full, I/O) end the whole transaction by themselves; the group's runner sees to that.
    if !connection.is_autocommit() {
        if !keep {
            execute(connection, "ROLLBACK TO job")?;
        }
        execute(connection, "RELEASE job")?;
    }
    result
}

fn execute(connection: &Connection, sql: &str) -> Result<(), StoreFault> {
    let executed = connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
    executed.map(|_| ()).map_err(|error| Fault::from(error).0)
}

/// The queue's other end.
#[derive(Clone, Debug)]
pub(crate) struct Writer(mpsc::Sender<Box<dyn Job>>);

impl std::fmt::Debug for dyn Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Job")
    }
}

impl Writer {
    /// Starts the thread on this connection. It ends when the last handle is gone and the queue is empty.
    pub(crate) fn start(connection: Connection) -> Result<Self, StoreFault> {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let thread = std::thread::Builder::new().name("payonce-sqlite".to_owned());
        thread.spawn(move || run(&connection, receiver)).map_err(|error| StoreFault::Unavailable(error.to_string()))?;
        Ok(Self(sender))
    }

    /// Does `work` in a transaction and answers after its commit.
    pub(crate) async fn write<T, W>(&self, work: W) -> Result<T, StoreFault>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, Undo<T>> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let task = Task { work: Some(work), result: None, reply };
        let stopped = || StoreFault::Unavailable("the store's writer has stopped".to_owned());
        self.0.send(Box::new(task)).await.map_err(|_| stopped())?;
        // A reply that is dropped unanswered: the thread died somewhere around the commit.
        answer.await.unwrap_or_else(|_| Err(StoreFault::Ambiguous("the store's writer stopped".to_owned())))
    }
}

fn run(connection: &Connection, mut queue: mpsc::Receiver<Box<dyn Job>>) {
    while let Some(first) = queue.blocking_recv() {
        let mut group = vec![first];
        while group.len() < GROUP_MAX {
            match queue.try_recv() {
                Ok(job) => group.push(job),
                Err(_) => break,
            }
        }
        let mut waiting = group.into_iter();
        while waiting.len() > 0 {
            run_group(connection, &mut waiting);
        }
    }
}

/// One transaction over as many of `waiting` as it survives.
fn run_group(connection: &Connection, waiting: &mut std::vec::IntoIter<Box<dyn Job>>) {
    // IMMEDIATE: the lock that other processes respect is taken at the start, where waiting for it is harmless.
    if let Err(fault) = execute(connection, "BEGIN IMMEDIATE") {
        end_all(waiting, &Err(fault));
        return;
    }
    let mut done = Vec::with_capacity(waiting.len());
    for mut job in waiting.by_ref() {
        job.run(connection);
        done.push(job);
        if connection.is_autocommit() {
            // The error of this one ended the transaction: those before it were undone with it. The rest get a new transaction.
            end_all(done, &Err(StoreFault::Unavailable("the transaction was undone by the disk or by lack of memory".to_owned())));
            return;
        }
    }
    let committed = commit(connection);
    end_all(done, &committed);
}

fn commit(connection: &Connection) -> Result<(), StoreFault> {
    execute(connection, "COMMIT").map_err(|fault| {
        if connection.is_autocommit() {
            // SQLite ended the transaction by itself while it wrote: what is on the disk is told by reading it back.
            return StoreFault::Ambiguous(fault.to_string());
        }
        match execute(connection, "ROLLBACK") {
            Ok(()) => StoreFault::Unavailable(fault.to_string()),
            Err(_) => StoreFault::Ambiguous(fault.to_string()),
        }
    })
}

fn end_all(jobs: impl IntoIterator<Item = Box<dyn Job>>, committed: &Result<(), StoreFault>) {
    for job in jobs {
        job.end(committed.clone());
    }
}
