//! The schema's coming up: once, by many, and not under a program that does not fit.

mod common;

use payonce_core::ports::StoreFault;
use payonce_core::ports::directory::Directory;
use payonce_store_postgres::{Options, PostgresStore};
use payonce_testkit::pgbouncer::PgBouncer;
use payonce_testkit::postgres::Cluster;

async fn connect(url: &str) -> PostgresStore {
    PostgresStore::connect(url, Options::default()).await.expect("connects")
}

/// Eight nodes at once, on an empty database; each file is applied by one of them.
async fn eight_at_once(url: &str) {
    let mut stores = Vec::new();
    for _ in 0..8 {
        stores.push(connect(url).await);
    }
    let tasks: Vec<_> = stores.into_iter().map(|store| tokio::spawn(async move { store.migrate().await })).collect();
    let mut applied = Vec::new();
    for task in tasks {
        applied.extend(task.await.expect("no panic").expect("migrates"));
    }
    assert_eq!(applied, ["0001_first"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_nodes_migrate_at_once_and_again() {
    let url = Cluster::shared().fresh_database();
    eight_at_once(&url).await;
    let store = connect(&url).await;
    assert_eq!(store.migrate().await, Ok(Vec::new()));
    assert_eq!(store.check_schema().await, Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_nodes_migrate_at_once_behind_a_pooler() {
    let url = Cluster::shared().fresh_database();
    let pooler = PgBouncer::start(Cluster::shared(), 3);
    eight_at_once(&pooler.url(&url)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_that_does_not_fit_is_refused() {
    let url = Cluster::shared().fresh_database();
    let store = connect(&url).await;
    let refused = |fault: Result<(), StoreFault>, word: &str| {
        let Err(StoreFault::Refused(why)) = fault else { panic!("{fault:?}") };
        assert!(why.contains(word), "{why}");
    };
    refused(store.ping().await, "older");
    refused(store.check_schema().await, "older");
    store.migrate().await.expect("migrates");
    store.ping().await.expect("fits");

    let cluster = Cluster::shared();
    cluster.query(&url, "INSERT INTO payonce_migrations VALUES (2, '0002_later', 'x', 0)").expect("inserts");
    refused(store.check_schema().await, "newer");
    refused(store.migrate().await.map(drop), "newer");

    cluster.query(&url, "DELETE FROM payonce_migrations WHERE version = 2").expect("deletes");
    cluster.query(&url, "UPDATE payonce_migrations SET checksum = 'x'").expect("updates");
    refused(store.check_schema().await, "another text");
    refused(store.migrate().await.map(drop), "another text");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_fails_leaves_nothing() {
    let url = Cluster::shared().fresh_database();
    // Stands in the way of a table in the middle of the file.
    Cluster::shared().query(&url, "CREATE TABLE refunds (x INT)").expect("creates");
    let store = connect(&url).await;
    let Err(StoreFault::Refused(_)) = store.migrate().await else { panic!("the table is there") };
    let left = Cluster::shared().query(&url, "SELECT 1 FROM pg_class WHERE relname = 'payments'").expect("reads");
    assert!(left.is_empty(), "half a migration stayed");
    Cluster::shared().query(&url, "DROP TABLE refunds").expect("drops");
    assert_eq!(store.migrate().await, Ok(vec!["0001_first".to_owned()]));
}
