//! The conformance suite on the memory store, and the memory store behind faults.

use std::sync::Arc;
use std::time::Duration;

use payonce_core::clock::Fixed;
use payonce_core::ports::Store;
use payonce_testkit::build::START;
use payonce_testkit::fault::{Faulty, Rate};
use payonce_testkit::memory::MemoryStore;
use payonce_testkit::suite::{self, Fixture};

struct Fresh<S> {
    store: Arc<S>,
    clock: Arc<Fixed>,
}

impl<S: Store> Fixture for Fresh<S> {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

fn fresh() -> Fresh<MemoryStore> {
    let clock = Arc::new(Fixed::new(START, 1));
    Fresh { store: Arc::new(MemoryStore::new(clock.clone())), clock }
}

payonce_testkit::store_suite!(fresh());

/// Lost statements and lost answers, a fifth of all calls each: what was acknowledged, or found to have landed, is still the whole truth.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_fails_on_purpose_loses_and_doubles_nothing() {
    for seed in 0..4 {
        let Fresh { store, clock } = fresh();
        let faulty = Arc::new(Faulty::new(MemoryStore::clone(&store), seed, Rate { before_percent: 20, after_percent: 20 }));
        suite::stress::acknowledged_changes_replay_to_the_same_end(&Fresh { store: faulty.clone(), clock }).await;
        assert!(faulty.injected() > 100, "{} faults", faulty.injected());
    }
}
