//! The schema's coming up, the file's rights, and a program that does not fit.

mod common;

use common::Dir;
use payonce_core::ports::StoreFault;
use payonce_core::ports::directory::Directory;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_open_and_migrate_at_once_and_again() {
    let (dir, clock) = (Dir::new(), common::clock());
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (file, clock) = (dir.file(), clock.clone());
            tokio::spawn(async move { common::open(&file, &clock).migrate().await })
        })
        .collect();
    let mut applied = Vec::new();
    for task in tasks {
        applied.extend(task.await.expect("no panic").expect("migrates"));
    }
    assert_eq!(applied, ["0001_first"]);
    let store = common::open(&dir.file(), &clock);
    assert_eq!(store.migrate().await, Ok(Vec::new()));
    assert_eq!(store.check_schema().await, Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_that_does_not_fit_is_refused() {
    let (dir, clock) = (Dir::new(), common::clock());
    let store = common::open(&dir.file(), &clock);
    let refused = |fault: Result<(), StoreFault>, word: &str| {
        let Err(StoreFault::Refused(why)) = fault else { panic!("{fault:?}") };
        assert!(why.contains(word), "{why}");
    };
    refused(store.ping().await, "older");
    store.migrate().await.expect("migrates");
    store.ping().await.expect("fits");

    let other = rusqlite::Connection::open(dir.file()).expect("opens");
    other.execute("INSERT INTO payonce_migrations VALUES (2, '0002_later', 'x', 0)", []).expect("inserts");
    refused(store.check_schema().await, "newer");
    refused(store.migrate().await.map(drop), "newer");
    other.execute("DELETE FROM payonce_migrations WHERE version = 2", []).expect("deletes");
    other.execute("UPDATE payonce_migrations SET checksum = 'x'", []).expect("updates");
    refused(store.check_schema().await, "another text");
    refused(store.migrate().await.map(drop), "another text");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_fails_leaves_nothing() {
    let (dir, clock) = (Dir::new(), common::clock());
    let other = rusqlite::Connection::open(dir.file()).expect("opens");
    other.execute("CREATE TABLE refunds (x INT)", []).expect("creates");
    let store = common::open(&dir.file(), &clock);
    assert!(matches!(store.migrate().await, Err(StoreFault::Refused(_))));
    let left: i64 = other.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'payments'", [], |row| row.get(0)).expect("reads");
    assert_eq!(left, 0, "half a migration stayed");
    other.execute("DROP TABLE refunds", []).expect("drops");
    assert_eq!(store.migrate().await, Ok(vec!["0001_first".to_owned()]));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_file_and_its_companions_are_their_owners_only() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, clock) = (Dir::new(), common::clock());
    let store = common::open(&dir.file(), &clock);
    store.migrate().await.expect("migrates");
    for ending in ["", "-wal", "-shm"] {
        let path = format!("{}{ending}", dir.file().display());
        let mode = std::fs::metadata(&path).expect("is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{path}");
    }
}

#[test]
fn a_place_that_cannot_be_opened_is_unavailable_and_named() {
    let clock = common::clock();
    let options = payonce_store_sqlite::Options::new(clock);
    let fault = payonce_store_sqlite::SqliteStore::open("/nowhere/at/all/payonce.db", options).expect_err("no such folder");
    let StoreFault::Unavailable(why) = fault else { panic!("{fault:?}") };
    assert!(why.contains("/nowhere/at/all/payonce.db"), "{why}");
}
