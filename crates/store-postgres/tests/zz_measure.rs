use payonce_core::ports::records::*;
use payonce_core::record::Fence;
use payonce_store_postgres::*;
use payonce_testkit::build::{Build, sealed, tenant};
use std::time::Instant;
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn measure() {
    let store = PostgresStore::connect(
        "postgres://payonce@127.0.0.1:54999/y",
        Options {
            statement_mode: if std::path::Path::new("/tmp/pgx/prepared").exists() { StatementMode::Auto } else { StatementMode::Typed },
            ..Options::default()
        },
    )
    .await
    .unwrap();
    store.migrate().await.unwrap();
    let build = Build::new(Instant::now().elapsed().as_nanos() as u64 ^ std::process::id() as u64);
    for batch in [std::fs::read_to_string("/tmp/pgx/batch").unwrap().trim().parse::<usize>().unwrap()] {
        let n = 16000 / batch.max(8);
        let mut claims_us = 0;
        let mut writes_us = 0;
        let mut reads_us = 0;
        for b in 0..n {
            let rows: Vec<_> = (0..batch).map(|i| build.claim(&tenant("m1"), &format!("{}-{batch}-{b}-{i}", std::process::id()))).collect();
            let t = Instant::now();
            store.claim(&rows).await.unwrap();
            claims_us += t.elapsed().as_micros();
            let w: Vec<_> = rows
                .iter()
                .map(|c| Write { key: c.key.clone(), claim_id: c.claim_id, fence: Fence(1), verb: Verb::Keep(sealed("answer")) })
                .collect();
            let t = Instant::now();
            store.write(&w).await.unwrap();
            writes_us += t.elapsed().as_micros();
            let keys: Vec<_> = rows.iter().map(|c| c.key.clone()).collect();
            let t = Instant::now();

            reads_us += t.elapsed().as_micros();
        }
        let n = n as u128;
        eprintln!("batch {batch}: claim {} write {} read {} us", claims_us / n, writes_us / n, reads_us / n);
    }
}
