//! Time and chance as parameters.
//!
//! The only places that read the real clock or the system's randomness implement these traits outside this crate.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A moment in milliseconds since the Unix epoch, UTC. Displays as RFC 3339.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The moment `seconds` after the Unix epoch. Saturates.
    pub const fn from_unix(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// Whole seconds since the Unix epoch, rounded down.
    pub const fn unix(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// This moment plus `by`. Saturates.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// This moment minus `by`. Saturates.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long from `earlier` to this moment; zero where `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Parses RFC 3339 with any offset.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        i64::try_from(at.unix_timestamp_nanos() / 1_000_000).ok().map(Self)
    }

    /// The same moment as a calendar value in UTC. `None` outside the years 0–9999.
    pub fn calendar(self) -> Option<OffsetDateTime> {
        let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000).ok()?;
        (0..=9999).contains(&at.year()).then_some(at)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.calendar().and_then(|at| at.format(&Rfc3339).ok()) {
            Some(text) => f.write_str(&text),
            None => write!(f, "{}ms", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where the time comes from.
pub trait Clock: Send + Sync + 'static {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// Where randomness comes from. Must be fit for keys and ids.
pub trait Entropy: Send + Sync + 'static {
    /// Fills `into` with random bytes.
    fn fill(&self, into: &mut [u8]);
}

/// `N` random bytes.
pub fn random<const N: usize>(entropy: &dyn Entropy) -> [u8; N] {
    let mut bytes = [0u8; N];
    entropy.fill(&mut bytes);
    bytes
}

/// A clock that only moves when it is told to, and bytes that follow from a seed. For tests and replays.
#[derive(Debug)]
pub struct Fixed {
    now: std::sync::atomic::AtomicI64,
    seed: std::sync::atomic::AtomicU64,
}

impl Fixed {
    /// Starts at `now` with `seed`.
    pub const fn new(now: Timestamp, seed: u64) -> Self {
        Self { now: std::sync::atomic::AtomicI64::new(now.0), seed: std::sync::atomic::AtomicU64::new(seed) }
    }

    /// Moves the clock on.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.now.fetch_add(by, std::sync::atomic::Ordering::SeqCst);
    }
}

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(std::sync::atomic::Ordering::SeqCst))
    }
}

impl Entropy for Fixed {
    fn fill(&self, into: &mut [u8]) {
        for byte in into {
            // splitmix64: every call moves the state on by a fixed odd number, so concurrent callers never share a value.
            let mut z = self.seed.fetch_add(0x9e37_79b9_7f4a_7c15, std::sync::atomic::Ordering::SeqCst);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            *byte = (z ^ (z >> 31)).to_le_bytes()[0];
        }
    }
}
