//! Judges every case of a file as a receiver does: verify, then bind to our books; and compares facts and identities.

use std::collections::BTreeMap;

use payonce_channels::contract::Account;
use payonce_core::notification::{self, Facts, Notification, Verified};
use serde_json::Value;

use super::{Case, File, Under};

pub(crate) fn run(file: &File, under: &Under) -> String {
    let account = (under.account)(file);
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    let mut identities: BTreeMap<String, String> = BTreeMap::new();
    for case in &file.notifications {
        for (label, event) in judge(file, account.as_ref(), case) {
            // The same label is the same event, and the same identity is the same label.
            let seen = labels.entry(label.clone()).or_insert_with(|| event.identity.clone());
            assert_eq!(*seen, event.identity, "{}: {label} has two identities", case.id);
            let seen = identities.entry(event.identity.clone()).or_insert_with(|| label.clone());
            assert_eq!(*seen, label, "{}: two events share {}", case.id, event.identity);
        }
    }
    replies(file, account.as_ref());
    for request in &file.requests {
        (under.request)(file, request);
    }
    let (notifications, requests) = (file.notifications.len(), file.requests.len());
    format!("notifications {notifications}/{notifications}, requests {requests}/{requests}")
}

/// Panics where the verdict is not the expected one; gives back the events of an accepted case with their labels.
fn judge(file: &File, account: &dyn Account, case: &Case) -> Vec<(String, Notification)> {
    let verified = Verified::by(account, &case.raw, case.now);
    // A rule that goes beyond the scheme may refuse what is authentic.
    assert!(verified.is_ok() == case.authentic || (case.strict && verified.is_err()), "{}: authentic {:?}", case.id, verified);
    let events = match verified {
        Ok(verified) => verified.events().to_vec(),
        Err(rejection) => {
            refused(case, rejection.reason);
            return Vec::new();
        }
    };
    let ours = account.merchant();
    let single = account.capability().single_currency;
    let bound: Vec<_> =
        events.iter().map(|event| notification::bind(event, &ours, file.booked(event.channel_ref.as_deref()), single)).collect();
    if let Some(Err(reason)) = bound.iter().find(|bound| bound.is_err()) {
        refused(case, *reason);
        return Vec::new();
    }
    assert!(case.accept, "{}: accepted, though {:?}", case.id, case.reason);
    assert_eq!(events.len(), case.identities.len(), "{}: events", case.id);
    for (event, expected) in events.iter().zip(&case.events) {
        facts(&case.id, event, expected);
    }
    case.identities.iter().cloned().zip(events).collect()
}

fn refused(case: &Case, reason: notification::Reason) {
    assert!(!case.accept, "{}: refused: {reason:?}", case.id);
    let expected = case.reason.expect("a refused case has a reason");
    assert!(reason == expected || reason.stage() < expected.stage(), "{}: {reason:?} instead of {expected:?}", case.id);
}

fn facts(id: &str, event: &Notification, expected: &Value) {
    let text = |name: &str| expected.get(name).and_then(Value::as_str);
    let minor = |name: &str| text(name).map(|digits| digits.parse::<i64>().expect("an amount"));
    if let Some(merchant_ref) = text("merchant_ref") {
        assert_eq!(event.channel_ref.as_deref(), Some(merchant_ref), "{id}: order");
    }
    if let Some(status) = text("status") {
        assert_eq!(event.status, status, "{id}: status");
    }
    if let (Some(amount), Some(currency)) = (minor("amount_minor"), text("currency")) {
        let told = event.amount.expect("an amount");
        assert_eq!((told.minor, told.currency.code()), (amount, currency), "{id}: amount");
    }
    match (text("kind"), &event.facts) {
        (Some("payment"), Facts::Paid { txn, .. }) => assert_eq!(Some(txn.as_str()), text("channel_ref"), "{id}: transaction"),
        (Some("refund"), Facts::Refund { refund_ref, amount, total, .. }) => {
            assert_eq!(refund_ref.as_deref(), text("refund_ref"), "{id}: refund");
            if let Some(expected) = minor("refunded_total_minor") {
                assert_eq!(total.map(|total| total.minor), Some(expected), "{id}: total");
            }
            if let Some(expected) = minor("refund_minor") {
                assert_eq!(amount.map(|amount| amount.minor), Some(expected), "{id}: refunded");
            }
        }
        (Some("close"), Facts::Closed) | (Some("payment_pending"), Facts::Waiting) | (Some("payment_failed"), Facts::Failed { .. }) => {}
        (kind, facts) => panic!("{id}: {kind:?} was read as {facts:?}"),
    }
}

/// The acknowledgements are the file's, byte for byte.
fn replies(file: &File, account: &dyn Account) {
    let Some(replies) = file.whole.get("replies") else { return };
    let check = |expected: &Value, told: payonce_channels::contract::Acknowledgement| {
        if let (Some(status), Some(body)) = (expected["status"].as_u64(), expected["body"].as_str()) {
            assert_eq!(u64::from(told.status), status);
            assert_eq!(told.body, body.as_bytes());
            assert_eq!(told.content_type, expected["content_type"].as_str());
        }
    };
    let forged = notification::Rejection::new(notification::Reason::BadSignature, "a test");
    check(&replies["success"], account.acknowledge());
    check(&replies["failure"], account.refuse(&forged));
    check(&replies["failure"], account.try_again());
}
