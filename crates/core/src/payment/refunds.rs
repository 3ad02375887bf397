//! Refunds: reserving, observing, and booking what others refunded (I7). Pure.

use serde_json::json;

use super::draft::Draft;
use super::{Payment, Review};
use crate::attempt::Attempt;
use crate::channel_ref::ChannelRef;
use crate::event::EventKind;
use crate::failure::Failure;
use crate::id::RefundId;
use crate::money::Money;
use crate::notification::RefundFact;
use crate::outcome::{RefundOutcome, Source};
use crate::refund::transition::{Move, transition};
use crate::refund::{Origin, Refund, RefundOf, RefundStatus};
use crate::secret::sha256;

/// Why a refund cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefundRefusal {
    /// Nothing of the payment was taken yet.
    NotPaid,
    /// More than is left.
    Exceeds {
        /// What is left, in minor units.
        left: Money,
    },
    /// The merchant's number names another refund of another amount.
    Conflict(RefundId),
}

/// What a request for a refund meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefundStand {
    /// The merchant's number names this one already, over the same amount.
    Exists(RefundId),
    /// It may be reserved.
    Free,
}

/// Judges a request for a refund before anything is stored.
pub fn judge(payment: &Payment, refund_id: &crate::id::MerchantRef, amount: Money) -> Result<RefundStand, RefundRefusal> {
    if let Some(known) = payment.refund_by_merchant(refund_id) {
        return if known.amount == amount { Ok(RefundStand::Exists(known.id.clone())) } else { Err(RefundRefusal::Conflict(known.id.clone())) };
    }
    if payment.paid_attempt().is_none() {
        return Err(RefundRefusal::NotPaid);
    }
    let left = payment.refundable();
    if amount.currency != payment.currency() || amount.minor > left.minor {
        return Err(RefundRefusal::Exceeds { left });
    }
    Ok(RefundStand::Free)
}

/// Reserves the amount: the refund is part of the payment before a byte of it is sent.
pub fn reserve(draft: &mut Draft, refund: Refund) {
    let detail = json!({ "refund": refund.id, "refund_id": refund.refund_id, "amount": refund.amount.minor, "channel_ref": refund.channel_ref });
    draft.note("refund_created", None, detail);
    draft.after.refunds.push(refund);
}

/// Applies what was seen of a refund that is known. `first_send`: the outcome answers the first request of its reference.
pub fn observe_refund(draft: &mut Draft, id: &RefundId, outcome: &RefundOutcome, source: Source, first_send: bool) {
    let Some(index) = draft.after.refunds.iter().position(|refund| &refund.id == id) else { return };
    let now = draft.now();
    let refund = &mut draft.after.refunds[index];
    let was = refund.status;
    let (status, late) = match transition(was, outcome, first_send) {
        Move::Stay => return,
        Move::Note => {
            let detail = json!({ "refund": id, "status": was, "outcome": refund_outcome_name(outcome) });
            draft.note("ignored", Some(source), detail);
            return;
        }
        Move::Become(status) => (status, false),
        Move::Late => (RefundStatus::Succeeded, true),
    };
    refund.status = status;
    refund.updated_at = now;
    match outcome {
        RefundOutcome::Succeeded { channel_refund_id } => {
            refund.failure = None;
            if channel_refund_id.is_some() {
                refund.channel_refund_id.clone_from(channel_refund_id);
            }
        }
        RefundOutcome::Failed(failure) | RefundOutcome::NotAccepted(failure) => refund.failure = Some(failure.clone()),
        RefundOutcome::Processing
        | RefundOutcome::Absent
        | RefundOutcome::NotSent(_)
        | RefundOutcome::InProgress
        | RefundOutcome::Unknown(_) => {}
    }
    if !status.is_open() {
        refund.due_at = None;
    }
    let detail = json!({ "refund": id, "from": was, "to": status, "outcome": refund_outcome_name(outcome), "failure": refund.failure });
    draft.note("refund", Some(source), detail);
    match status {
        RefundStatus::Succeeded => draft.tell(EventKind::RefundSucceeded, Some(id), serde_json::Value::Null),
        RefundStatus::Failed => draft.tell(EventKind::RefundFailed, Some(id), serde_json::Value::Null),
        RefundStatus::Pending | RefundStatus::Unknown => {}
    }
    if late {
        check_overlap(draft, source);
    }
}

/// What a notification says of a refund on an attempt.
#[derive(Clone, Debug)]
pub struct RefundSeen<'a> {
    /// The reference that the message names.
    pub refund_ref: Option<&'a str>,
    /// The channel's id of the refund.
    pub channel_refund_id: Option<&'a str>,
    /// This refund's amount.
    pub amount: Option<Money>,
    /// The running total of the order's refunds.
    pub total: Option<Money>,
    /// What became of it.
    pub status: &'a RefundFact,
}

