//! Refunds: reserving, observing, and booking what others refunded (I7). Pure.

use serde_json::json;

use super::draft::Draft;
use super::{Payment, Review};
use crate::attempt::Attempt;
use crate::channel_ref::ChannelRef;
use crate::event::EventKind;
use crate::failure::Failure;
use crate::id::{RefundId, SurplusId};
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
        return if known.amount == amount {
            Ok(RefundStand::Exists(known.id.clone()))
        } else {
            Err(RefundRefusal::Conflict(known.id.clone()))
        };
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
    let detail =
        json!({ "refund": refund.id, "refund_id": refund.refund_id, "amount": refund.amount.minor, "channel_ref": refund.channel_ref });
    draft.note("refund_created", None, detail);
    draft.after.refunds.push(refund);
}

/// Applies what was seen of a refund that is known. `first_send`: the outcome answers the first request of its reference.
pub fn observe_refund(draft: &mut Draft, id: &RefundId, outcome: &RefundOutcome, source: Source, first_send: bool) {
    let Some(index) = draft.after.refunds.iter().position(|refund| &refund.id == id) else { return };
    let now = draft.now();
    let refund = &mut draft.after.refunds[index];
    let was = refund.status;
    let contradicted = refund.failure.as_ref().is_some_and(|failure| failure.code == FAILED_AFTER_SUCCESS);
    if matches!(outcome, RefundOutcome::Processing) && was.is_open() {
        refund.accepted = true;
    }
    let (status, late) = match transition(was, outcome, first_send) {
        Move::Stay => return,
        // Succeeded, failed, succeeded: the payment is under review, and no further word of the channel turns it over again.
        Move::Become(RefundStatus::Failed) if was == RefundStatus::Succeeded && contradicted => return,
        Move::Note => {
            let detail = json!({ "refund": id, "status": was, "outcome": name(outcome) });
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
            if !contradicted {
                refund.failure = None;
            }
            if channel_refund_id.is_some() {
                refund.channel_refund_id.clone_from(channel_refund_id);
            }
        }
        RefundOutcome::Failed(failure) | RefundOutcome::NotAccepted(failure) => {
            let code = if was == RefundStatus::Succeeded { FAILED_AFTER_SUCCESS.to_owned() } else { failure.code.clone() };
            refund.failure = Some(Failure { code, ..failure.clone() });
        }
        RefundOutcome::Processing
        | RefundOutcome::Absent
        | RefundOutcome::NotSent(_)
        | RefundOutcome::InProgress
        | RefundOutcome::Unknown(_) => {}
    }
    if !status.is_open() {
        refund.due_at = None;
    }
    let detail = json!({ "refund": id, "from": was, "to": status, "outcome": name(outcome), "failure": refund.failure });
    draft.note("refund", Some(source), detail);
    match status {
        // The merchant was told that it went through, and that it failed after all: a third word would only confuse. A person looks.
        RefundStatus::Succeeded if contradicted => {
            let detail = format!("refund {id} went through, failed, and went through again by the channel's word");
            review(draft, source, "refund_contradicted", detail);
        }
        RefundStatus::Succeeded => draft.tell(EventKind::RefundSucceeded, Some(id), serde_json::Value::Null),
        RefundStatus::Failed => draft.tell(EventKind::RefundFailed, Some(id), serde_json::Value::Null),
        RefundStatus::Pending | RefundStatus::Unknown => {}
    }
    if late {
        check_overlap(draft, source);
    }
}

