//! The harness itself: PostgreSQL servers and PgBouncer.

use std::{path::Path, thread, time::Duration};

use payonce_testkit::{
    pgbouncer::PgBouncer,
    ports,
    postgres::{Cluster, Options, QueryError},
};

const DUE: Duration = Duration::from_secs(20);

fn one(cluster: &Cluster, database: &str, sql: &str) -> String {
    let rows = cluster.query(database, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows.into_iter().flatten().flatten().next().unwrap_or_default()
}

#[test]
fn every_test_gets_an_empty_database_of_its_own() {
    let cluster = Cluster::shared();
    let databases: Vec<String> = thread::scope(|scope| {
        (0..4).map(|_| scope.spawn(|| cluster.fresh_database())).collect::<Vec<_>>().into_iter().map(|t| t.join().unwrap()).collect()
    });
    for database in &databases {
        cluster.query(database, "CREATE TABLE only_here (n int); INSERT INTO only_here VALUES (7)").unwrap();
        assert_eq!(one(cluster, database, "SELECT n FROM only_here"), "7");
    }
    assert!(databases[0].starts_with("postgres://payonce@127.0.0.1:"), "{}", databases[0]);
}

#[test]
fn a_template_is_prepared_once_and_copies_do_not_touch_each_other() {
    let cluster = Cluster::private(Options::default());
    let mut prepared = 0;
    let mut copy = || {
        cluster.fresh_database_like("seven", |url| {
            prepared += 1;
            cluster.query(url, "CREATE TABLE t (n int); INSERT INTO t VALUES (7)").unwrap();
        })
    };
    let (first, second) = (copy(), copy());
    cluster.query(&first, "DELETE FROM t").unwrap();
    assert_eq!(one(&cluster, &first, "SELECT count(*) FROM t"), "0");
    assert_eq!(one(&cluster, &second, "SELECT n FROM t"), "7");
    assert_eq!(prepared, 1);
}

#[test]
fn the_server_does_not_run_as_root_and_listens_on_loopback_only() {
    let cluster = Cluster::private(Options::default());
    let data = one(&cluster, "postgres", "SHOW data_directory");
    let pid_file = std::fs::read_to_string(Path::new(&data).join("postmaster.pid")).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid_file.lines().next().unwrap())).unwrap();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    assert!(uids.split_whitespace().all(|uid| uid != "0"), "{uids}");
    assert_eq!(one(&cluster, "postgres", "SHOW listen_addresses"), "127.0.0.1");
}

#[test]
fn what_was_committed_survives_kill_9_on_the_same_port() {
    let cluster = Cluster::private(Options { fsync: true, settings: vec!["max_connections=20".to_owned()] });
    assert_eq!(one(&cluster, "postgres", "SHOW fsync"), "on");
    assert_eq!(one(&cluster, "postgres", "SHOW max_connections"), "20");
    let (database, port) = (cluster.fresh_database(), cluster.port());
    cluster.query(&database, "CREATE TABLE t (n int)").unwrap();
    cluster.query(&database, "INSERT INTO t VALUES (1)").unwrap();
    cluster.kill_9();
    assert!(matches!(cluster.query(&database, "SELECT 1"), Err(QueryError::Lost(_))), "a killed server answered");
    cluster.restart();
    assert_eq!(cluster.port(), port);
    assert_eq!(one(&cluster, &database, "SELECT count(*) FROM t"), "1");
    cluster.stop();
    assert!(matches!(cluster.query(&database, "SELECT 1"), Err(QueryError::Lost(_))), "a stopped server answered");
    cluster.restart();
    assert_eq!(one(&cluster, &database, "SELECT count(*) FROM t"), "1");
}

#[test]
fn a_private_server_leaves_nothing_behind() {
    let cluster = Cluster::private(Options::default());
    let data = one(&cluster, "postgres", "SHOW data_directory");
    let port = cluster.port();
    drop(cluster);
    assert!(!Path::new(&data).exists(), "{data} was left");
    assert!(ports::wait_until_listening(port, Duration::ZERO).is_err(), "something still listens on {port}");
}

#[test]
fn a_refusal_comes_with_its_sqlstate() {
    let cluster = Cluster::shared();
    let Err(QueryError::Refused { code, .. }) = cluster.query("postgres", "SELECT 1/0") else { panic!("division by zero was taken") };
    assert_eq!(code, "22012");
    let Err(QueryError::Refused { code, .. }) = cluster.query("no_such_database", "SELECT 1") else {
        panic!("a missing database was opened")
    };
    assert_eq!(code, "3D000");
}

#[test]
fn the_pooler_lends_one_server_connection_to_many_clients() {
    let cluster = Cluster::shared();
    let database = cluster.fresh_database();
    let pooler = PgBouncer::start(cluster, 1);
    let backend = || pooler.query(&database, "SELECT pg_backend_pid()").unwrap();
    let first = backend();
    assert_eq!(first, backend(), "a pool of one used two server connections");
    // What a session sets stays with the server connection: the next client finds it. That is transaction mode.
    pooler.query(&database, "SET work_mem = '77MB'").unwrap();
    assert_eq!(pooler.query(&database, "SHOW work_mem").unwrap(), vec![vec![Some("77MB".to_owned())]]);
    let port = pooler.port();
    drop(pooler);
    assert!(ports::wait_until(DUE, || ports::wait_until_listening(port, Duration::ZERO).is_err()), "the pooler still listens");
}
