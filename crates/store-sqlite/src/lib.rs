//! The embedded SQLite store: all five port families on one file, for one machine.
//!
//! In: calls of the ports. Out: what they promise. One thread writes, with group commit and `synchronous=FULL`; a few connections read. Two
//! processes may share a file. It never answers a write before it is committed, and its clock is the one it was opened with.

mod apply;
mod directory;
mod fault;
mod inbox;
mod migrate;
mod open;
mod outbox;
mod payments;
mod records;
mod rows;
mod statements;
mod writer;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use payonce_core::clock::Clock;
use payonce_core::ports::StoreFault;
use rusqlite::Connection;

pub use crate::statements::STATEMENTS;

use crate::fault::{Fault, Undo};
use crate::open::Readers;
use crate::writer::Writer;

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// Stands for the database's clock: leases and expiry of records follow it.
    pub clock: Arc<dyn Clock>,
    /// How many connections read. 1–64; a store in memory has none.
    pub readers: usize,
    /// How long a statement waits for another process that holds the file.
    pub busy_timeout: Duration,
}

impl Options {
    /// Four readers, five seconds.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, readers: 4, busy_timeout: Duration::from_secs(5) }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("readers", &self.readers).field("busy_timeout", &self.busy_timeout).finish_non_exhaustive()
    }
}

/// See the crate. Cheap to clone: all clones share the connections.
#[derive(Clone)]
pub struct SqliteStore {
    writer: Writer,
    /// None in memory, where everything goes through the writer.
    readers: Option<Arc<Readers>>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("readers", &self.readers).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the file, which is made (mode 0600) if it is not there; `:memory:` lives as long as the store. The schema comes with
    /// [`Self::migrate`]. Blocks shortly.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, StoreFault> {
        let path = path.as_ref();
        let connection = open::writing(path, options.busy_timeout)?;
        let readers = match open::is_memory(path) {
            true => None,
            false => Some(Arc::new(Readers::open(path, options.readers.clamp(1, 64), options.busy_timeout)?)),
        };
        Ok(Self { writer: Writer::start(connection)?, readers, clock: options.clock })
    }

    /// Brings the schema up. Safe to repeat and safe from several processes at once. Returns the names of what was applied.
    pub async fn migrate(&self) -> Result<Vec<String>, StoreFault> {
        let clock = Arc::clone(&self.clock);
        self.write(move |connection| Ok(migrate::migrate(connection, clock.now())?)).await
    }

    /// Refuses a schema that is not the one of this program, older or newer.
    pub async fn check_schema(&self) -> Result<(), StoreFault> {
        self.read(migrate::check).await
    }

    /// Does `work` on the writer, in a transaction, and answers after the commit.
    async fn write<T, W>(&self, work: W) -> Result<T, StoreFault>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, Undo<T>> + Send + 'static,
    {
        self.writer.write(work).await
    }

    /// Reads what was committed.
    async fn read<T, W>(&self, work: W) -> Result<T, StoreFault>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        match &self.readers {
            Some(readers) => readers.read(work).await,
            None => self.writer.write(move |connection| Ok(work(connection)?)).await,
        }
    }
}
