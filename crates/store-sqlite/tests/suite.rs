//! The conformance suite of all stores, on a file with two handles as two processes have them, and in memory.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use payonce_core::clock::Fixed;
use payonce_core::ports::Store;
use payonce_store_sqlite::{Options, SqliteStore};
use payonce_testkit::build::START;
use payonce_testkit::suite::Fixture;

struct File {
    dir: PathBuf,
    first: Arc<SqliteStore>,
    second: Arc<SqliteStore>,
    clock: Arc<Fixed>,
}

impl File {
    async fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("payonce-suite-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).expect("a temporary directory");
        let clock = Arc::new(Fixed::new(START, 1));
        let open = || Arc::new(SqliteStore::open(dir.join("payonce.db"), Options::new(clock.clone())).expect("opens"));
        let (first, second) = (open(), open());
        first.migrate().await.expect("migrates");
        Self { first, second, clock, dir }
    }
}

impl Fixture for File {
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

impl Drop for File {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.dir).ok();
    }
}

struct Memory {
    store: Arc<SqliteStore>,
    clock: Arc<Fixed>,
}

impl Memory {
    async fn new() -> Self {
        let clock = Arc::new(Fixed::new(START, 1));
        let store = Arc::new(SqliteStore::open(":memory:", Options::new(clock.clone())).expect("opens"));
        store.migrate().await.expect("migrates");
        Self { store, clock }
    }
}

impl Fixture for Memory {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

mod file {
    use super::*;
    payonce_testkit::store_suite!(File::new().await);
}

mod memory {
    use super::*;
    payonce_testkit::store_suite!(Memory::new().await);
}
