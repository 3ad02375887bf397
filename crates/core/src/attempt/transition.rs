//! The pure rule for an attempt: status × outcome. Exhaustive; the grid is printed into `docs/states.md`.

use super::AttemptStatus;
use crate::outcome::Outcome;

/// What an outcome does to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// The attempt takes this status, and the outcome's transaction id, action or failure with it.
    Become(AttemptStatus),
    /// Told before, or nothing new.
    Stay,
    /// It does not fit what is known; kept in the timeline, nothing moves.
    Note,
    /// Money on an attempt that had failed: taken as paid if nothing else of the payment is live or paid, else surplus (I9).
    Adopt,
    /// Money beside the payment (I9): booked, flagged, refunded once by policy.
    Surplus,
    /// A person has to look.
    Review,
}

/// The rule. `known_txn` says whether the outcome names the transaction that this attempt already has.
pub fn transition(status: AttemptStatus, outcome: &Outcome, known_txn: bool) -> Move {
    use AttemptStatus as S;
    use Move::{Adopt, Become, Note, Review, Stay, Surplus};
    match (status, outcome) {
        // Money taken.
        (S::Prepared | S::Pending | S::Unknown | S::Authorized, Outcome::Paid(_)) => Become(S::Succeeded),
        (S::Succeeded, Outcome::Paid(_)) => {
            if known_txn {
                Stay
            } else {
                Surplus
            }
        }
        (S::Declined, Outcome::Paid(_)) => Adopt,
        (S::Closed, Outcome::Paid(_)) => Surplus,

        // Money reserved.
        (S::Prepared | S::Pending | S::Unknown, Outcome::Authorized(_)) => Become(S::Authorized),
        (S::Authorized, Outcome::Authorized(_)) => {
            if known_txn {
                Stay
            } else {
                Review
            }
        }
        // A late word of an authorisation that was captured since.
        (S::Succeeded, Outcome::Authorized(_)) => Stay,
        // Reserved after the end: somebody has to void it, and no rule of ours may guess which.
        (S::Declined | S::Closed, Outcome::Authorized(_)) => Review,

        // The channel has it and waits.
        (S::Prepared | S::Unknown, Outcome::Waiting { .. }) => Become(S::Pending),
        (S::Pending, Outcome::Waiting { .. }) => Stay,
        (S::Authorized | S::Succeeded | S::Declined | S::Closed, Outcome::Waiting { .. }) => Note,

        // Refused for good.
        (S::Prepared | S::Pending | S::Unknown, Outcome::Declined(_)) => Become(S::Declined),
        (S::Declined, Outcome::Declined(_)) => Stay,
        // B071: a late failure of an earlier try never overwrites money.
        (S::Authorized | S::Succeeded | S::Closed, Outcome::Declined(_)) => Note,

        // Refused this time; the order at the channel stays payable (I4).
        (S::Prepared | S::Pending | S::Unknown, Outcome::DeclinedOpen(_)) => Become(S::Pending),
        (S::Authorized | S::Succeeded | S::Declined | S::Closed, Outcome::DeclinedOpen(_)) => Note,

        // Ended unpaid.
        (S::Prepared | S::Pending | S::Unknown | S::Authorized, Outcome::Closed) => Become(S::Closed),
        (S::Closed | S::Declined, Outcome::Closed) => Stay,
        (S::Succeeded, Outcome::Closed) => Note,

        // Not there, and that is final.
        (S::Prepared | S::Pending | S::Unknown, Outcome::AbsentFinal) => Become(S::Closed),
        (S::Authorized | S::Succeeded, Outcome::AbsentFinal) => Review,
        (S::Declined | S::Closed, Outcome::AbsentFinal) => Stay,
        // Not there, which proves nothing.
        (S::Prepared, Outcome::AbsentYet) => Become(S::Unknown),
        (S::Pending | S::Unknown | S::Authorized | S::Succeeded | S::Declined | S::Closed, Outcome::AbsentYet) => Stay,

        // Refused before anything came of it. Proof only for the first send: a repeat that is refused says nothing of the first.
        (S::Prepared, Outcome::NotAccepted(_)) => Become(S::Declined),
        (S::Declined, Outcome::NotAccepted(_)) => Stay,
        (S::Pending | S::Unknown | S::Authorized | S::Succeeded | S::Closed, Outcome::NotAccepted(_)) => Note,

        // No byte left: the attempt stays where it is and may be sent again.
        (S::Prepared | S::Pending | S::Unknown | S::Authorized | S::Succeeded | S::Declined | S::Closed, Outcome::NotSent(_)) => Stay,

        // Nobody knows.
        (S::Prepared, Outcome::Unknown(_) | Outcome::InProgress) => Become(S::Unknown),
        (S::Pending | S::Unknown | S::Authorized | S::Succeeded | S::Declined | S::Closed, Outcome::Unknown(_) | Outcome::InProgress) => {
            Stay
        }
    }
}
