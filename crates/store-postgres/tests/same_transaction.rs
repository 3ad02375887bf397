//! The guard inside the caller's own transaction.

mod common;

use std::time::Duration;

use payonce_core::ports::records::{NewClaim, Seen, Verb, Write, Written};
use payonce_core::record::{Fence, RecordState};
use payonce_store_postgres::same_transaction as guard;
use payonce_testkit::build::{Build, sealed, tenant};
use payonce_testkit::ports::wait_until;
use payonce_testkit::postgres::Cluster;
use tokio_postgres::{Client, NoTls};

const DUE: Duration = Duration::from_secs(10);

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connects");
    tokio::spawn(connection);
    client
}

fn keep(claim: &NewClaim) -> Write {
    Write { key: claim.key.clone(), claim_id: claim.claim_id, fence: Fence(1), verb: Verb::Keep(sealed("answer")) }
}

/// Claims, books one order, keeps the answer, commits: what the handler of a merchant does. Whether it ran.
async fn handle(client: &mut Client, claim: &NewClaim) -> bool {
    let transaction = client.transaction().await.expect("begins");
    let ran = match guard::claim(&transaction, claim).await.expect("claims") {
        Seen::Won { fence } => {
            assert_eq!(fence, Fence(1));
            transaction.execute("INSERT INTO orders VALUES (1)", &[]).await.expect("books");
            assert_eq!(guard::write(&transaction, &keep(claim)).await, Ok(Written::Applied));
            true
        }
        Seen::Found { record, .. } => {
            assert_eq!((record.state, record.answer), (RecordState::Answered, Some(sealed("answer"))));
            false
        }
    };
    transaction.commit().await.expect("commits");
    ran
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b031_of_many_equal_requests_one_runs_and_the_others_find_its_answer() {
    let url = common::migrated();
    connect(&url).await.batch_execute("CREATE TABLE orders (n INT)").await.expect("creates");
    let build = Build::new(1);
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (url, claim) = (url.clone(), build.claim(&tenant("m1"), "k"));
            tokio::spawn(async move { handle(&mut connect(&url).await, &claim).await })
        })
        .collect();
    let mut ran = 0;
    for task in tasks {
        ran += usize::from(task.await.expect("no panic"));
    }
    assert_eq!(ran, 1);
    let orders = Cluster::shared().query(&url, "SELECT n FROM orders").expect("reads");
    assert_eq!(orders.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b031_a_crash_before_the_commit_leaves_neither_claim_nor_work() {
    let url = common::migrated();
    let mut first = connect(&url).await;
    first.batch_execute("CREATE TABLE orders (n INT)").await.expect("creates");
    let build = Build::new(2);
    let (lost, next) = (build.claim(&tenant("m1"), "k"), build.claim(&tenant("m1"), "k"));

    let transaction = first.transaction().await.expect("begins");
    assert!(matches!(guard::claim(&transaction, &lost).await, Ok(Seen::Won { .. })));
    transaction.execute("INSERT INTO orders VALUES (1)", &[]).await.expect("books");
    assert_eq!(guard::write(&transaction, &keep(&lost)).await, Ok(Written::Applied));
    // A second request waits for the first, whose process dies instead of committing.
    let waiting = tokio::spawn({
        let url = url.clone();
        async move { handle(&mut connect(&url).await, &next).await }
    });
    let waits = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let blocked = tokio::task::block_in_place(|| wait_until(DUE, || !Cluster::shared().query(&url, waits).expect("reads").is_empty()));
    assert!(blocked, "the second was to wait for the first");
    drop(transaction);
    drop(first);
    assert!(waiting.await.expect("no panic"), "the second runs: of the first nothing is there");
    let orders = Cluster::shared().query(&url, "SELECT n FROM orders").expect("reads");
    assert_eq!(orders.len(), 1);
}
