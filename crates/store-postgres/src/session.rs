//! One connection, lent for one piece of work.
//!
//! In: statements. Out: rows. Several statements may be under way at once, in the order in which they were begun (one round trip). A connection whose
//! work did not come to its end, was too slow or broke is closed instead of going back to the pool, so nobody inherits an open transaction.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool::managed::Object;
use deadpool_postgres::ClientWrapper;
use payonce_core::ports::StoreFault;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use crate::connect::{Connector, Keeps};
use crate::fault::{Effect, fault, is_fatal};
use crate::statement::Statement;

pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

pub(crate) struct Session {
    object: Option<Object<Connector>>,
    timeout: Duration,
    /// Whether a piece of work began and did not come to its end.
    unfinished: AtomicBool,
    /// Whether the connection is not to be used again.
    broken: AtomicBool,
    /// Whether what is under way may be committed by now.
    commits: AtomicBool,
}

impl Session {
    pub(crate) const fn new(object: Object<Connector>, timeout: Duration) -> Self {
        Self {
            object: Some(object),
            timeout,
            unfinished: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            commits: AtomicBool::new(false),
        }
    }

    /// Does `work`, which uses this session, within the time that a piece of work has. `effect` says what a late answer means, up to a
    /// [`Self::commit`].
    pub(crate) async fn within<T>(
        &self,
        effect: Effect,
        work: impl Future<Output = Result<T, StoreFault>> + Send,
    ) -> Result<T, StoreFault> {
        self.commits.store(effect == Effect::Commits, Ordering::Relaxed);
        // Where this future is dropped half-way, the session is not clean, and is closed.
        self.unfinished.store(true, Ordering::Relaxed);
        match tokio::time::timeout(self.timeout, work).await {
            Ok(done) => {
                self.unfinished.store(false, Ordering::Relaxed);
                done
            }
            Err(_) => {
                self.cancel();
                let effect = if self.commits.load(Ordering::Relaxed) { Effect::Commits } else { Effect::None };
                Err(effect.lost("no answer from the database in time"))
            }
        }
    }

    /// Has the server end what it is doing for us: it would go on, and hold its locks, after the connection is closed.
    fn cancel(&self) {
        let Some(object) = &self.object else { return };
        let (token, pool) = (object.client.cancel_token(), Object::pool(object));
        tokio::spawn(async move {
            let Some(pool) = pool else { return };
            if let Err(fault) = pool.manager().cancel(token).await {
                tracing::debug!(%fault, "a late statement could not be cancelled");
            }
        });
    }

