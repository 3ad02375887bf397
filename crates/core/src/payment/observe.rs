//! One way for data: an outcome and where it came from, met with the payment as it is (design §5).
//!
//! Pure. The charge's answer, a notification, a look-up and the reconciler all come through here.

use serde_json::json;

use super::draft::Draft;
use super::{Payment, Review, Surplus, SurplusPolicy};
use crate::attempt::transition::{Move, transition};
use crate::attempt::{Attempt, AttemptStatus};
use crate::channel_ref::ChannelRef;
use crate::clock::Timestamp;
use crate::event::EventKind;
use crate::failure::Failure;
use crate::id::{AttemptId, RefundId, SurplusId};
use crate::money::Money;
use crate::outcome::{Outcome, Source, Taken};
use crate::refund::{Origin, Refund, RefundOf, RefundStatus};
use crate::secret::{Sealed, sha256};

/// What is seen of an attempt.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Which attempt.
    pub attempt: AttemptId,
    /// What became of it.
    pub outcome: Outcome,
    /// Who told us.
    pub source: Source,
    /// The outcome's action, sealed for its place.
    pub action: Option<Sealed>,
}

/// Applies an observation to the draft. An attempt that is not of this payment changes nothing.
pub fn observe(draft: &mut Draft, seen: &Observation, policy: SurplusPolicy) {
    let Some(index) = draft.after.attempts.iter().position(|attempt| attempt.id == seen.attempt) else { return };
    let attempt = draft.after.attempts[index].clone();
    if let Some((code, detail)) = disagreement(&attempt, &seen.outcome) {
        // A message told twice must not open the review twice.
        if draft.after.review.as_ref().is_none_or(|review| review.detail != detail) {
            draft.note("mismatch", Some(seen.source), json!({ "attempt": attempt.id, "code": code, "detail": detail }));
            draft.after.review = Some(Review { code: code.to_owned(), detail });
        }
        return;
    }
    if is_booked_elsewhere(draft, &attempt, &seen.outcome) {
        return;
    }
    let known_txn = match (&attempt.channel_txn, taken(&seen.outcome)) {
        (Some(known), Some(told)) => *known == told.txn || known.starts_with(OPERATOR_TXN),
        (None, Some(_)) => !matches!(attempt.status, AttemptStatus::Succeeded | AttemptStatus::Authorized),
        (_, None) => true,
    };
    let released_money = attempt.released && matches!(seen.outcome, Outcome::Paid(_)) && attempt.status != AttemptStatus::Succeeded;
    // Reserved on an attempt that was given up: like one after the end, somebody has to void it.
    let released_hold = attempt.released && matches!(seen.outcome, Outcome::Authorized(_)) && attempt.status.is_live();
    let step = if released_money { Move::Surplus } else { transition(attempt.status, &seen.outcome, known_txn) };
    let step = match step {
        Move::Become(AttemptStatus::Authorized) if released_hold => Move::Review,
        // Told before: the same status for the same reason.
        Move::Become(status) if status == attempt.status && failure(&seen.outcome) == attempt.failure.as_ref() => Move::Stay,
        Move::Become(_) | Move::Stay | Move::Note | Move::Adopt | Move::Surplus | Move::Review => step,
    };
    match step {
        Move::Stay => stay(draft, index, seen),
        Move::Note => {
            let detail = json!({ "attempt": attempt.id, "status": attempt.status, "outcome": name(&seen.outcome) });
            draft.note("ignored", Some(seen.source), detail);
        }
        Move::Become(status) => become_status(draft, index, status, seen),
        Move::Adopt => {
            let elsewhere = draft.after.live().is_some() || draft.after.paid_attempt().is_some();
            if elsewhere {
                surplus(draft, &attempt, seen, policy);
            } else {
                become_status(draft, index, AttemptStatus::Succeeded, seen);
            }
        }
        Move::Surplus => surplus(draft, &attempt, seen, policy),
        Move::Review => {
            let detail = format!("{} on attempt {} that is {}", name(&seen.outcome), attempt.id, attempt.status.as_str());
            if draft.after.review.as_ref().is_some_and(|review| review.detail == detail) {
                return;
            }
            draft.note("review", Some(seen.source), json!({ "attempt": attempt.id, "detail": detail }));
            draft.after.review = Some(Review { code: "unexpected_outcome".to_owned(), detail });
        }
    }
}

