//! Fresh, migrated databases for the tests of this crate.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use payonce_core::clock::Fixed;
use payonce_store_postgres::{Options, PostgresStore, StatementMode};
use payonce_testkit::build::START;
use payonce_testkit::postgres::Cluster;

/// The address of a new database of the shared server with the schema in it. Needs a runtime of several threads.
pub(crate) fn migrated() -> String {
    let mut hasher = DefaultHasher::new();
    include_str!("../../migrations/0001_first.sql").hash(&mut hasher);
    Cluster::shared().fresh_database_like(&format!("payonce_{:x}", hasher.finish()), migrate)
}

/// Brings the schema up from a place that cannot await.
pub(crate) fn migrate(url: &str) {
    let url = url.to_owned();
    tokio::task::block_in_place(|| {
        tokio::runtime::Handle::current().block_on(async {
            let store = PostgresStore::connect(&url, Options::default()).await.expect("connects");
            store.migrate().await.expect("migrates");
        });
    });
}

/// A store whose leases follow `clock`.
pub(crate) async fn store(url: &str, mode: StatementMode, clock: &Arc<Fixed>) -> PostgresStore {
    let options = Options { pool_size: 8, statement_mode: mode, clock: Some(clock.clone()), ..Options::default() };
    PostgresStore::connect(url, options).await.expect("connects")
}

/// The clock of a test.
pub(crate) fn clock() -> Arc<Fixed> {
    Arc::new(Fixed::new(START, 1))
}
