//! What is measured: each takes a fresh key and keeps an answer for it.
//!
//! The plain designs run the two statements that everybody writes, prepared, each its own commit, on a lean table. The product's run what
//! the guard runs. The log is the physical limit: append and flush, shared by whoever waits.

mod log;
mod plain;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use payonce::system::{SystemClock, SystemEntropy};
use payonce::writer::{GroupCommit, WriterLimits};
use payonce_core::clock::random;
use payonce_core::id::{TenantId, uuid_v7};
use payonce_core::key::IdempotencyKey;
use payonce_core::ports::records::{NewClaim, Records, Seen, Verb, Write, Written};
use payonce_core::record::{ClaimId, RecordKey};
use payonce_core::secret::{Keyring, Sealed, sha256};
use payonce_store_postgres::PostgresStore;
use payonce_store_sqlite::SqliteStore;
use payonce_testkit::postgres::{Cluster, Options};

/// The stored answer: 72 bytes, as in the published recipe's example.
pub(crate) const BODY: &[u8; 72] = br#"{"charge_id":"ch_1","amount":1000,"currency":"CNY","status":"succeeded"}"#;

/// One measured design.
#[async_trait]
pub(crate) trait Run: Send + Sync + 'static {
    /// A fresh key, claimed and answered, durably.
    async fn one_key(&self) -> anyhow::Result<()>;
}

/// A design with its name.
pub(crate) struct Design {
    pub(crate) name: &'static str,
    pub(crate) run: Arc<dyn Run>,
}

/// All of them, on a private cluster that flushes every commit.
pub(crate) async fn all(folder: &Path) -> anyhow::Result<Vec<Design>> {
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::private(Options { fsync: true, ..Options::default() })));
    let url = cluster.fresh_database();
    let postgres = PostgresStore::connect(&url, payonce_store_postgres::Options::default()).await?;
    postgres.migrate().await?;
    let path = folder.join("bench.db");
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(folder.join(format!("bench.db{suffix}")));
    }
    let sqlite = SqliteStore::open(&path, payonce_store_sqlite::Options::new(Arc::new(SystemClock)))?;
    sqlite.migrate().await?;
    Ok(vec![
        Design { name: "postgres: two statements", run: Arc::new(plain::Postgres::connect(&url).await?) },
        Design { name: "postgres: payonce", run: Arc::new(Product::start(Arc::new(postgres))?) },
        Design { name: "sqlite: two statements", run: Arc::new(plain::Sqlite::open(&folder.join("plain.db"))?) },
        Design { name: "sqlite: payonce", run: Arc::new(Product::start(Arc::new(sqlite))?) },
        Design { name: "log: append and flush", run: Arc::new(log::Log::open(&folder.join("bench.log"))?) },
    ])
}

/// The guard's group commit over a store.
struct Product {
    writer: GroupCommit,
    ring: Keyring,
    tenant: TenantId,
}

impl Product {
    fn start(records: Arc<dyn Records>) -> anyhow::Result<Self> {
        let ring = Keyring::new(&[random(&SystemEntropy::default())]).ok_or_else(|| anyhow::anyhow!("no key"))?;
        let tenant = TenantId::parse("bench").ok_or_else(|| anyhow::anyhow!("no tenant"))?;
        Ok(Self { writer: GroupCommit::start(records, WriterLimits::default()), ring, tenant })
    }
}

#[async_trait]
impl Run for Product {
    async fn one_key(&self) -> anyhow::Result<()> {
        let claim_id = ClaimId(uuid_v7(&SystemClock, &SystemEntropy::default()));
        let text = uuid::Builder::from_random_bytes(random(&SystemEntropy::default())).into_uuid().to_string();
        let key = RecordKey {
            tenant: self.tenant.clone(),
            scope: "POST /charge".to_owned(),
            key: IdempotencyKey::parse(&text).map_err(|why| anyhow::anyhow!("{why:?}"))?,
        };
        let claim = NewClaim {
            key: key.clone(),
            fingerprint: self.ring.digest(&sha256(BODY)),
            claim_id,
            lease: Duration::from_secs(60),
            ttl: Duration::from_secs(24 * 3600),
        };
        let Seen::Won { fence } = self.writer.claim(claim).await? else { anyhow::bail!("a fresh key was taken") };
        let answer = Sealed::from_bytes(self.ring.seal(&SystemEntropy::default(), "bench", BODY).as_bytes().to_vec());
        match self.writer.write(Write { key, claim_id, fence, verb: Verb::Keep(answer) }).await? {
            Written::Applied => Ok(()),
            Written::Refused => anyhow::bail!("the finish was refused"),
        }
    }
}