/// How a transaction begins that an operator vouched for without knowing the channel's own id. The channel's word on it, when it comes, is
/// about the same money.
pub const OPERATOR_TXN: &str = "operator:";

/// Whether this money is in the books already, beside the payment or on another attempt: told again, it must not be counted again (I9).
fn is_booked_elsewhere(draft: &Draft, attempt: &Attempt, outcome: &Outcome) -> bool {
    let Outcome::Paid(taken) = outcome else { return false };
    let of_surplus = draft.after.surpluses.iter().any(|row| row.account == attempt.account && row.channel_txn == taken.txn);
    let of_another = draft.after.attempts.iter().any(|row| {
        row.id != attempt.id
            && row.status == AttemptStatus::Succeeded
            && row.account == attempt.account
            && row.channel_txn.as_ref() == Some(&taken.txn)
    });
    of_surplus || of_another
}

/// The public name of an outcome, for the timeline.
pub const fn name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Waiting { .. } => "waiting",
        Outcome::Paid(_) => "paid",
        Outcome::Authorized(_) => "authorized",
        Outcome::Declined(_) => "declined",
        Outcome::DeclinedOpen(_) => "declined_open",
        Outcome::Closed => "closed",
        Outcome::AbsentFinal => "absent_final",
        Outcome::AbsentYet => "absent_yet",
        Outcome::NotAccepted(_) => "not_accepted",
        Outcome::NotSent(_) => "not_sent",
        Outcome::InProgress => "in_progress",
        Outcome::Unknown(_) => "unknown",
    }
}

fn taken(outcome: &Outcome) -> Option<&Taken> {
    match outcome {
        Outcome::Paid(taken) | Outcome::Authorized(taken) => Some(taken),
        Outcome::Waiting { .. }
        | Outcome::Declined(_)
        | Outcome::DeclinedOpen(_)
        | Outcome::Closed
        | Outcome::AbsentFinal
        | Outcome::AbsentYet
        | Outcome::NotAccepted(_)
        | Outcome::NotSent(_)
        | Outcome::InProgress
        | Outcome::Unknown(_) => None,
    }
}

fn failure(outcome: &Outcome) -> Option<&Failure> {
    match outcome {
        Outcome::Declined(failure) | Outcome::DeclinedOpen(failure) | Outcome::NotAccepted(failure) => Some(failure),
        Outcome::Waiting { .. }
        | Outcome::Paid(_)
        | Outcome::Authorized(_)
        | Outcome::Closed
        | Outcome::AbsentFinal
        | Outcome::AbsentYet
        | Outcome::NotSent(_)
        | Outcome::InProgress
        | Outcome::Unknown(_) => None,
    }
}

/// Money of another amount or currency than the attempt's is never taken as the payment (I6); both values are kept.
fn disagreement(attempt: &Attempt, outcome: &Outcome) -> Option<(&'static str, String)> {
    let told = taken(outcome)?.amount?;
    if told.currency != attempt.amount.currency {
        return Some(("currency_mismatch", format!("attempt {} is over {}, the channel says {told}", attempt.id, attempt.amount)));
    }
    (told.minor != attempt.amount.minor)
        .then(|| ("amount_mismatch", format!("attempt {} is over {}, the channel says {told}", attempt.id, attempt.amount)))
}

/// An observation that moves nothing can still bring the buyer's action or the transaction's id.
fn stay(draft: &mut Draft, index: usize, seen: &Observation) {
    let attempt = &mut draft.after.attempts[index];
    if attempt.is_live()
        && let Some(action) = &seen.action
    {
        attempt.action = Some(action.clone());
    }
    if attempt.channel_txn.is_none()
        && let Outcome::Waiting { txn: Some(txn), .. } = &seen.outcome
    {
        attempt.channel_txn = Some(txn.clone());
    }
    if let Outcome::Paid(taken) = &seen.outcome
        && attempt.channel_txn.as_ref().is_some_and(|txn| txn.starts_with(OPERATOR_TXN))
    {
        attempt.channel_txn = Some(taken.txn.clone());
    }
}