/// The failure of a refund that had gone through before.
pub const FAILED_AFTER_SUCCESS: &str = "failed_after_success";

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
    let known = draft.after.refunds.iter().filter(of_attempt).find(named).map(|refund| (refund.id.clone(), refund.amount));
    if let Some((code, detail)) = disagreement(attempt, seen, known.as_ref()) {
        review(draft, source, code, detail);
        return;
    }
    if let Some((id, _)) = known {
        let outcome = match seen.status {
            RefundFact::Succeeded => RefundOutcome::Succeeded { channel_refund_id: seen.channel_refund_id.map(str::to_owned) },
            RefundFact::Processing => RefundOutcome::Processing,
            RefundFact::Failed { channel_code } => RefundOutcome::Failed(
                Failure::new("refund_failed", "the channel says that the refund failed").with_channel_code(channel_code.clone()),
            ),
        };
        observe_refund(draft, &id, &outcome, source, false);
        if matches!(seen.status, RefundFact::Succeeded) && seen.amount.is_none() && seen.total.is_some() {
            // The total may hold more than we know of: what an earlier total could not tell from our own reservations. Where each refund
            // comes with its own amount, each is booked by its own message instead.
            book_observed(draft, attempt, &RefundSeen { refund_ref: None, channel_refund_id: None, ..seen.clone() }, source);
        }
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

/// Figures that do not fit ours are never booked (I6): another currency than the order's, another amount than that of our refund.
fn disagreement(attempt: &Attempt, seen: &RefundSeen<'_>, known: Option<&(RefundId, Money)>) -> Option<(&'static str, String)> {
    let currency = attempt.amount.currency;
    if let Some(told) = seen.amount.into_iter().chain(seen.total).find(|told| told.currency != currency) {
        return Some(("currency_mismatch", format!("attempt {} is in {currency}, the channel says that {told} went back", attempt.id)));
    }
    let ((id, ours), told) = known.zip(seen.amount)?;
    let differs = matches!(seen.status, RefundFact::Succeeded) && ours.minor != told.minor;
    differs.then(|| ("amount_mismatch", format!("refund {id} is over {ours}, the channel says that {told} went back")))
}

/// Books a refund that we did not send. Where only the running total is told, its own amount is what the total adds to what is booked or
/// reserved: a reservation of ours may be in the total already, and what is missing in the end shows with the next total.
fn book_observed(draft: &mut Draft, attempt: &Attempt, seen: &RefundSeen<'_>, source: Source) {
    let refs = seen.refund_ref.or(seen.channel_refund_id).unwrap_or("unnamed");
    // Where the message names no refund of its own, the running total is what tells one from the next.
    let total = seen.total.map(|total| total.minor);
    let seed = sha256(format!("{}/{}/{refs}/{total:?}", draft.after.id, attempt.id).as_bytes());
    let id = RefundId::derived(&seed);
    if draft.after.refund(&id).is_some() {
        return;
    }
    let may_be_in_it = |refund: &&Refund| match refund.status {
        RefundStatus::Succeeded => true,
        // Only what was sent can be in the channel's total.
        RefundStatus::Pending | RefundStatus::Unknown => refund.send.is_some(),
        RefundStatus::Failed => false,
    };
    let booked = draft
        .after
        .refunds
        .iter()
        .filter(|refund| refund.attempt_id == attempt.id)
        .filter(may_be_in_it)
        .fold(0i64, |sum, refund| sum.saturating_add(refund.amount.minor));
    let amount = match (seen.amount, seen.total) {
        (Some(own), _) => own,
        (None, Some(total)) => Money::new(total.minor.saturating_sub(booked), total.currency),
        (None, None) => Money::zero(attempt.amount.currency),
    };
    if amount.minor <= 0 {
        // A late notice whose total is covered by what was booked since: nothing is added.
        if seen.refund_ref.is_none() && seen.channel_refund_id.is_none() {
            return;
        }
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
    if let RefundOf::Surplus(surplus) = &of {
        give_up_unsent(draft, surplus, source);
    }
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
        accepted: false,
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

/// Somebody else has refunded the surplus: a refund of ours of which no byte was sent is not needed any more.
fn give_up_unsent(draft: &mut Draft, surplus: &SurplusId, source: Source) {
    let unsent = draft.after.open_refunds().filter(|refund| refund.send.is_none() && refund.of == RefundOf::Surplus(surplus.clone()));
    for id in unsent.map(|refund| refund.id.clone()).collect::<Vec<_>>() {
        let failure = Failure::new("refunded_elsewhere", "the surplus was refunded at the channel");
        observe_refund(draft, &id, &RefundOutcome::Failed(failure), source, true);
    }
}

/// More went back, or is reserved to, than was taken: a person has to look; nothing is refused, so that settling does not jam (I7).
fn check_overlap(draft: &mut Draft, source: Source) {
    if !draft.after.is_over_refunded() {
        return;
    }
    let detail = format!("refunds of {} and reservations exceed what was captured, {}", draft.after.refunded(), draft.after.captured());
    review(draft, source, "refund_overlap", detail);
}

/// Opens a review, once for the same reason.
fn review(draft: &mut Draft, source: Source, code: &str, detail: String) {
    if draft.after.review.as_ref().is_some_and(|review| review.detail == detail) {
        return;
    }
    draft.note("review", Some(source), json!({ "code": code, "detail": detail }));
    draft.after.review = Some(Review { code: code.to_owned(), detail });
}

/// The public name of an outcome, for the timeline.
pub const fn name(outcome: &RefundOutcome) -> &'static str {
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
