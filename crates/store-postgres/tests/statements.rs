//! Every statement against the migrated schema of a real server.

mod common;

use payonce_store_postgres::STATEMENTS;
use tokio_postgres::NoTls;

/// The server takes each, and finds the very types that we send: a typed statement with a wrong type would be cast, or refused in production only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_statement_is_prepared_with_the_types_that_are_sent() {
    let url = common::migrated();
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.expect("connects");
    tokio::spawn(connection);
    for statement in STATEMENTS {
        let prepared = client.prepare(statement.text).await;
        let prepared = prepared.unwrap_or_else(|error| panic!("{}: {error:?}", statement.name));
        assert_eq!(prepared.params(), statement.params, "{}", statement.name);
    }
}

#[test]
fn every_file_is_a_statement_of_its_own_with_a_reason() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<String> = Vec::new();
    let families = ["sql", "batch"].map(|tree| std::fs::read_dir(folder.join(tree)).expect(tree));
    for family in families.into_iter().flatten() {
        for file in std::fs::read_dir(family.expect("an entry").path()).expect("a family") {
            let path = file.expect("an entry").path();
            let name = path.strip_prefix(folder).expect("below").with_extension("");
            files.push(name.to_string_lossy().into_owned());
        }
    }
    let mut listed: Vec<String> = STATEMENTS.iter().map(|statement| statement.name.to_owned()).collect();
    files.sort();
    listed.sort();
    assert_eq!(files, listed);
    for statement in STATEMENTS {
        assert!(statement.text.starts_with("-- "), "{} does not say why", statement.name);
        let code = statement.text.lines().filter(|line| !line.trim_start().starts_with("--"));
        assert!(!code.collect::<String>().contains(';'), "{} is more than one statement", statement.name);
    }
}
