//! The real clock and the system's randomness: the one place where either is read.

use std::time::UNIX_EPOCH;

use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use payonce_core::clock::{Clock, Entropy, Timestamp};

/// The time of day.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one real clock; everybody else takes a core::Clock")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Randomness fit for keys, from the crypto library's generator.
#[derive(Debug, Default)]
pub struct SystemEntropy(SystemRandom);

impl Entropy for SystemEntropy {
    fn fill(&self, into: &mut [u8]) {
        if self.0.fill(into).is_err() {
            // Nothing can be trusted without randomness: nonces and claim ids would repeat. There is no answer to give instead.
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_drawn_and_differ() {
        let draw = || payonce_core::clock::random::<32>(&SystemEntropy::default());
        assert_ne!(draw(), draw());
        assert!(SystemClock.now() > Timestamp::from_unix(1_700_000_000));
    }
}
