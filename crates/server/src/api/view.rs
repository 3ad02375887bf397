//! What the owner of a payment sees: core's form, and the buyer's action opened.

use payonce::Answer;
use payonce_core::attempt::{Attempt, AttemptStatus};
use payonce_core::payment::{Payment, view};
use payonce_flows::{FlowFault, Ledger};
use serde_json::{Value, json};

use super::guarded;

/// A payment with the actions of its attempts.
pub(crate) fn payment(ledger: &Ledger, payment: &Payment) -> Result<Value, FlowFault> {
    let mut shown = view::payment(payment);
    let actions: Vec<Value> = payment.attempts.iter().map(|attempt| action(ledger, attempt)).collect::<Result<_, _>>()?;
    if let (Some(newest), Some(slot)) = (actions.last(), shown.get_mut("attempt").and_then(Value::as_object_mut)) {
        slot.insert("action".to_owned(), newest.clone());
    }
    let slots = shown.get_mut("attempts").and_then(Value::as_array_mut).into_iter().flatten();
    for (slot, action) in slots.zip(actions) {
        if let Some(slot) = slot.as_object_mut() {
            slot.insert("action".to_owned(), action);
        }
    }
    Ok(shown)
}

/// What the buyer has to do; `null` while nobody knows, and nothing once the attempt has ended.
fn action(ledger: &Ledger, attempt: &Attempt) -> Result<Value, FlowFault> {
    match attempt.status {
        AttemptStatus::Prepared | AttemptStatus::Pending | AttemptStatus::Unknown => {
            let opened = ledger.open_action(attempt)?;
            Ok(match (opened, attempt.status) {
                (Some(action), _) => json!(action),
                (None, AttemptStatus::Pending) => json!({ "type": "none" }),
                (None, _) => Value::Null,
            })
        }
        AttemptStatus::Authorized | AttemptStatus::Succeeded | AttemptStatus::Declined | AttemptStatus::Closed => {
            Ok(json!({ "type": "none" }))
        }
    }
}

/// A payment as an answer, with its version as the entity tag.
pub(crate) fn payment_answer(ledger: &Ledger, status: u16, seen: &Payment) -> Result<Answer, FlowFault> {
    let mut answer = guarded::json(status, &payment(ledger, seen)?);
    answer.headers.push(("etag".to_owned(), etag(seen).into_bytes()));
    Ok(answer)
}

/// Goes up with every change.
pub(crate) fn etag(payment: &Payment) -> String {
    format!("\"{}\"", payment.version)
}
