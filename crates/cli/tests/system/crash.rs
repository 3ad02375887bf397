//! kill -9 at each failpoint, on both stores, then restart and retry: one charge, one refund, one event, the final state right.

use std::time::Duration;

use serde_json::json;

use crate::process::{Installation, LEASE_S, Store, events, get, order, post, retry_until_final, wait_for_status};

/// A lease, one look-up, and a slow machine.
const RECOVERS_WITHIN: Duration = Duration::from_secs(LEASE_S + 25);

fn charge_dies_at(store: Store, point: &str) {
    let shop = Installation::new(store);
    let mut server = shop.serve(&[("PAYONCE_FAILPOINTS", &format!("{point}=abort"))]);
    let lost = post(&server, "K1", "/v1/payments", &order("O1", 1990));
    assert!(server.ends_within(Duration::from_secs(20)), "{point} was not passed; the answer was {lost:?}\n{}", server.log());
    let server = shop.serve(&[]);
    let answer = retry_until_final(&server, "K1", "/v1/payments", &order("O1", 1990), RECOVERS_WITHIN);
    let payment = answer.json();
    assert_eq!((answer.status, &payment["status"]), (201, &json!("paid")), "{payment}");
    assert_eq!(shop.sandbox.executed("charge").0, 1, "{point}: one charge\n{}", server.log());
    // Whatever comes later (the notification, the reconciler) adds nothing, and the key goes on to replay.
    let again = retry_until_final(&server, "K1", "/v1/payments", &order("O1", 1990), RECOVERS_WITHIN);
    assert_eq!(again.body, answer.body, "{point}: byte for byte");
    assert_eq!(again.header("idempotency-replayed"), Some("true"), "{point}");
    let seen = wait_for_status(&server, "O1", "paid", RECOVERS_WITHIN);
    assert_eq!(seen["id"], payment["id"]);
    assert_eq!(seen["attempts"].as_array().map(Vec::len), Some(1), "{point}: {seen}");
    wait_for_events(&server, "payment.paid", 1);
    assert_eq!(shop.sandbox.executed("charge").0, 1, "{point}: still one charge");
}

fn wait_for_events(server: &crate::process::Process, kind: &str, count: usize) {
    let came = payonce_testkit::ports::wait_until(RECOVERS_WITHIN, || events(server, kind) >= count);
    assert!(came, "{kind}: {}\n{}", events(server, kind), server.log());
    assert_eq!(events(server, kind), count, "{kind}");
}

fn refund_dies_at(store: Store, point: &str) {
    let shop = Installation::new(store);
    let server = shop.serve(&[]);
    let paid = retry_until_final(&server, "K1", "/v1/payments", &order("O1", 10_000), RECOVERS_WITHIN).json();
    drop(server);
    let path = format!("/v1/payments/{}/refunds", paid["id"].as_str().expect("an id"));
    let refund = json!({ "refund_id": "r1", "amount": 3000 });
    let mut server = shop.serve(&[("PAYONCE_FAILPOINTS", &format!("{point}=abort"))]);
    let lost = post(&server, "R1", &path, &refund);
    assert!(server.ends_within(Duration::from_secs(20)), "{point} was not passed; the answer was {lost:?}\n{}", server.log());
    let server = shop.serve(&[]);
    let answer = retry_until_final(&server, "R1", &path, &refund, RECOVERS_WITHIN);
    assert_eq!(answer.json()["status"], "succeeded", "{point}: {}", answer.json());
    assert_eq!(shop.sandbox.executed("refund").0, 1, "{point}: one refund\n{}", server.log());
    let payment = get(&server, &format!("/v1/payments/{}", paid["id"].as_str().expect("an id")));
    assert_eq!((&payment["status"], &payment["amount_refunded"]), (&json!("paid"), &json!(3000)), "{payment}");
    wait_for_events(&server, "refund.succeeded", 1);
    assert_eq!(events(&server, "payment.paid"), 1);
}

