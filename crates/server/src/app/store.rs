//! Opens the store that a database address names. The only file that names concrete stores.

use std::sync::Arc;

use payonce::system::SystemClock;
use payonce_core::clock::Clock;
use payonce_core::ports::{Store, StoreFault};
use payonce_store_postgres::PostgresStore;
use payonce_store_sqlite::SqliteStore;

use super::StartFault;

/// A store that was opened. Its schema is as it was found.
#[derive(Clone, Debug)]
pub struct OpenedStore(Which);

#[derive(Clone, Debug)]
enum Which {
    Sqlite(SqliteStore),
    Postgres(Box<PostgresStore>),
}

/// Opens the store at `url`: `sqlite://FILE`, `sqlite::memory:`, or `postgres://…`.
pub async fn open_store(url: &str) -> Result<OpenedStore, StartFault> {
    open_pooled(url, 16).await
}

/// The same with a pool of this many connections, where the store has one.
pub(super) async fn open_pooled(url: &str, pool: usize) -> Result<OpenedStore, StartFault> {
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Ok(OpenedStore(Which::Postgres(Box::new(postgres(url, pool).await?))));
    }
    let path = match (url, url.strip_prefix("sqlite://")) {
        ("sqlite::memory:", _) => ":memory:",
        (_, Some(path)) if !path.is_empty() && !path.contains('?') => path,
        (_, Some(_) | None) => {
            return Err(StartFault::new("the database address is none that payonce knows")
                .hint_that("write sqlite://payonce.db or postgres://user@host/name"));
        }
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let path = path.to_owned();
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(path, payonce_store_sqlite::Options::new(clock))).await;
    let opened = opened.map_err(|why| StartFault::new(why.to_string()))?;
    let store = opened.map_err(|why| {
        StartFault::new(format!("the database file cannot be opened: {why}"))
            .hint_that("check the folder and its permissions, or name another with --database")
    })?;
    Ok(OpenedStore(Which::Sqlite(store)))
}

impl OpenedStore {
    /// Brings the schema up; the names of what was applied. Safe to repeat, and from several nodes at once.
    pub async fn migrate(&self) -> Result<Vec<String>, StartFault> {
        let applied = match &self.0 {
            Which::Sqlite(store) => store.migrate().await,
            Which::Postgres(store) => store.migrate().await,
        };
        applied.map_err(|why| StartFault::new(format!("the schema cannot be brought up: {why}")))
    }

    /// Refuses a schema that is older or newer than this program.
    pub async fn check_schema(&self) -> Result<(), StartFault> {
        let checked = match &self.0 {
            Which::Sqlite(store) => store.check_schema().await,
            Which::Postgres(store) => store.check_schema().await,
        };
        checked.map_err(|why: StoreFault| {
            StartFault::new(format!("the schema does not fit this program: {why}")).hint_that("run `payonce migrate`")
        })
    }

    /// The store.
    pub fn store(&self) -> Arc<dyn Store> {
        match &self.0 {
            Which::Sqlite(store) => Arc::new(store.clone()),
            Which::Postgres(store) => Arc::new(store.as_ref().clone()),
        }
    }
}

/// Makes a schema of its own in the PostgreSQL database at `url`, for a demonstration. The address that reaches it.
pub async fn lend_schema(url: &str, name: &str) -> Result<String, StartFault> {
    let lent = postgres(url, 1).await?.lend_schema(name).await;
    lent.map_err(|why| {
        StartFault::new(format!("no schema of its own: {why}")).hint_that("the database user needs the right CREATE on this database")
    })?;
    let joint = if url.contains('?') { '&' } else { '?' };
    Ok(format!("{url}{joint}options=-c%20search_path%3D{name}"))
}

/// Drops such a schema with all that is in it.
pub async fn drop_lent_schema(url: &str, name: &str) -> Result<(), StartFault> {
    let dropped = postgres(url, 1).await?.drop_lent_schema(name).await;
    dropped.map_err(|why| StartFault::new(format!("the schema {name} is still there: {why}")))
}

async fn postgres(url: &str, pool: usize) -> Result<PostgresStore, StartFault> {
    let options = payonce_store_postgres::Options { pool_size: pool, ..payonce_store_postgres::Options::default() };
    PostgresStore::connect(url, options).await.map_err(|why| {
        StartFault::new(format!("the database cannot be reached: {why}"))
            .hint_that("check that PostgreSQL runs there, and the address, user and password")
    })
}
