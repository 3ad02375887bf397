//! Every statement against the migrated schema.

use std::path::Path;

use payonce_store_sqlite::STATEMENTS;
use rusqlite::Connection;

const SCHEMA: &str = include_str!("../migrations/0001_first.sql");

fn text(name: &str) -> &'static str {
    STATEMENTS.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text)
}

#[test]
fn every_statement_is_prepared() {
    let connection = Connection::open_in_memory().expect("opens");
    for make in ["schema/make_applied", "schema/make_lock"] {
        connection.execute(text(make), []).expect(make);
    }
    connection.execute_batch(SCHEMA).expect("the schema");
    for (name, text) in STATEMENTS {
        connection.prepare(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// The hot statements find their rows by an index: none walks a table.
#[test]
fn no_hot_statement_walks_a_table() {
    let connection = Connection::open_in_memory().expect("opens");
    connection.execute_batch(SCHEMA).expect("the schema");
    let hot = [
        "records/read",
        "records/take_over",
        "records/finish",
        "records/release",
        "records/sweep",
        "payments/move",
        "payments/load",
        "payments/load_order",
        "payments/find_attempt",
        "payments/find_refund",
        "payments/take_due",
        "inbox/settle",
        "inbox/take_waiting",
        "inbox/sweep",
        "inbox/row",
        "outbox/take",
        "outbox/feed",
        "outbox/of_payment",
        "directory/api_key",
        "directory/account",
    ];
    for name in hot {
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", text(name))).expect(name);
        let count = plan.parameter_count();
        let steps =
            plan.query_map(rusqlite::params_from_iter(vec![rusqlite::types::Null; count]), |row| row.get::<_, String>(3)).expect(name);
        for step in steps.map(|step| step.expect(name)) {
            let walks = step.starts_with("SCAN ") && !step.contains("USING") && !step.contains("CONSTANT ROW") && !step.contains("wanted");
            assert!(!walks, "{name}: {step}");
        }
    }
}

#[test]
fn every_file_is_a_statement_of_its_own_with_a_reason() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql");
    let mut files: Vec<String> = Vec::new();
    for family in std::fs::read_dir(&folder).expect("sql/") {
        for file in std::fs::read_dir(family.expect("an entry").path()).expect("a family") {
            let path = file.expect("an entry").path();
            files.push(path.strip_prefix(&folder).expect("below").with_extension("").to_string_lossy().into_owned());
        }
    }
    let mut listed: Vec<String> = STATEMENTS.iter().map(|(name, _)| (*name).to_owned()).collect();
    files.sort();
    listed.sort();
    assert_eq!(files, listed);
    for (name, text) in STATEMENTS {
        assert!(text.starts_with("-- "), "{name} does not say why");
        let code = text.lines().filter(|line| !line.trim_start().starts_with("--"));
        assert!(!code.collect::<String>().contains(';'), "{name} is more than one statement");
    }
}
