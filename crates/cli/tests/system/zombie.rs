//! A holder that is stopped past its lease while its channel call is on the way, taken over by another process, and then continued.

use std::time::Duration;

use serde_json::json;

use crate::process::{Installation, LEASE_S, Store, events, order, post, retry_until_final, wait_for_status};

fn zombie(store: Store) {
    let shop = Installation::new(store);
    let old = shop.serve(&[]);
    // The channel's answer takes long enough to stop the holder before it is read.
    shop.sandbox.fault("charge", "delay", 1, 1500);
    let (addr_known, body) = (old.addr.clone(), order("O1", 1990));
    let first = std::thread::spawn({
        let body = body.clone();
        move || {
            let bearer = format!("Bearer {}", crate::process::KEY);
            let headers = [("authorization", bearer.as_str()), ("idempotency-key", "K1"), ("content-type", "application/json")];
            crate::http::send(&addr_known, "POST", "/v1/payments", &headers, body.to_string().as_bytes())
        }
    });
    let called = payonce_testkit::ports::wait_until(Duration::from_secs(10), || {
        shop.sandbox.control("GET", "/_sandbox/requests?channel=alipay", &serde_json::Value::Null).to_string().contains("alipay.trade.pay")
    });
    assert!(called, "the charge reached the channel\n{}", old.log());
    old.signal("STOP");
    let new = shop.serve(&[]);
    let answer = retry_until_final(&new, "K1", "/v1/payments", &body, Duration::from_secs(LEASE_S + 25));
    assert_eq!(answer.json()["status"], "paid");
    old.signal("CONT");
    let late = first.join().expect("the first caller's thread");
    // Whatever the zombie tells its caller is the truth: the payment that was made, or that somebody else has the key.
    if let Ok(late) = &late {
        assert!(matches!(late.status, 200 | 201 | 202 | 409 | 503), "{late:?}");
        if matches!(late.status, 200 | 201) {
            assert_eq!(late.json()["id"], answer.json()["id"]);
        }
    }
    let replay = post(&new, "K1", "/v1/payments", &body).expect("an answer");
    assert_eq!((replay.status, &replay.body), (answer.status, &answer.body), "the late finish changed nothing");
    wait_for_status(&new, "O1", "paid", Duration::from_secs(10));
    assert_eq!(shop.sandbox.executed("charge").0, 1, "one charge\nold:\n{}\nnew:\n{}", old.log(), new.log());
    assert_eq!(events(&new, "payment.paid"), 1);
    assert_eq!(json!(answer.status), json!(201));
}

#[test]
fn b068_zombie_on_sqlite() {
    zombie(Store::sqlite());
}

#[test]
fn b068_zombie_on_postgres() {
    zombie(Store::postgres());
}
