//! A directory for one test, gone with it.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use payonce_core::clock::Fixed;
use payonce_store_sqlite::{Options, SqliteStore};
use payonce_testkit::build::START;

pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("payonce-sqlite-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).expect("a temporary directory");
        Self(dir)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("payonce.db")
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// The clock of a test.
pub(crate) fn clock() -> Arc<Fixed> {
    Arc::new(Fixed::new(START, 1))
}

pub(crate) fn open(path: &Path, clock: &Arc<Fixed>) -> SqliteStore {
    SqliteStore::open(path, Options::new(clock.clone())).expect("opens")
}
