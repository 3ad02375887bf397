//! The conformance suite of all stores, with two stores on one database as two nodes have them: directly, with statements kept by the server or only the
//! simple ones, and behind a transaction pooler with fewer connections than there are clients.

mod common;

use std::sync::Arc;
use std::time::Duration;

use payonce_core::clock::Fixed;
use payonce_core::ports::Store;
use payonce_store_postgres::{PostgresStore, StatementMode};
use payonce_testkit::pgbouncer::PgBouncer;
use payonce_testkit::postgres::Cluster;
use payonce_testkit::suite::Fixture;
use payonce_testkit::tcp_fault::FaultProxy;

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
        Self::on(&pooler.url(&url), StatementMode::Auto, Some(pooler)).await
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

mod direct {
    use super::*;
    payonce_testkit::store_suite!(Nodes::direct(StatementMode::Auto).await);
}

mod prepared {
    use super::*;
    payonce_testkit::store_suite!(Nodes::direct(StatementMode::Prepared).await);
}

mod pgbouncer {
    use super::*;
    payonce_testkit::store_suite!(Nodes::pooled().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_direct_connection_is_taken_for_one() {
    let (url, clock) = (common::migrated(), common::clock());
    assert_eq!(common::store(&url, StatementMode::Auto, &clock).await.is_direct().await, Ok(true));
    let pooler = PgBouncer::start(Cluster::shared(), 2);
    assert_eq!(common::store(&pooler.url(&url), StatementMode::Auto, &clock).await.is_direct().await, Ok(false));
    let relay = FaultProxy::start(Cluster::shared().port());
    let through = url.replace(&Cluster::shared().port().to_string(), &relay.port().to_string());
    assert_eq!(common::store(&through, StatementMode::Auto, &clock).await.is_direct().await, Ok(false));
}
