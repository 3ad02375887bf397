//! Claims keys on a file until it is killed, and prints the name of each claim once the store has acknowledged it.
//!
//! `cargo run --example claims -- FILE`. The crash test kills it and then looks for every name that was printed.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use payonce_core::clock::{Clock, Timestamp};
use payonce_core::id::TenantId;
use payonce_core::key::IdempotencyKey;
use payonce_core::ports::records::{NewClaim, Records, Seen};
use payonce_core::record::{ClaimId, RecordKey};
use payonce_core::secret::{KeyId, KeyedDigest};
use payonce_store_sqlite::{Options, SqliteStore};

/// The process is killed long before a lease would matter.
struct Standing;

impl Clock for Standing {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix(1_700_000_000)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("which file?")?;
    let store = Arc::new(SqliteStore::open(file, Options::new(Arc::new(Standing)))?);
    store.migrate().await?;
    let clients: Vec<_> = (0..8u64).map(|client| tokio::spawn(claims(Arc::clone(&store), client))).collect();
    for client in clients {
        client.await?.map_err(|why| why.to_string())?;
    }
    Ok(())
}

async fn claims(store: Arc<SqliteStore>, client: u64) -> Result<(), String> {
    let tenant = TenantId::parse("m1").ok_or("no tenant")?;
    for n in 0u64.. {
        let key = IdempotencyKey::parse(&format!("{client}-{n}")).map_err(|why| why.to_string())?;
        let claim_id = ClaimId(uuid::Uuid::from_u64_pair(client, n));
        let row = NewClaim {
            key: RecordKey { tenant: tenant.clone(), scope: "POST /v1/payments".to_owned(), key },
            fingerprint: KeyedDigest { key_id: KeyId([0; 4]), digest: [0; 32] },
            claim_id,
            lease: Duration::from_secs(60),
            ttl: Duration::from_secs(3600),
        };
        match store.claim(&[row]).await.map_err(|why| why.to_string())?.as_slice() {
            [Seen::Won { .. }] => writeln!(std::io::stdout(), "{}", claim_id.0).map_err(|why| why.to_string())?,
            other => return Err(format!("a fresh key met {other:?}")),
        }
    }
    Ok(())
}
