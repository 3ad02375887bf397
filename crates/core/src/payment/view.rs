//! The API's form of a payment, an attempt and a refund, without the buyer's action: that is sealed, and the edge adds it where it may be seen.

use serde_json::{Map, Value, json};

use super::{Payment, Surplus};
use crate::attempt::Attempt;
use crate::id::RefundId;
use crate::refund::{Refund, RefundOf, RefundStatus};

/// A payment as the API shows it.
pub fn payment(payment: &Payment) -> Value {
    let attempts: Vec<Value> = payment.attempts.iter().map(attempt).collect();
    json!({
        "id": payment.id,
        "object": "payment",
        "order_id": payment.order_id,
        "amount": payment.amount.minor,
        "currency": payment.amount.currency,
        "status": payment.status,
        "amount_captured": payment.captured().minor,
        "amount_refunded": payment.refunded().minor,
        "review": payment.review,
        "description": payment.description,
        "attempt": attempts.last(),
        "attempts": attempts,
        "surpluses": payment.surpluses.iter().map(|surplus| (surplus, surplus_refund(payment, surplus))).map(|(surplus, back)| json!({
            "id": surplus.id,
            "attempt": surplus.attempt_id,
            "account": surplus.account,
            "channel_txn": surplus.channel_txn,
            "status": surplus_status(back),
            "refund": back.map(|refund| &refund.id),
            "amount": surplus.amount.minor,
            "currency": surplus.amount.currency,
            "created_at": surplus.at.to_string(),
        })).collect::<Vec<_>>(),
        "metadata": payment.metadata,
        "created_at": payment.created_at.to_string(),
        "updated_at": payment.updated_at.to_string(),
    })
}

/// The refund that gives a surplus back: the one that went through, else the newest.
fn surplus_refund<'a>(payment: &'a Payment, surplus: &Surplus) -> Option<&'a Refund> {
    let mut of_it = payment.refunds.iter().filter(|refund| refund.of == RefundOf::Surplus(surplus.id.clone()));
    let done = of_it.clone().find(|refund| refund.status == RefundStatus::Succeeded);
    done.or_else(|| of_it.next_back())
}

const fn surplus_status(back: Option<&Refund>) -> &'static str {
    match back {
        None => "held",
        Some(refund) => match refund.status {
            RefundStatus::Pending | RefundStatus::Unknown => "refunding",
            RefundStatus::Succeeded => "refunded",
            RefundStatus::Failed => "refund_failed",
        },
    }
}

/// An attempt as the API shows it.
pub fn attempt(attempt: &Attempt) -> Value {
    json!({
        "id": attempt.id,
        "object": "attempt",
        "channel": attempt.channel,
        "account": attempt.account,
        "method": attempt.method,
        "channel_ref": attempt.channel_ref,
        "channel_txn": attempt.channel_txn,
        "amount": attempt.amount.minor,
        "currency": attempt.amount.currency,
        "status": attempt.status,
        "released": attempt.released,
        "failure": attempt.failure,
        "created_at": attempt.created_at.to_string(),
        "expires_at": attempt.expires_at.to_string(),
    })
}

/// A refund as the API shows it.
pub fn refund(payment: &Payment, refund: &Refund) -> Value {
    json!({
        "id": refund.id,
        "object": "refund",
        "refund_id": refund.refund_id,
        "payment": payment.id,
        "order_id": payment.order_id,
        "attempt": refund.attempt_id,
        "origin": refund.origin,
        "of": refund.of,
        "amount": refund.amount.minor,
        "currency": refund.amount.currency,
        "reason": refund.reason,
        "status": refund.status,
        "channel": refund.channel,
        "account": refund.account,
        "channel_ref": refund.channel_ref,
        "failure": refund.failure,
        "created_at": refund.created_at.to_string(),
        "updated_at": refund.updated_at.to_string(),
    })
}

/// What an event carries: the payment, the refund where it is about one, and further particulars.
pub(super) fn event_data(whole: &Payment, about: Option<&RefundId>, more: &Value) -> Value {
    let mut data = Map::new();
    data.insert("payment".into(), payment(whole));
    if let Some(row) = about.and_then(|id| whole.refund(id)) {
        data.insert("refund".into(), refund(whole, row));
    }
    if let Value::Object(more) = more {
        data.extend(more.clone());
    }
    Value::Object(data)
}
