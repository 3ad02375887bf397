//! The connections of a store: one that writes, some that only read.
//!
//! In: a path and options. Out: connections with the settings that everything else here relies on. A new file is made for its owner only.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use payonce_core::ports::StoreFault;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use crate::fault::Fault;

/// How many statements a connection keeps prepared: more than there are.
const CACHED_STATEMENTS: usize = 128;

/// The connection of the writer.
pub(crate) fn writing(path: &Path, busy_timeout: Duration) -> Result<Connection, StoreFault> {
    let connection = if is_memory(path) { Connection::open_in_memory() } else { make_private(path).and_then(|()| Connection::open(path)) };
    connection.and_then(|c| configure(&c, busy_timeout, true).map(|()| c)).map_err(|error| Fault::from(error).0)
}

/// Whether the store lives in memory only, where every connection would be a database of its own.
pub(crate) fn is_memory(path: &Path) -> bool {
    path.as_os_str() == ":memory:" || path.as_os_str().is_empty()
}

/// Makes the file if it is not there, readable by its owner only: it holds payments. SQLite gives its companions the same mode.
fn make_private(path: &Path) -> rusqlite::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let cannot_open = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
    let told = |error: std::io::Error| rusqlite::Error::SqliteFailure(cannot_open, Some(format!("{}: {error}", path.display())));
    options.open(path).map(drop).map_err(told)
}

fn configure(connection: &Connection, busy_timeout: Duration, writes: bool) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    connection.busy_timeout(busy_timeout)?;
    if writes {
        // WAL: readers and the writer do not wait for each other. In memory the answer is "memory", which is as good.
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    }
    // FULL: a commit that was answered survives a power cut. NORMAL would forget claims.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(())
}

/// A few connections that only read.
#[derive(Debug)]
pub(crate) struct Readers {
    idle: Mutex<Vec<Connection>>,
    free: Arc<Semaphore>,
}

impl Readers {
    pub(crate) fn open(path: &Path, count: usize, busy_timeout: Duration) -> Result<Self, StoreFault> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let one = || {
            let connection = Connection::open_with_flags(path, flags)?;
            configure(&connection, busy_timeout, false)?;
            Ok(connection)
        };
        let idle: rusqlite::Result<Vec<Connection>> = (0..count).map(|_| one()).collect();
        let idle = idle.map_err(|error| Fault::from(error).0)?;
        Ok(Self { idle: Mutex::new(idle), free: Arc::new(Semaphore::new(count)) })
    }

    /// Reads on a thread that may block.
    pub(crate) async fn read<T, W>(self: &Arc<Self>, work: W) -> Result<T, StoreFault>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let gone = || StoreFault::Unavailable("the store is shutting down".to_owned());
        let permit = Arc::clone(&self.free).acquire_owned().await.map_err(|_| gone())?;
        let readers = Arc::clone(self);
        let reading = tokio::task::spawn_blocking(move || {
            let taken = readers.lock().pop();
            let result = match &taken {
                Some(connection) => work(connection).map_err(|fault| fault.0),
                None => Err(StoreFault::Unavailable("no reader is left".to_owned())),
            };
            readers.lock().extend(taken);
            drop(permit);
            result
        });
        reading.await.unwrap_or_else(|_| Err(gone()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
