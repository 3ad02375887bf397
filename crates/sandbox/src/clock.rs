//! The channels' clock: the real one, moved on by control calls. It never goes back but by a reset.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use payonce_core::clock::{Clock, Timestamp};

/// The machine's clock.
#[derive(Clone, Copy, Debug)]
pub struct WallClock;

impl Clock for WallClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the sandbox plays other companies' machines: this is their clock, which no part of the product reads"
    )]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that can be moved on.
pub(crate) struct Moved {
    base: Arc<dyn Clock>,
    offset_ms: AtomicI64,
}

impl Moved {
    pub(crate) fn new(base: Arc<dyn Clock>) -> Self {
        Self { base, offset_ms: AtomicI64::new(0) }
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.base.now().0.saturating_add(self.offset_ms.load(Ordering::SeqCst)))
    }

    /// It is at least `at` from now on.
    pub(crate) fn move_to(&self, at: Timestamp) {
        let ahead = at.since(self.now());
        self.offset_ms.fetch_add(i64::try_from(ahead.as_millis()).unwrap_or(0), Ordering::SeqCst);
    }

    /// Back to the real time.
    pub(crate) fn reset(&self) {
        self.offset_ms.store(0, Ordering::SeqCst);
    }

    /// How long until `at`.
    pub(crate) fn until(&self, at: Timestamp) -> Duration {
        at.since(self.now())
    }
}

impl fmt::Debug for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Moved({})", self.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use payonce_core::clock::Fixed;

    #[test]
    fn it_moves_on_and_never_back() {
        let clock = Moved::new(Arc::new(Fixed::new(Timestamp(1000), 1)));
        clock.move_to(Timestamp(5000));
        clock.move_to(Timestamp(3000));
        assert_eq!(clock.now(), Timestamp(5000));
        assert_eq!(clock.until(Timestamp(6000)), Duration::from_secs(1));
        clock.reset();
        assert_eq!(clock.now(), Timestamp(1000));
    }
}