/// Applies what a notification says of a refund: one of ours moves; one that is not ours is booked once.
pub fn observe_refund_facts(draft: &mut Draft, attempt: &Attempt, seen: &RefundSeen<'_>, source: Source) {
    let of_attempt = |refund: &&Refund| refund.attempt_id == attempt.id;
    let named = |refund: &&Refund| {
        seen.refund_ref == Some(refund.channel_ref.as_str())
            || (seen.channel_refund_id.is_some() && seen.channel_refund_id == refund.channel_refund_id.as_deref())
    };
    let known = draft.after.refunds.iter().filter(of_attempt).find(named).map(|refund| refund.id.clone());
    if let Some(id) = known {
        let outcome = match seen.status {
            RefundFact::Succeeded => RefundOutcome::Succeeded { channel_refund_id: seen.channel_refund_id.map(str::to_owned) },
            RefundFact::Processing => RefundOutcome::Processing,
            RefundFact::Failed { channel_code } => RefundOutcome::Failed(
                Failure::new("refund_failed", "the channel says that the refund failed").with_channel_code(channel_code.clone()),
            ),
        };
        observe_refund(draft, &id, &outcome, source, false);
        return;
    }
    match seen.status {
        RefundFact::Succeeded => book_observed(draft, attempt, seen, source),
        RefundFact::Processing | RefundFact::Failed { .. } => {
            let detail = json!({ "attempt": attempt.id, "refund_ref": seen.refund_ref, "status": seen.status });
            draft.note("foreign_refund", Some(source), detail);
        }
    }
}

/// Books a refund that we did not send. Where only the running total is told, its own amount is what the total adds to what is booked.
fn book_observed(draft: &mut Draft, attempt: &Attempt, seen: &RefundSeen<'_>, source: Source) {
    let refs = seen.refund_ref.or(seen.channel_refund_id).unwrap_or("unnamed");
    // Where the message names no refund of its own, the running total is what tells one from the next.
    let total = seen.total.map(|total| total.minor);
    let seed = sha256(format!("{}/{}/{refs}/{total:?}", draft.after.id, attempt.id).as_bytes());
    let id = RefundId::derived(&seed);
    if draft.after.refund(&id).is_some() {
        return;
    }
    let booked = draft
        .after
        .refunds
        .iter()
        .filter(|refund| refund.attempt_id == attempt.id && refund.status == RefundStatus::Succeeded)
        .fold(0i64, |sum, refund| sum.saturating_add(refund.amount.minor));
    let amount = match (seen.amount, seen.total) {
        (Some(own), _) => own,
        (None, Some(total)) => Money::new(total.minor.saturating_sub(booked), total.currency),
        (None, None) => Money::zero(attempt.amount.currency),
    };
    if amount.minor <= 0 {
        // A late notice whose total is covered by what was booked since: nothing is added.
        draft.note("foreign_refund", Some(source), json!({ "attempt": attempt.id, "refund_ref": refs, "total": total, "booked": booked }));
        return;
    }
    let of_surplus = draft.after.surpluses.iter().find(|row| row.attempt_id == attempt.id).map(|row| row.id.clone());
    let counts = attempt.status == crate::attempt::AttemptStatus::Succeeded;
    let of = match of_surplus {
        // B082: money that went back from a surplus never counts against the order.
        Some(surplus) if !counts => RefundOf::Surplus(surplus),
        Some(_) | None => RefundOf::Payment,
    };
    let now = draft.now();
    let row = Refund {
        id: id.clone(),
        n: u32::try_from(draft.after.refunds.len() + 1).unwrap_or(u32::MAX),
        refund_id: None,
        origin: Origin::Observed,
        of,
        attempt_id: attempt.id.clone(),
        channel: attempt.channel.clone(),
        account: attempt.account.clone(),
        channel_ref: ChannelRef::parse(&hex::encode(&seed[..16])).unwrap_or_else(|| attempt.channel_ref.clone()),
        amount,
        reason: None,
        status: RefundStatus::Succeeded,
        failure: None,
        channel_refund_id: seen.channel_refund_id.or(seen.refund_ref).map(str::to_owned),
        content: None,
        send: None,
        made_by: String::new(),
        created_at: now,
        updated_at: now,
        looks: 0,
        due_at: None,
    };
    let detail = json!({ "refund": id, "attempt": attempt.id, "refund_ref": refs, "amount": amount.minor, "total": total });
    draft.note("refund_observed", Some(source), detail);
    draft.after.refunds.push(row);
    draft.tell(EventKind::RefundSucceeded, Some(&id), serde_json::Value::Null);
    check_overlap(draft, source);
}

/// More went back, or is reserved to, than was taken: a person has to look; nothing is refused, so that settling does not jam (I7).
fn check_overlap(draft: &mut Draft, source: Source) {
    if !draft.after.is_over_refunded() {
        return;
    }
    let detail = format!(
        "refunds of {} and reservations exceed what was captured, {}",
        draft.after.refunded(),
        draft.after.captured()
    );
    draft.note("review", Some(source), json!({ "code": "refund_overlap", "detail": detail }));
    draft.after.review = Some(Review { code: "refund_overlap".to_owned(), detail });
}

const fn refund_outcome_name(outcome: &RefundOutcome) -> &'static str {
    match outcome {
        RefundOutcome::Processing => "processing",
        RefundOutcome::Succeeded { .. } => "succeeded",
        RefundOutcome::Failed(_) => "failed",
        RefundOutcome::Absent => "absent",
        RefundOutcome::NotAccepted(_) => "not_accepted",
        RefundOutcome::NotSent(_) => "not_sent",
        RefundOutcome::InProgress => "in_progress",
        RefundOutcome::Unknown(_) => "unknown",
    }
}
