//! The conformance suite of all stores, on a file with two handles as two processes have them, and in memory.

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::Dir;
use payonce_core::clock::Fixed;
use payonce_core::ports::Store;
use payonce_store_sqlite::SqliteStore;
use payonce_testkit::suite::Fixture;

struct File {
    first: Arc<SqliteStore>,
    second: Arc<SqliteStore>,
    clock: Arc<Fixed>,
    _dir: Dir,
}

impl File {
    async fn new() -> Self {
        let (dir, clock) = (Dir::new(), common::clock());
        let open = || Arc::new(common::open(&dir.file(), &clock));
        let (first, second) = (open(), open());
        first.migrate().await.expect("migrates");
        Self { first, second, clock, _dir: dir }
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

struct Memory {
    store: Arc<SqliteStore>,
    clock: Arc<Fixed>,
}

impl Memory {
    async fn new() -> Self {
        let clock = common::clock();
        let store = Arc::new(common::open(Path::new(":memory:"), &clock));
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
