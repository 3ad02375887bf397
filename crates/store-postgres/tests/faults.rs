//! What the store says when the database or the way to it fails, and what is there then.

mod common;

use std::sync::Arc;
use std::time::Duration;

use payonce_core::clock::Fixed;
use payonce_core::payment::change::{Change, InboxMark};
use payonce_core::ports::StoreFault;
use payonce_core::ports::inbox::{Inbox, InboxStatus};
use payonce_core::ports::payments::{Applied, Payments};
use payonce_core::ports::records::{Records, Seen, Verb, Write, Written};
use payonce_core::record::Fence;
use payonce_store_postgres::{Options, PostgresStore, StatementMode};
use payonce_testkit::build::{Build, START, account, channel, notification, sealed, tenant, verified};
use payonce_testkit::ports::wait_until;
use payonce_testkit::postgres::{Cluster, Options as ServerOptions};
use payonce_testkit::tcp_fault::{Cut, Direction, FaultProxy};

const DUE: Duration = Duration::from_secs(10);

struct Fresh {
    url: String,
    store: PostgresStore,
    build: Build,
    clock: Arc<Fixed>,
}

async fn fresh() -> Fresh {
    let (url, clock) = (common::migrated(), common::clock());
    let store = common::store(&url, StatementMode::Auto, &clock).await;
    Fresh { url, store, build: Build::new(7), clock }
}

