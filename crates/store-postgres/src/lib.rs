//! The PostgreSQL store: all five port families on one database, for any number of nodes.
//!
//! In: calls of the ports. Out: what they promise. Statements are sent with their types and without a name, nothing is kept in a session, and locks
//! are row locks, so a transaction pooler may stand in between. Leases follow the database's clock. It never reads a decision from a replica.

mod apply;
mod connect;
mod directory;
mod fault;
mod inbox;
mod lent;
mod migrate;
mod outbox;
mod payments;
mod records;
mod rows;
pub mod same_transaction;
mod session;
mod statement;
mod tls;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use deadpool::Runtime;
use deadpool::managed::{Pool, PoolError};
use payonce_core::clock::Clock;
use payonce_core::ports::StoreFault;
use tokio_postgres::Row;

pub use crate::statement::{STATEMENTS, Statement};

use crate::connect::Connector;
use crate::fault::{Effect, chain};
use crate::session::{Params, Session};
use crate::tls::Address;

/// How statements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StatementMode {
    /// Each connection finds out whether it is direct (the server sees the socket that we opened). Then the server keeps the statements, which costs it a
    /// third of the work; else they are sent as [`Self::Typed`] does. Right in front of every pooler.
    #[default]
    Auto,
    /// Unnamed, with their types: one round trip, nothing kept. Right in front of every pooler.
    Typed,
    /// Named and kept by the server, except for batches. For a pooler that follows names (PgBouncer 1.21 with `max_prepared_statements`).
    Prepared,
}

/// How a store is connected.
#[derive(Clone)]
pub struct Options {
    /// At most so many connections. 1–1000.
    pub pool_size: usize,
    /// How long a connection may be waited for.
    pub connect_timeout: Duration,
    /// How long a piece of work (a transaction) may take. What is late is cancelled; whether it was written is then not known.
    pub statement_timeout: Duration,
    /// How statements are sent.
    pub statement_mode: StatementMode,
    /// Replaces the database's clock. For tests.
    pub clock: Option<Arc<dyn Clock>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            pool_size: 16,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(15),
            statement_mode: StatementMode::default(),
            clock: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("pool_size", &self.pool_size)
            .field("connect_timeout", &self.connect_timeout)
            .field("statement_timeout", &self.statement_timeout)
            .field("statement_mode", &self.statement_mode)
            .finish_non_exhaustive()
    }
}

/// See the crate. Cheap to clone: all clones share the pool.
#[derive(Clone)]
pub struct PostgresStore {
    pool: Pool<Connector>,
    mode: StatementMode,
    timeout: Duration,
    clock: Option<Arc<dyn Clock>>,
    /// Whether the last batch of claims met rows: then the next one reads in the same round trip.
    meets_rows: Arc<AtomicBool>,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("mode", &self.mode).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Connects to the database at `url` (`postgres://…`, see `sslmode` and `sslrootcert` there), once, to see that it answers. The schema comes with
    /// [`Self::migrate`].
    pub async fn connect(url: &str, options: Options) -> Result<Self, StoreFault> {
        let store = Self::lazy(url, options)?;
        let session = store.session().await?;
        session.within(Effect::None, async { session.run("SELECT 1").await.map_err(|failed| session.fault(failed, Effect::None)) }).await?;
        Ok(store)
    }

    /// As [`Self::connect`], but connects when it is first used.
    pub fn lazy(url: &str, options: Options) -> Result<Self, StoreFault> {
        let address = Address::parse(url, options.connect_timeout)?;
        let timeout = Some(options.connect_timeout);
        let pool = Pool::builder(Connector { address, mode: options.statement_mode })
            .max_size(options.pool_size.clamp(1, 1000))
            .runtime(Runtime::Tokio1)
            .wait_timeout(timeout)
            .create_timeout(timeout)
            .recycle_timeout(timeout)
            .build()
            .map_err(|error| StoreFault::Refused(error.to_string()))?;
        Ok(Self {
            pool,
            mode: options.statement_mode,
            timeout: options.statement_timeout,
            clock: options.clock,
            meets_rows: Arc::new(AtomicBool::new(false)),
        })
    }

    /// Brings the schema up. Safe to repeat and safe from several nodes at once. Returns the names of what was applied.
    pub async fn migrate(&self) -> Result<Vec<String>, StoreFault> {
        migrate::migrate(self).await
    }

    /// Refuses a schema that is not the one of this program, older or newer.
    pub async fn check_schema(&self) -> Result<(), StoreFault> {
        migrate::check(self).await
    }

    /// Whether the server sees our own socket, so that nothing stands in between and it may keep statements. Only found out in [`StatementMode::Auto`].
    pub async fn is_direct(&self) -> Result<bool, StoreFault> {
        Ok(self.session().await?.is_direct())
    }

    /// A connection. Nothing was sent where there is none.
    async fn session(&self) -> Result<Session, StoreFault> {
        self.session_for(self.timeout).await
    }

    /// A connection for work that may take so long.
    async fn session_for(&self, timeout: Duration) -> Result<Session, StoreFault> {
        match self.pool.get().await {
            Ok(object) => Ok(Session::new(object, timeout)),
            Err(PoolError::Backend(fault)) => Err(fault),
            Err(error) => Err(StoreFault::Unavailable(chain(&error))),
        }
    }

    /// Reads. Harmless, so it is tried once more where the connection turns out to be dead (the database was restarted).
    async fn rows(&self, statement: &'static Statement, params: Params<'_>) -> Result<Vec<Row>, StoreFault> {
        let session = self.session().await?;
        match read(&session, statement, params, Effect::None).await {
            Err(fault) if session.is_broken() => {
                tracing::debug!(%fault, statement = statement.name, "a read is tried again");
                drop(session);
                read(&self.session().await?, statement, params, Effect::None).await
            }
            done => done,
        }
    }

    /// A statement that changes rows and commits by itself, for the rows that it returns.
    async fn change(&self, statement: &'static Statement, params: Params<'_>) -> Result<Vec<Row>, StoreFault> {
        fault::repeating(|| async { read(&self.session().await?, statement, params, Effect::Commits).await }).await
    }

    /// A statement that changes rows and commits by itself, for their number.
    async fn count(&self, statement: &'static Statement, params: Params<'_>) -> Result<u64, StoreFault> {
        let once = || async {
            let session = self.session().await?;
            let work = async { session.count(statement, params).await.map_err(|failed| session.fault(failed, Effect::Commits)) };
            session.within(Effect::Commits, work).await
        };
        fault::repeating(once).await
    }

    /// What is passed as the time: the test's clock, or nothing, and then the database takes its own.
    fn now(&self) -> Option<i64> {
        self.clock.as_ref().map(|clock| clock.now().0)
    }
}

async fn read(session: &Session, statement: &'static Statement, params: Params<'_>, effect: Effect) -> Result<Vec<Row>, StoreFault> {
    let work = async { session.rows(statement, params).await.map_err(|failed| session.fault(failed, effect)) };
    session.within(effect, work).await
}
