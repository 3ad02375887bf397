//! Group commit: pieces of work that share a transaction do not share a fate, and two processes share a file.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::Dir;
use payonce_core::ports::StoreFault;
use payonce_core::ports::payments::{Applied, Payments};
use payonce_core::ports::records::{NewClaim, Records, Seen};
use payonce_store_sqlite::{Options, SqliteStore};
use payonce_testkit::build::{Build, tenant};

/// A claim that the schema refuses, among claims and changes that are queued at the same moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_fails_harms_no_other() {
    let (dir, clock) = (Dir::new(), common::clock());
    let store = Arc::new(common::open(&dir.file(), &clock));
    store.migrate().await.expect("migrates");
    let build = Arc::new(Build::new(1));
    // Another process holds the file, so that everything below waits and then goes in one group.
    let other = rusqlite::Connection::open(dir.file()).expect("opens");
    other.execute_batch("BEGIN IMMEDIATE").expect("locks");
    let tasks: Vec<_> = (0..60)
        .map(|n| {
            let (store, build) = (store.clone(), build.clone());
            tokio::spawn(async move {
                if n % 3 == 2 {
                    return store.apply(&build.created(&tenant("m1"), &format!("o{n}"))).await.map(|applied| applied == Applied::Done);
                }
                let scope = if n % 3 == 0 { "POST /v1/payments".to_owned() } else { "x".repeat(3000) };
                let claim = NewClaim { key: build.record_key(&tenant("m1"), &scope, &format!("k{n}")), ..build.claim(&tenant("m1"), "k") };
                store.claim(&[claim]).await.map(|seen| matches!(seen.as_slice(), [Seen::Won { .. }]))
            })
        })
        .collect();
    tokio::task::yield_now().await;
    other.execute_batch("COMMIT").expect("lets go");
    for (n, task) in tasks.into_iter().enumerate() {
        let done = task.await.expect("no panic");
        if n % 3 == 1 {
            assert!(matches!(done, Err(StoreFault::Refused(_))), "{n}: {done:?}");
        } else {
            assert_eq!(done, Ok(true), "{n}");
        }
    }
    let claims: i64 = other.query_row("SELECT count(*) FROM records", [], |row| row.get(0)).expect("reads");
    let payments: i64 = other.query_row("SELECT count(*) FROM payments", [], |row| row.get(0)).expect("reads");
    assert_eq!((claims, payments), (20, 20));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b040_a_file_that_another_process_holds_is_unavailable_and_comes_back() {
    let (dir, clock) = (Dir::new(), common::clock());
    let options = Options { busy_timeout: Duration::from_millis(100), ..Options::new(clock) };
    let store = SqliteStore::open(dir.file(), options).expect("opens");
    store.migrate().await.expect("migrates");
    let build = Build::new(2);
    let claim = build.claim(&tenant("m1"), "k");
    let other = rusqlite::Connection::open(dir.file()).expect("opens");
    other.execute_batch("BEGIN IMMEDIATE").expect("locks");
    let fault = store.claim(std::slice::from_ref(&claim)).await;
    assert!(matches!(fault, Err(StoreFault::Unavailable(_))), "{fault:?}");
    let (rows, _) = store.read(std::slice::from_ref(&claim.key)).await.expect("readers do not wait for the writer");
    assert_eq!(rows, [None], "nothing was written");
    other.execute_batch("ROLLBACK").expect("lets go");
    assert!(matches!(store.claim(&[claim]).await.as_deref(), Ok([Seen::Won { .. }])));
}

/// What was answered is on the disk for another that opens the file, also after the first is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b041_the_truth_is_in_the_file() {
    let (dir, clock) = (Dir::new(), common::clock());
    let build = Build::new(3);
    let claim = build.claim(&tenant("m1"), "k");
    let first = common::open(&dir.file(), &clock);
    first.migrate().await.expect("migrates");
    assert!(matches!(first.claim(std::slice::from_ref(&claim)).await.as_deref(), Ok([Seen::Won { .. }])));
    drop(first);
    let second = common::open(&dir.file(), &clock);
    let seen = second.claim(&[build.claim(&tenant("m1"), "k")]).await.expect("answers");
    let [Seen::Found { record, .. }] = seen.as_slice() else { panic!("{seen:?}") };
    assert_eq!(record.claim_id, claim.claim_id);
}
