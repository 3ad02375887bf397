//! The pure decision on a claim that met a record: the table "Guard record" of the design (I8).
//!
//! What comes in: the record, the store's clock, whether the fingerprint is the same, and whether the route is resumable. What goes
//! out: one decision. It never looks at the answer and never changes anything.

use std::time::Duration;

use super::{Record, RecordState};
use crate::clock::Timestamp;

/// What a claim may do about the record that it met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Take the row over and run with `resumed = true`: an earlier run began, and its outcome is not known.
    Resume,
    /// Take the row over and run as new: the answer that stands there has expired.
    Reuse,
    /// Answer with what is kept.
    Replay,
    /// Another run holds the lease.
    InUse {
        /// When to ask again.
        retry_after: Duration,
    },
    /// The key was used for another request.
    Mismatch,
    /// The holder is gone and the route cannot resume: park the row, then answer that the outcome is unknown.
    ParkLapsed,
    /// Parked, and the route cannot resume: only an operator or a reconciliation settles it.
    OutcomeUnknown,
}

/// The shortest and the longest time that a repeat is told to wait. Work usually ends long before its lease, which is renewed meanwhile.
pub const RETRY_AFTER: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// Decides. `now` is the clock of the store that the record came from.
pub fn decide(record: &Record, now: Timestamp, fingerprint_matches: bool, resumable: bool) -> Decision {
    match (record.state, fingerprint_matches) {
        // An expired answer counts as absent, whatever the fingerprint; running and parked rows never expire.
        (RecordState::Answered, true | false) if record.expires_at <= now => Decision::Reuse,
        (RecordState::Answered, true) => Decision::Replay,
        (RecordState::Running, true) if record.locked_until > now => {
            let (shortest, longest) = RETRY_AFTER;
            Decision::InUse { retry_after: record.locked_until.since(now).clamp(shortest, longest) }
        }
        (RecordState::Running | RecordState::Parked, true) if resumable => Decision::Resume,
        (RecordState::Running, true) => Decision::ParkLapsed,
        (RecordState::Parked, true) => Decision::OutcomeUnknown,
        (RecordState::Running | RecordState::Parked | RecordState::Answered, false) => Decision::Mismatch,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use uuid::Uuid;

    use super::*;
    use crate::id::TenantId;
    use crate::key::IdempotencyKey;
    use crate::record::{ClaimId, Fence, RecordKey};
    use crate::secret::{KeyId, KeyedDigest};

    const NOW: Timestamp = Timestamp::from_unix(1_000_000);

    fn record(state: RecordState, locked_until: Timestamp, expires_at: Timestamp) -> Record {
        Record {
            key: RecordKey {
                tenant: TenantId::parse("default").expect("a tenant"),
                scope: "POST /v1/payments".to_owned(),
                key: IdempotencyKey::parse("k").expect("a key"),
            },
            fingerprint: KeyedDigest { key_id: KeyId([0; 4]), digest: [0; 32] },
            claim_id: ClaimId(Uuid::nil()),
            fence: Fence(1),
            state,
            created_at: NOW,
            locked_until,
            expires_at,
            answer: None,
        }
    }

    fn either() -> [bool; 2] {
        [true, false]
    }

    /// Every combination, by eye: state, lease (ms from now), expiry (ms from now), fingerprint, resumable.
    #[test]
    fn the_whole_table() {
        let mut grid = String::from("state    | lease   | expiry  | fingerprint | route     | decision\n");
        for state in [RecordState::Running, RecordState::Parked, RecordState::Answered] {
            for lease in [60_000, 1, 0, -1] {
                for expiry in [1, 0, -1] {
                    for (matches, resumable) in either().into_iter().flat_map(|m| either().map(|r| (m, r))) {
                        let record = record(state, Timestamp(NOW.0 + lease), Timestamp(NOW.0 + expiry));
                        let decision = decide(&record, NOW, matches, resumable);
                        let _ = writeln!(
                            grid,
                            "{:8} | {lease:+7} | {expiry:+7} | {:11} | {:9} | {decision:?}",
                            format!("{state:?}"),
                            if matches { "same" } else { "other" },
                            if resumable { "resumable" } else { "plain" },
                        );
                    }
                }
            }
        }
        insta::assert_snapshot!(grid);
    }

    #[test]
    fn b030_running_and_parked_rows_never_expire() {
        for state in [RecordState::Running, RecordState::Parked] {
            for (matches, resumable) in either().into_iter().flat_map(|m| either().map(|r| (m, r))) {
                let young = decide(&record(state, NOW, Timestamp(i64::MAX)), NOW, matches, resumable);
                let ancient = decide(&record(state, NOW, Timestamp(i64::MIN)), NOW, matches, resumable);
                assert_eq!(young, ancient);
                assert!(!matches!(ancient, Decision::Reuse | Decision::Replay));
            }
        }
    }

    #[test]
    fn b010_another_request_is_never_answered_with_the_first_ones_answer() {
        for state in [RecordState::Running, RecordState::Parked, RecordState::Answered] {
            for (lease, resumable) in either().into_iter().flat_map(|l| either().map(|r| (l, r))) {
                let locked_until = if lease { Timestamp(i64::MAX) } else { Timestamp(i64::MIN) };
                assert_eq!(decide(&record(state, locked_until, Timestamp(i64::MAX)), NOW, false, resumable), Decision::Mismatch);
            }
        }
    }
}