fn become_status(draft: &mut Draft, index: usize, status: AttemptStatus, seen: &Observation) {
    let attempt = &mut draft.after.attempts[index];
    let was = attempt.status;
    attempt.status = status;
    if let Some(taken) = taken(&seen.outcome) {
        attempt.channel_txn = Some(taken.txn.clone());
        attempt.failure = None;
    }
    if let Outcome::Waiting { txn: Some(txn), .. } = &seen.outcome {
        attempt.channel_txn = Some(txn.clone());
    }
    if let Some(failure) = failure(&seen.outcome) {
        attempt.failure = Some(failure.clone());
    }
    if let Some(action) = &seen.action {
        attempt.action = Some(action.clone());
    }
    if !attempt.status.is_live() {
        attempt.due_at = None;
        // What the buyer could do is over, and so is the reason to keep it.
        attempt.action = None;
    }
    let detail = json!({
        "attempt": attempt.id, "from": was, "to": status, "outcome": name(&seen.outcome),
        "channel_txn": attempt.channel_txn, "failure": attempt.failure,
    });
    draft.note("attempt", Some(seen.source), detail);
    let after = &draft.after;
    if status == AttemptStatus::Succeeded && after.review.as_ref().is_some_and(|review| ends_with_money(review, &seen.attempt, after)) {
        draft.after.review = None;
    }
}

/// Reviews that end by themselves once the right money is there: those about this attempt, and refunds that were told before the money was.
fn ends_with_money(review: &Review, paid: &AttemptId, after: &Payment) -> bool {
    let code = review.code.as_str();
    let about_it = matches!(code, "amount_mismatch" | "currency_mismatch" | "unresolved") && review.detail.contains(paid.as_str());
    (about_it || code == "refund_overlap") && !after.is_over_refunded()
}

/// Books money beside the payment, once per account and transaction, and by policy its refund with it.
fn surplus(draft: &mut Draft, attempt: &Attempt, seen: &Observation, policy: SurplusPolicy) {
    let Some(taken) = taken(&seen.outcome) else { return };
    let now = draft.now();
    let seed = sha256(format!("{}/{}/{}", draft.after.id, attempt.account, taken.txn).as_bytes());
    let row = Surplus {
        id: SurplusId::derived(&seed),
        attempt_id: attempt.id.clone(),
        account: attempt.account.clone(),
        channel_txn: taken.txn.clone(),
        amount: taken.amount.unwrap_or(attempt.amount),
        at: now,
    };
    let detail =
        json!({ "surplus": row.id, "attempt": attempt.id, "channel_txn": row.channel_txn, "amount": row.amount.minor, "policy": policy });
    draft.note("surplus", Some(seen.source), detail.clone());
    match policy {
        SurplusPolicy::Refund => draft.after.refunds.push(surplus_refund(attempt, &row, draft.after.refunds.len(), &seed, now)),
        SurplusPolicy::Hold => {}
    }
    draft.after.surpluses.push(row);
    // A released attempt that took money is at its end: nothing of it is left to look for.
    if let Some(paid) = draft.after.attempts.iter_mut().find(|row| row.id == attempt.id && row.status.is_live()) {
        paid.status = AttemptStatus::Closed;
        paid.channel_txn = Some(taken.txn.clone());
        paid.due_at = None;
        paid.action = None;
    }
    draft.tell(EventKind::Surplus, None, json!({ "surplus": detail }));
}

/// The refund of a surplus. Its reference follows from the surplus, so that booking it twice could not refund it twice.
fn surplus_refund(attempt: &Attempt, row: &Surplus, made: usize, seed: &[u8; 32], now: Timestamp) -> Refund {
    let reference = hex::encode(&sha256(seed)[..16]);
    Refund {
        id: RefundId::derived(seed),
        n: u32::try_from(made + 1).unwrap_or(u32::MAX),
        refund_id: None,
        origin: Origin::Ours,
        of: RefundOf::Surplus(row.id.clone()),
        attempt_id: attempt.id.clone(),
        channel: attempt.channel.clone(),
        account: attempt.account.clone(),
        channel_ref: ChannelRef::parse(&reference).unwrap_or_else(|| attempt.channel_ref.clone()),
        amount: Money::new(row.amount.minor, row.amount.currency),
        reason: Some("surplus".to_owned()),
        status: RefundStatus::Pending,
        accepted: false,
        failure: None,
        channel_refund_id: None,
        content: None,
        send: None,
        made_by: String::new(),
        created_at: now,
        updated_at: now,
        looks: 0,
        due_at: Some(now),
    }
}