fn sql(url: &str, sql: &str) -> Vec<Vec<Option<String>>> {
    Cluster::shared().query(url, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// A store behind a proxy, with one connection so that a fault meets the statement that is meant.
async fn proxied(url: &str, clock: &Arc<Fixed>, timeout: Duration) -> (PostgresStore, FaultProxy) {
    let (base, database) = url.rsplit_once('/').expect("an address");
    let port: u16 = base.rsplit_once(':').expect("a port").1.parse().expect("a number");
    let proxy = FaultProxy::start(port);
    let url = format!("postgres://payonce@127.0.0.1:{}/{database}", proxy.port());
    let options =
        Options { pool_size: 1, connect_timeout: timeout, statement_timeout: timeout, clock: Some(clock.clone()), ..Options::default() };
    (PostgresStore::connect(&url, options).await.expect("connects"), proxy)
}

/// Makes the first `times` updates of payments end in a serialisation failure.
fn fail_updates(url: &str, times: u32) {
    sql(
        url,
        &format!(
            "CREATE SEQUENCE tries;
             CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 IF nextval('tries') <= {times} THEN RAISE EXCEPTION 'not now' USING ERRCODE = '40001'; END IF;
                 RETURN NEW;
             END $$;
             CREATE TRIGGER fail BEFORE UPDATE ON payments FOR EACH ROW EXECUTE FUNCTION fail()"
        ),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b036_a_serialisation_failure_repeats_only_the_transaction() {
    let Fresh { url, store, build, .. } = fresh().await;
    let created = build.created(&tenant("m1"), "o1");
    assert_eq!(store.apply(&created).await, Ok(Applied::Done));
    fail_updates(&url, 3);
    let paid = build.paid(&created.payment, "txn");
    assert_eq!(store.apply(&paid).await, Ok(Applied::Done), "one call, whatever the database made of it");
    let seen = store.load(&paid.payment.tenant, &paid.payment.id).await.expect("loads").expect("is there");
    assert_eq!(seen, paid.payment);
    assert_eq!(sql(&url, "SELECT last_value FROM tries")[0][0].as_deref(), Some("4"));
    assert_eq!(sql(&url, "SELECT count(*) FROM events")[0][0].as_deref(), Some(paid.events.len().to_string().as_str()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b036_a_transaction_is_not_repeated_for_ever() {
    let Fresh { url, store, build, .. } = fresh().await;
    let created = build.created(&tenant("m1"), "o1");
    store.apply(&created).await.expect("applies");
    fail_updates(&url, 1000);
    let paid = build.paid(&created.payment, "txn");
    assert!(matches!(store.apply(&paid).await, Err(StoreFault::Retry(_))));
    assert_eq!(store.load(&paid.payment.tenant, &paid.payment.id).await, Ok(Some(created.payment)));
}

/// An order whose notification waits to be settled into it: the change that settles it, and how it is read back.
async fn waiting(store: &PostgresStore, build: &Build) -> (Change, Change) {
    let owner = tenant("m1");
    let created = build.created_on(&owner, "o1", "alipay", "main");
    store.apply(&created).await.expect("applies");
    let event = notification("e1", created.attempts[0].channel_ref.as_str());
    let id = build.inbox_id();
    let ids = store
        .receive(&owner, &channel("alipay"), &account("main"), &verified(&[event]), &sealed("raw"), std::slice::from_ref(&id), START)
        .await;
    assert_eq!(ids, Ok(vec![id.clone()]));
    let paid = build.paid(&created.payment, "txn");
    (created, Change { inbox: Some(InboxMark { id, note: None }), ..paid })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b048_a_lock_that_is_not_had_in_time_marks_nothing() {
    let Fresh { url, store, build, clock } = fresh().await;
    let (created, settles) = waiting(&store, &build).await;
    let mark = settles.inbox.clone().expect("a mark").id;

    let (other, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("connects");
    tokio::spawn(connection);
    other.batch_execute("BEGIN; SELECT 1 FROM payments FOR UPDATE").await.expect("locks");
    let hasty = Options { statement_timeout: Duration::from_millis(200), clock: Some(clock), ..Options::default() };
    let hasty = PostgresStore::connect(&url, hasty).await.expect("connects");
    let late = hasty.apply(&settles).await;
    assert!(matches!(late, Err(StoreFault::Unavailable(_))), "the commit was never sent: {late:?}");
    other.batch_execute("ROLLBACK").await.expect("lets go");

    let row = store.inbox_row(&created.payment.tenant, &mark).await.expect("reads").expect("is there");
    assert_eq!(row.status, InboxStatus::Waiting);
    // The late transaction was cancelled: it holds no lock and does not land after all.
    assert_eq!(store.apply(&settles).await, Ok(Applied::Done));
    let row = store.inbox_row(&created.payment.tenant, &mark).await.expect("reads").expect("is there");
    assert_eq!((row.status, row.payment_id), (InboxStatus::Settled, Some(created.payment.id)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_whose_connection_breaks_before_the_commit_is_not_there() {
    let Fresh { url, store, build, clock } = fresh().await;
    let (broken, proxy) = proxied(&url, &clock, DUE).await;
    let created = build.created(&tenant("m1"), "o1");
    proxy.cut_after(Direction::ToClient, 0, Cut::Reset);
    let fault = broken.apply(&created).await;
    assert!(matches!(fault, Err(StoreFault::Unavailable(_))), "{fault:?}");
    assert_eq!(store.load(&created.payment.tenant, &created.payment.id).await, Ok(None));
    assert_eq!(broken.apply(&created).await, Ok(Applied::Done), "the next connection is a new one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_whose_commit_is_not_answered_is_in_doubt_and_is_there() {
    let Fresh { url, store, build, clock } = fresh().await;
    let (broken, proxy) = proxied(&url, &clock, DUE).await;
    // The COMMIT waits in the server for a lock that this test holds: the moment to break the connection.
    sql(
        &url,
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON payments DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait()",
    );
    let (other, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("connects");
    tokio::spawn(connection);
    other.batch_execute("SELECT pg_advisory_lock(7)").await.expect("locks");
    let created = build.created(&tenant("m1"), "o1");
    let applying = tokio::spawn({
        let (broken, created) = (broken.clone(), created.clone());
        async move { broken.apply(&created).await }
    });
    let waits = "SELECT 1 FROM pg_locks JOIN pg_database ON database = pg_database.oid WHERE datname = current_database() AND NOT granted";
    let waiting = tokio::task::block_in_place(|| wait_until(DUE, || !sql(&url, waits).is_empty()));
    assert!(waiting, "the COMMIT was to wait");
    proxy.cut_all(Cut::Reset);
    let fault = applying.await.expect("no panic");
    assert!(matches!(fault, Err(StoreFault::Ambiguous(_))), "{fault:?}");
    other.batch_execute("SELECT pg_advisory_unlock(7)").await.expect("lets go");
    let ended = tokio::task::block_in_place(|| wait_until(DUE, || sql(&url, "SELECT 1 FROM payments").len() == 1));
    assert!(ended, "the server was to end the COMMIT");
    // Read back before anything else, as the fault says.
    assert_eq!(store.load(&created.payment.tenant, &created.payment.id).await, Ok(Some(created.payment.clone())));
    assert_eq!(broken.apply(&created).await, Ok(Applied::Conflict), "and repeated it harms nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_answer_is_lost_is_in_doubt_and_found_by_its_name() {
    let Fresh { url, build, clock, .. } = fresh().await;
    let (broken, proxy) = proxied(&url, &clock, DUE).await;
    let claim = build.claim(&tenant("m1"), "k");
    proxy.cut_after(Direction::ToClient, 0, Cut::Close);
    let fault = broken.claim(std::slice::from_ref(&claim)).await;
    assert!(matches!(fault, Err(StoreFault::Ambiguous(_))), "{fault:?}");
    let again = broken.claim(std::slice::from_ref(&claim)).await.expect("answers");
    let [Seen::Found { record, .. }] = again.as_slice() else { panic!("{again:?}") };
    assert_eq!((record.claim_id, record.fence), (claim.claim_id, Fence(1)));
    // The same for its end.
    let keep = Write { key: claim.key.clone(), claim_id: claim.claim_id, fence: Fence(1), verb: Verb::Keep(sealed("answer")) };
    proxy.cut_after(Direction::ToClient, 0, Cut::Close);
    let fault = broken.write(std::slice::from_ref(&keep)).await;
    assert!(matches!(fault, Err(StoreFault::Ambiguous(_))), "{fault:?}");
    let (rows, _) = broken.read(std::slice::from_ref(&claim.key)).await.expect("reads");
    assert_eq!(rows[0].as_ref().and_then(|record| record.answer.clone()), Some(sealed("answer")));
    assert_eq!(broken.write(&[keep]).await, Ok(vec![Written::Refused]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_swallows_answers_ends_in_doubt_and_in_time() {
    let Fresh { url, build, clock, .. } = fresh().await;
    let (slow, proxy) = proxied(&url, &clock, Duration::from_millis(300)).await;
    proxy.hold(Direction::ToClient);
    let fault = slow.claim(&[build.claim(&tenant("m1"), "k")]).await;
    assert!(matches!(fault, Err(StoreFault::Ambiguous(_))), "{fault:?}");
    let fault = slow.load(&tenant("m1"), &build.payment_id()).await;
    assert!(matches!(fault, Err(StoreFault::Unavailable(_))), "a read leaves nothing in doubt: {fault:?}");
    proxy.heal();
    assert_eq!(slow.load(&tenant("m1"), &build.payment_id()).await, Ok(None), "the held connection went back to nobody");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b040_a_database_that_is_down_is_unavailable_and_comes_back() {
    let cluster = Cluster::private(ServerOptions::default());
    let url = cluster.fresh_database();
    let store = PostgresStore::connect(&url, Options::default()).await.expect("connects");
    store.migrate().await.expect("migrates");
    let build = Build::new(9);
    let claim = build.claim(&tenant("m1"), "k");
    assert!(matches!(store.claim(std::slice::from_ref(&claim)).await.expect("claims").as_slice(), [Seen::Won { .. }]));
    cluster.stop();
    // The pooled connection may be found dead in the sending (in doubt) or before; from then on there is nothing to send on.
    store.claim(&[build.claim(&tenant("m1"), "k2")]).await.expect_err("there is no database");
    let fault = store.claim(&[build.claim(&tenant("m1"), "k3")]).await;
    assert!(matches!(fault, Err(StoreFault::Unavailable(_))), "{fault:?}");
    let fault = store.read(std::slice::from_ref(&claim.key)).await;
    assert!(matches!(fault, Err(StoreFault::Unavailable(_))), "{fault:?}");
    cluster.restart();
    let (rows, _) = store.read(&[claim.key]).await.expect("the same store works on");
    assert_eq!(rows[0].as_ref().map(|record| record.claim_id), Some(claim.claim_id));
    assert_eq!(store.load(&tenant("m1"), &build.payment_id()).await, Ok(None));
    cluster.restart();
    assert_eq!(store.load(&tenant("m1"), &build.payment_id()).await, Ok(None), "a read over a restart is tried again");
}

/// A replica, or the old primary after a failover, only reads: nothing is decided on it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b042_a_server_that_only_reads_is_not_used() {
    let Fresh { url, store, .. } = fresh().await;
    let database = url.rsplit_once('/').expect("an address").1;
    sql("postgres", &format!("ALTER DATABASE {database} SET default_transaction_read_only = on"));
    let refused = PostgresStore::connect(&url, Options::default()).await;
    assert!(matches!(refused, Err(StoreFault::Unavailable(_))), "{refused:?}");
    // The nodes that were there before are on the primary still, and work.
    assert_eq!(store.check_schema().await, Ok(()));
}

/// B041: there is nothing to empty. What one store wrote, another that has never seen it finds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b041_the_truth_is_in_the_database() {
    let Fresh { url, store, build, clock } = fresh().await;
    let (done, running) = (build.claim(&tenant("m1"), "k1"), build.claim(&tenant("m1"), "k2"));
    store.claim(&[done.clone(), running.clone()]).await.expect("claims");
    let keep = Write { key: done.key.clone(), claim_id: done.claim_id, fence: Fence(1), verb: Verb::Keep(sealed("answer")) };
    assert_eq!(store.write(&[keep]).await, Ok(vec![Written::Applied]));
    drop(store);
    let other = common::store(&url, StatementMode::Auto, &clock).await;
    let seen = other.claim(&[build.claim(&tenant("m1"), "k1"), build.claim(&tenant("m1"), "k2")]).await.expect("answers");
    let [Seen::Found { record: first, .. }, Seen::Found { record: second, .. }] = seen.as_slice() else { panic!("{seen:?}") };
    assert_eq!((first.claim_id, first.answer.clone()), (done.claim_id, Some(sealed("answer"))));
    assert_eq!((second.claim_id, second.answer.clone()), (running.claim_id, None));
}

/// A batch with a row that cannot be stored is refused whole: its caller takes it apart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scope_that_no_index_holds_is_refused() {
    let Fresh { store, build, .. } = fresh().await;
    let fits = build.claim(&tenant("m1"), "k");
    let too_long = build.claim_in(&tenant("m1"), &"x".repeat(2049), "k");
    let fault = store.claim(&[fits.clone(), too_long]).await;
    assert!(matches!(fault, Err(StoreFault::Refused(_))), "{fault:?}");
    let longest = build.claim_in(&tenant("m1"), &"é".repeat(1024), &"k".repeat(255));
    let seen = store.claim(&[fits, longest]).await;
    assert!(matches!(seen.as_deref(), Ok([Seen::Won { .. }, Seen::Won { .. }])), "{seen:?}");
}

/// SIGKILL under load, recovery, and every claim that was acknowledged is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledged_claim_survives_a_crash_of_the_server() {
    let cluster = Cluster::private(ServerOptions { fsync: true, ..ServerOptions::default() });
    let url = cluster.fresh_database();
    let store = Arc::new(PostgresStore::connect(&url, Options::default()).await.expect("connects"));
    store.migrate().await.expect("migrates");
    let build = Arc::new(Build::new(11));
    let (acknowledged, mut count) = tokio::sync::mpsc::unbounded_channel();
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let (store, build, acknowledged) = (store.clone(), build.clone(), acknowledged.clone());
            tokio::spawn(async move {
                for batch in 0.. {
                    let rows: Vec<_> = (0..20).map(|n| build.claim(&tenant("m1"), &format!("{client}-{batch}-{n}"))).collect();
                    let Ok(seen) = store.claim(&rows).await else { return };
                    assert!(seen.iter().all(|one| matches!(one, Seen::Won { .. })), "nobody else names these keys");
                    if acknowledged.send(rows).is_err() {
                        return;
                    }
                }
            })
        })
        .collect();
    drop(acknowledged);
    let mut rows = Vec::new();
    while rows.len() < 2000 {
        rows.extend(count.recv().await.expect("the clients work"));
    }
    cluster.kill_9();
    for client in clients {
        client.await.expect("a client ends when the server is gone");
    }
    while let Some(more) = count.recv().await {
        rows.extend(more);
    }
    cluster.restart();
    for rows in rows.chunks(500) {
        let keys: Vec<_> = rows.iter().map(|row| row.key.clone()).collect();
        let (found, _) = store.read(&keys).await.expect("reads");
        for (row, found) in rows.iter().zip(found) {
            assert_eq!(found.map(|record| record.claim_id), Some(row.claim_id), "{:?} was acknowledged", row.key);
        }
    }
}