/// A QR payment that the buyer pays: the notification's own path dies.
fn notification_dies_at(store: Store, point: &str) {
    let shop = Installation::new(store);
    let mut server = shop.serve(&[("PAYONCE_FAILPOINTS", &format!("{point}=abort"))]);
    let body = json!({ "order_id": "O1", "amount": 500, "currency": "CNY", "channel": "alipay", "method": "qr" });
    let created = post(&server, "K1", "/v1/payments", &body).expect("an answer").json();
    let channel_ref = created["attempt"]["channel_ref"].as_str().expect("a reference").to_owned();
    let pay = json!({ "channel": "alipay", "channel_ref": channel_ref, "action": "pay" });
    shop.sandbox.control("POST", "/_sandbox/buyer", &pay);
    assert!(server.ends_within(Duration::from_secs(20)), "{point} was not passed\n{}", server.log());
    let server = shop.serve(&[]);
    // The notification that was not acknowledged comes again, as the channel would send it.
    let _ = crate::http::send(
        shop.sandbox.url().trim_start_matches("http://"),
        "POST",
        "/_sandbox/notifications",
        &[("content-type", "application/json")],
        json!({ "channel": "alipay", "channel_ref": channel_ref, "mode": "repeat" }).to_string().as_bytes(),
    );
    wait_for_status(&server, "O1", "paid", RECOVERS_WITHIN);
    wait_for_events(&server, "payment.paid", 1);
    assert_eq!(shop.sandbox.executed("charge").0, 1);
}

/// The merchant's callback was sent and the process died before that was stored: it is sent again, under the same event id.
fn callback_dies_at(store: Store, point: &str) {
    let shop = Installation::new(store);
    let receiver = crate::two_nodes::Receiver::start();
    let allow = receiver.allow();
    let mut server = shop.serve(&[("PAYONCE_FAILPOINTS", &format!("{point}=abort")), ("PAYONCE_MERCHANT_ALLOW_HOSTS", &allow)]);
    let mut body = order("O1", 700);
    body["notify_url"] = json!(receiver.url());
    let _ = post(&server, "K1", "/v1/payments", &body);
    assert!(server.ends_within(Duration::from_secs(20)), "{point} was not passed\n{}", server.log());
    let server = shop.serve(&[("PAYONCE_MERCHANT_ALLOW_HOSTS", &allow)]);
    wait_for_status(&server, "O1", "paid", RECOVERS_WITHIN);
    wait_for_events(&server, "payment.paid", 1);
    let ids = receiver.ids();
    assert!(!ids.is_empty(), "the merchant was told");
    assert!(ids.iter().all(|id| id == &ids[0]), "under one id: {ids:?}");
}

macro_rules! dies {
    ($($name:ident: $body:ident($point:literal);)*) => {
        mod sqlite {
            use super::*;
            $(#[test] fn $name() { $body(Store::sqlite(), $point); })*
        }
        mod postgres {
            use super::*;
            $(#[test] fn $name() { $body(Store::postgres(), $point); })*
        }
    };
}

dies! {
    b003_charge_intent_stored: charge_dies_at("charge.intent_stored");
    b019_charge_request_sent: charge_dies_at("charge.request_sent");
    b031_charge_answer_read: charge_dies_at("charge.answer_read");
    b031_charge_result_stored: charge_dies_at("charge.result_stored");
    b003_guard_claimed: charge_dies_at("guard.claimed");
    b031_guard_finished: charge_dies_at("guard.finished");
    b033_refund_intent_stored: refund_dies_at("refund.intent_stored");
    b033_refund_request_sent: refund_dies_at("refund.request_sent");
    b033_refund_answer_read: refund_dies_at("refund.answer_read");
    b033_refund_result_stored: refund_dies_at("refund.result_stored");
    b005_inbox_stored: notification_dies_at("inbox.stored");
    b048_settle_applied: notification_dies_at("settle.applied");
    publish_sent: callback_dies_at("publish.sent");
}
