//! The guard's limits, and what a route asks of it.

use std::time::Duration;

use crate::writer::WriterLimits;

/// Limits of one guard. [`Self::check`] holds them against each other.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// How long a claim holds without being renewed. Renewed at a third of it.
    pub lease: Duration,
    /// How long an answer is kept, counted from the claim.
    pub ttl: Duration,
    /// A longer answer (headers and body) is kept as a marker.
    pub max_answer_bytes: usize,
    /// So many bytes of kept answers are held in memory, so that their replays need no store call; 0 for none. Leave it 0 where a test moves the
    /// store's clock: memory expires by the process's own.
    pub cache_bytes: usize,
    /// So many requests run or wait at once at most; the next is refused.
    pub max_runs: usize,
    /// For how long the end of a run is tried again while the store is down. Its caller is answered no later than its lease ends.
    pub finish_for: Duration,
    /// The writer's limits.
    pub writer: WriterLimits,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(60),
            ttl: Duration::from_secs(24 * 60 * 60),
            max_answer_bytes: 1024 * 1024,
            cache_bytes: 0,
            max_runs: 10_000,
            finish_for: Duration::from_secs(15 * 60),
            writer: WriterLimits::default(),
        }
    }
}

/// Which limits contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyFault {
    /// A lease under 30 ms cannot be renewed in time.
    #[error("the lease is shorter than 30 ms")]
    LeaseTooShort,
    /// An answer would expire while its run may still hold the lease.
    #[error("answers are kept for less than a lease")]
    TtlShorterThanLease,
    /// No room for any answer or run.
    #[error("max_answer_bytes (at least 256) and max_runs (at least 1) leave no room")]
    NoRoom,
}

impl Policy {
    /// Whether the limits fit each other.
    pub fn check(&self) -> Result<(), PolicyFault> {
        if self.lease < Duration::from_millis(30) {
            return Err(PolicyFault::LeaseTooShort);
        }
        if self.ttl < self.lease {
            return Err(PolicyFault::TtlShorterThanLease);
        }
        if self.max_answer_bytes < 256 || self.max_runs == 0 {
            return Err(PolicyFault::NoRoom);
        }
        Ok(())
    }
}

/// What a route asks of the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Whether a run whose predecessor's outcome is unknown can find out by itself. Only such a route is ever run a second time under one key.
    pub resumable: bool,
    /// What becomes of a repeat while the first is running.
    pub in_flight: InFlight,
    /// Overrides [`Policy::lease`].
    pub lease: Option<Duration>,
    /// Overrides [`Policy::ttl`].
    pub ttl: Option<Duration>,
}

/// What becomes of a repeat while the first is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFlight {
    /// Refused at once.
    Refuse,
    /// Waits for the first to end and is then answered like any repeat; refused after `at_most`.
    Wait {
        /// How long.
        at_most: Duration,
    },
}

impl Route {
    /// A route that cannot find out what became of an earlier run.
    pub const PLAIN: Self = Self { resumable: false, in_flight: InFlight::Refuse, lease: None, ttl: None };
    /// A route that resumes: it meets what the earlier run has stored and asks the channel.
    pub const RESUMABLE: Self = Self { resumable: true, ..Self::PLAIN };

    /// The same, with repeats that wait.
    #[must_use]
    pub const fn waiting(self, at_most: Duration) -> Self {
        Self { in_flight: InFlight::Wait { at_most }, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_held_against_each_other() {
        assert_eq!(Policy::default().check(), Ok(()));
        assert_eq!(Policy { lease: Duration::ZERO, ..Policy::default() }.check(), Err(PolicyFault::LeaseTooShort));
        assert_eq!(Policy { ttl: Duration::from_secs(59), ..Policy::default() }.check(), Err(PolicyFault::TtlShorterThanLease));
        assert_eq!(Policy { max_runs: 0, ..Policy::default() }.check(), Err(PolicyFault::NoRoom));
        // A renewal that is lost to one slow store call still leaves time for the next.
        let policy = Policy::default();
        assert!(policy.writer.store_call < policy.lease / 3);
    }
}
