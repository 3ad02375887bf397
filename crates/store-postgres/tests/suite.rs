//! The conformance suite of all stores, with two stores on one database as two nodes have them: directly with both ways of sending statements, and
//! behind a transaction pooler with fewer connections than there are clients.

mod common;

use std::sync::Arc;
use std::time::Duration;

use payonce_core::clock::Fixed;
use payonce_core::ports::Store;
use payonce_store_postgres::{PostgresStore, StatementMode};
use payonce_testkit::pgbouncer::PgBouncer;
use payonce_testkit::postgres::Cluster;
use payonce_testkit::suite::Fixture;

struct Nodes {
    first: Arc<PostgresStore>,
    second: Arc<PostgresStore>,
    clock: Arc<Fixed>,
    _pooler: Option<PgBouncer>,
}

impl Nodes {
    async fn direct(mode: StatementMode) -> Self {
        Self::on(&common::migrated(), mode, None).await
    }

    async fn pooled() -> Self {
        let url = common::migrated();
        let pooler = PgBouncer::start(Cluster::shared(), 4);
        Self::on(&pooler.url(&url), StatementMode::Typed, Some(pooler)).await
    }

    async fn on(url: &str, mode: StatementMode, pooler: Option<PgBouncer>) -> Self {
        let clock = common::clock();
        let first = Arc::new(common::store(url, mode, &clock).await);
        let second = Arc::new(common::store(url, mode, &clock).await);
        Self { first, second, clock, _pooler: pooler }
    }
}

impl Fixture for Nodes {
    fn store(&self) -> Arc<dyn Store> {
        self.first.clone()
    }

    fn second(&self) -> Arc<dyn Store> {
        self.second.clone()
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

mod typed {
    use super::*;
    payonce_testkit::store_suite!(Nodes::direct(StatementMode::Typed).await);
}

mod prepared {
    use super::*;
    payonce_testkit::store_suite!(Nodes::direct(StatementMode::Prepared).await);
}

mod pgbouncer {
    use super::*;
    payonce_testkit::store_suite!(Nodes::pooled().await);
}
