//! The two statements that everybody writes: insert unless there, then update; prepared, pooled, each its own commit.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use payonce::system::SystemEntropy;
use payonce_core::clock::random;
use payonce_core::secret::sha256;

use super::{BODY, Run};

/// Pooled connections, as in the measured baseline.
const POOL: usize = 16;

fn fresh_key() -> String {
    uuid::Builder::from_random_bytes(random(&SystemEntropy::default())).into_uuid().to_string()
}

/// PostgreSQL, 16 pooled connections.
pub(super) struct Postgres(Pool);

impl Postgres {
    pub(super) async fn connect(url: &str) -> anyhow::Result<Self> {
        let manager = Manager::from_config(url.parse()?, tokio_postgres::NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
        let pool = Pool::builder(manager).max_size(POOL).build()?;
        pool.get()
            .await?
            .batch_execute(
                "CREATE TABLE plain_keys (key TEXT PRIMARY KEY, fingerprint BYTEA NOT NULL, created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
                 expires_at TIMESTAMPTZ NOT NULL DEFAULT now() + INTERVAL '24 hours', locked_until TIMESTAMPTZ, completed_at TIMESTAMPTZ,
                 status SMALLINT, body BYTEA) WITH (fillfactor = 70)",
            )
            .await?;
        Ok(Self(pool))
    }
}

#[async_trait]
impl Run for Postgres {
    async fn one_key(&self) -> anyhow::Result<()> {
        let client = self.0.get().await?;
        let key = fresh_key();
        let claim = client
            .prepare_cached(
                "INSERT INTO plain_keys (key, fingerprint, locked_until) VALUES ($1, $2, now() + interval '30 s')
                 ON CONFLICT (key) DO NOTHING RETURNING key",
            )
            .await?;
        let won = client.query_opt(&claim, &[&key, &sha256(BODY).as_slice()]).await?;
        anyhow::ensure!(won.is_some(), "a fresh key was taken");
        let finish = client.prepare_cached("UPDATE plain_keys SET status = 201, body = $2, completed_at = now() WHERE key = $1").await?;
        anyhow::ensure!(client.execute(&finish, &[&key, &BODY.as_slice()]).await? == 1, "the finish met no row");
        Ok(())
    }
}

/// SQLite, one connection, each statement its own flushed commit.
pub(super) struct Sqlite(Arc<Mutex<rusqlite::Connection>>);

impl Sqlite {
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
        }
        let connection = rusqlite::Connection::open(path)?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(
            "CREATE TABLE plain_keys (key TEXT PRIMARY KEY, fingerprint BLOB NOT NULL, locked_until INTEGER, status INTEGER, body BLOB) WITHOUT ROWID",
        )?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }
}

#[async_trait]
impl Run for Sqlite {
    async fn one_key(&self) -> anyhow::Result<()> {
        let connection = Arc::clone(&self.0);
        let key = fresh_key();
        tokio::task::spawn_blocking(move || {
            let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            let claim = "INSERT INTO plain_keys (key, fingerprint, locked_until) VALUES (?1, ?2, 30) ON CONFLICT (key) DO NOTHING";
            let won = connection.prepare_cached(claim)?.execute((&key, sha256(BODY).as_slice()))?;
            anyhow::ensure!(won == 1, "a fresh key was taken");
            let finish = "UPDATE plain_keys SET status = 201, body = ?2 WHERE key = ?1";
            let met = connection.prepare_cached(finish)?.execute((&key, BODY.as_slice()))?;
            anyhow::ensure!(met == 1, "the finish met no row");
            Ok(())
        })
        .await?
    }
}
