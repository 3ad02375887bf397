//! The pure rule for a refund: status × outcome. Exhaustive; the grid is printed into `docs/states.md`.

use super::RefundStatus;
use crate::outcome::RefundOutcome;

/// What an outcome does to a refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// The refund takes this status, and the outcome's failure or id with it.
    Become(RefundStatus),
    /// Told before, or nothing new.
    Stay,
    /// It does not fit what is known; kept in the timeline.
    Note,
    /// The money went back although the refund had failed: booked, and the payment is checked for an overlap (I7).
    Late,
}

/// The rule. `first_send` says whether the request that was answered was the first of this reference: only then does a refusal prove
/// that nothing happened.
pub fn transition(status: RefundStatus, outcome: &RefundOutcome, first_send: bool) -> Move {
    use Move::{Become, Late, Note, Stay};
    use RefundStatus as S;
    match (status, outcome) {
        (S::Pending | S::Unknown, RefundOutcome::Succeeded { .. }) => Become(S::Succeeded),
        (S::Succeeded, RefundOutcome::Succeeded { .. }) => Stay,
        (S::Failed, RefundOutcome::Succeeded { .. }) => Late,

        (S::Unknown, RefundOutcome::Processing) => Become(S::Pending),
        (S::Pending, RefundOutcome::Processing) => Stay,
        // B044: the late "submitted" does not move it back.
        (S::Succeeded | S::Failed, RefundOutcome::Processing) => Stay,

        // B081: accepted, and failed later; some channels fail even after success.
        (S::Pending | S::Unknown | S::Succeeded, RefundOutcome::Failed(_)) => Become(S::Failed),
        (S::Failed, RefundOutcome::Failed(_)) => Stay,

        (S::Pending, RefundOutcome::NotAccepted(_)) => {
            if first_send {
                Become(S::Failed)
            } else {
                Note
            }
        }
        (S::Failed, RefundOutcome::NotAccepted(_)) => Stay,
        (S::Unknown | S::Succeeded, RefundOutcome::NotAccepted(_)) => Note,

        // Nothing there: the same reference may be sent again, so it is pending, not failed.
        (S::Pending, RefundOutcome::Absent) => Stay,
        (S::Unknown, RefundOutcome::Absent) => Become(S::Pending),
        (S::Succeeded | S::Failed, RefundOutcome::Absent) => Note,

        (S::Pending | S::Unknown | S::Succeeded | S::Failed, RefundOutcome::NotSent(_)) => Stay,

        (S::Pending, RefundOutcome::Unknown(_) | RefundOutcome::InProgress) => Become(S::Unknown),
        (S::Unknown | S::Succeeded | S::Failed, RefundOutcome::Unknown(_) | RefundOutcome::InProgress) => Stay,
    }
}
