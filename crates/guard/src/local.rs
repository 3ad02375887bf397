//! What runs in this process: how many, and under which keys, so that repeats here are woken at once and shutdown knows when all is done.
//!
//! It is a hint and a counter. Who may run is decided by the table alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use payonce_core::record::RecordKey;
use tokio::sync::{Notify, watch};

#[derive(Debug)]
pub(crate) struct Local {
    count: watch::Sender<usize>,
    keys: Mutex<HashMap<RecordKey, Arc<Notify>>>,
}

impl Local {
    pub(crate) fn new() -> Self {
        Self { count: watch::Sender::new(0), keys: Mutex::default() }
    }

    /// Counts a request in, unless `max` are in already.
    pub(crate) fn enter(self: &Arc<Self>, max: usize) -> Option<Entered> {
        let entered = self.count.send_if_modified(|count| {
            let room = *count < max;
            *count += usize::from(room);
            room
        });
        entered.then(|| Entered(self.clone()))
    }

    /// Marks a key as running here until the mark is dropped.
    pub(crate) fn mark(self: &Arc<Self>, key: &RecordKey) -> Marked {
        let ended = Arc::new(Notify::new());
        self.keys().insert(key.clone(), ended.clone());
        Marked { local: self.clone(), key: key.clone(), ended }
    }

    /// What is notified when the run of `key` in this process ends, if there is one.
    pub(crate) fn ended(&self, key: &RecordKey) -> Option<Arc<Notify>> {
        self.keys().get(key).cloned()
    }

    /// Returns when nobody is in.
    pub(crate) async fn empty(&self) {
        // The sender lives as long as self, so this cannot fail.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }

    fn keys(&self) -> std::sync::MutexGuard<'_, HashMap<RecordKey, Arc<Notify>>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request in this process.
#[derive(Debug)]
pub(crate) struct Entered(Arc<Local>);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// A key that runs in this process.
#[derive(Debug)]
pub(crate) struct Marked {
    local: Arc<Local>,
    key: RecordKey,
    ended: Arc<Notify>,
}

impl Drop for Marked {
    fn drop(&mut self) {
        let mut keys = self.local.keys();
        // A zombie's mark may have been replaced by that of the run that took over.
        if keys.get(&self.key).is_some_and(|ended| Arc::ptr_eq(ended, &self.ended)) {
            keys.remove(&self.key);
        }
        drop(keys);
        self.ended.notify_waiters();
    }
}