    /// Makes the statements ready that will be under way at once: making one ready in the middle would put it behind those that follow.
    pub(crate) async fn ready(&self, statements: &[&'static Statement]) -> Result<(), StoreFault> {
        for statement in statements {
            if self.keeps(statement) {
                let prepared = self.client()?.prepare_typed_cached(statement.text, statement.params).await;
                prepared.map_err(|error| self.note(&error, Effect::None))?;
            }
        }
        Ok(())
    }

    /// The rows that a statement gives.
    pub(crate) async fn rows(&self, statement: &'static Statement, params: Params<'_>) -> Result<Vec<Row>, Failed> {
        let client = self.client()?;
        let done = if self.keeps(statement) {
            match client.prepare_typed_cached(statement.text, statement.params).await {
                Ok(prepared) => client.query(&prepared, params).await,
                Err(error) => Err(error),
            }
        } else {
            client.query_typed(statement.text, &typed(statement, params)).await
        };
        done.map_err(Failed::Sql)
    }

    /// How many rows a statement changed.
    pub(crate) async fn count(&self, statement: &'static Statement, params: Params<'_>) -> Result<u64, Failed> {
        let client = self.client()?;
        let done = if self.keeps(statement) {
            match client.prepare_typed_cached(statement.text, statement.params).await {
                Ok(prepared) => client.execute(&prepared, params).await,
                Err(error) => Err(error),
            }
        } else {
            client.execute_typed(statement.text, &typed(statement, params)).await
        };
        done.map_err(Failed::Sql)
    }

    /// Whether nothing stands between us and the server.
    pub(crate) fn is_direct(&self) -> bool {
        self.object.as_ref().is_some_and(|object| object.keeps == Keeps::All)
    }

    fn keeps(&self, statement: &Statement) -> bool {
        match self.object.as_ref().map_or(Keeps::Nothing, |object| object.keeps) {
            Keeps::Nothing => false,
            Keeps::Simple => statement.is_simple(),
            Keeps::All => true,
        }
    }

    /// Begins a transaction. Each statement in it sees what was committed before it, whatever the database's default is.
    pub(crate) async fn begin(&self) -> Result<(), Failed> {
        self.run("BEGIN ISOLATION LEVEL READ COMMITTED").await
    }

    /// Commits. Until here nothing of a transaction is there, whatever happens; from here on a lost answer leaves it in doubt.
    pub(crate) async fn commit(&self) -> Result<(), StoreFault> {
        self.commits.store(true, Ordering::Relaxed);
        self.run("COMMIT").await.map_err(|failed| self.fault(failed, Effect::Commits))
    }

    /// ROLLBACK, and the text of a migration.
    pub(crate) async fn run(&self, sql: &str) -> Result<(), Failed> {
        self.client()?.batch_execute(sql).await.map_err(Failed::Sql)
    }

    /// Ends an open transaction without a trace. A session that cannot is closed, which ends it too.
    pub(crate) async fn roll_back(&self) {
        if self.run("ROLLBACK").await.is_err() {
            self.broken.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the connection turned out to be dead.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// What a failure means, and whether the connection is still good.
    pub(crate) fn fault(&self, failed: Failed, effect: Effect) -> StoreFault {
        match failed {
            Failed::Sql(error) => self.note(&error, effect),
            Failed::Fault(fault) => fault,
        }
    }

    fn note(&self, error: &Error, effect: Effect) -> StoreFault {
        if is_fatal(error) {
            self.broken.store(true, Ordering::Relaxed);
        }
        fault(error, effect)
    }

    fn client(&self) -> Result<&ClientWrapper, StoreFault> {
        self.object.as_ref().map(|object| &object.client).ok_or_else(|| StoreFault::Unavailable("the connection was given back".to_owned()))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let Some(object) = self.object.take() else { return };
        if self.unfinished.load(Ordering::Relaxed) || self.broken.load(Ordering::Relaxed) || object.client.is_closed() {
            drop(Object::take(object));
        }
    }
}

/// Something that takes statements: a session of the pool, or a transaction of somebody else's.
pub(crate) trait Sends: Sync {
    /// The rows that a statement gives.
    fn rows(&self, statement: &'static Statement, params: Params<'_>) -> impl Future<Output = Result<Vec<Row>, Failed>> + Send;

    /// How many rows a statement changed.
    fn count(&self, statement: &'static Statement, params: Params<'_>) -> impl Future<Output = Result<u64, Failed>> + Send;
}

impl Sends for Session {
    async fn rows(&self, statement: &'static Statement, params: Params<'_>) -> Result<Vec<Row>, Failed> {
        Self::rows(self, statement, params).await
    }

    async fn count(&self, statement: &'static Statement, params: Params<'_>) -> Result<u64, Failed> {
        Self::count(self, statement, params).await
    }
}

impl Sends for tokio_postgres::Transaction<'_> {
    async fn rows(&self, statement: &'static Statement, params: Params<'_>) -> Result<Vec<Row>, Failed> {
        self.query_typed(statement.text, &typed(statement, params)).await.map_err(Failed::Sql)
    }

    async fn count(&self, statement: &'static Statement, params: Params<'_>) -> Result<u64, Failed> {
        self.execute_typed(statement.text, &typed(statement, params)).await.map_err(Failed::Sql)
    }
}

/// Why a statement gave nothing.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The driver or the server says so.
    Sql(Error),
    /// We do.
    Fault(StoreFault),
}

impl From<StoreFault> for Failed {
    fn from(fault: StoreFault) -> Self {
        Self::Fault(fault)
    }
}

fn typed<'a>(statement: &'static Statement, params: Params<'a>) -> Vec<(&'a (dyn ToSql + Sync), tokio_postgres::types::Type)> {
    params.iter().copied().zip(statement.params.iter().cloned()).collect()
}
