//! Money back: each refund once, never more than was taken, and the books as the channel's.

use serde_json::{Value, json};

use crate::place::{CODE_PAYS, Place, barcode, qr};

fn path(payment: &Value) -> String {
    format!("/v1/payments/{}/refunds", payment["id"].as_str().expect("an id"))
}

fn refund(number: &str, amount: i64) -> Value {
    json!({ "refund_id": number, "amount": amount, "reason": "returned" })
}

#[tokio::test(flavor = "multi_thread")]
async fn b022_b024_partial_refunds_are_each_made_once_and_the_third_is_refused() {
    let place = Place::start().await;
    let paid = place.paid("O1", 10_000).await;
    let one = place.post(&path(&paid), "RA", &refund("r1", 3000)).await.expect(201);
    let two = place.post(&path(&paid), "RB", &refund("r2", 3000)).await.expect(201);
    assert_eq!((one.json()["status"].as_str(), two.json()["status"].as_str()), (Some("succeeded"), Some("succeeded")));
    assert_ne!(one.json()["channel_ref"], two.json()["channel_ref"]);
    for (key, number, first) in [("RA", "r1", &one), ("RB", "r2", &two)] {
        let again = place.post(&path(&paid), key, &refund(number, 3000)).await.expect(201);
        assert!(again.is_replay() && again.body == first.body);
    }
    assert_eq!(place.executed("refund").await, (2, 6000));
    let over = place.post(&path(&paid), "RC", &refund("r3", 4001)).await.expect(422);
    assert_eq!(
        (over.code().as_str(), over.json()["amount_refundable"].as_i64(), over.json()["money_moved"].as_str()),
        ("refund_exceeds_payment", Some(4000), Some("no"))
    );
    assert_eq!(place.payment(&paid["id"]).await["amount_refunded"], 6000);
    // The refused key is free: the same key makes a smaller one.
    place.post(&path(&paid), "RC", &refund("r3", 4000)).await.expect(201);
    assert_eq!(place.executed("refund").await, (3, 10_000));
    assert_eq!(place.event_types(4).await, ["payment.paid", "refund.succeeded", "refund.succeeded", "refund.succeeded"]);
    let listed = place.get(&path(&paid)).await.expect(200).json();
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(3));
    let id = listed["data"][0]["id"].as_str().expect("an id");
    assert_eq!(place.get(&format!("/v1/refunds/{id}")).await.expect(200).json(), listed["data"][0]);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b037_the_same_refund_number_is_one_refund_under_any_key() {
    let place = Place::start().await;
    let paid = place.paid("O1", 10_000).await;
    place.fault("refund", "delay_response", 1, Some(300)).await;
    let keys: Vec<String> = (0..5).map(|_| place.key()).collect();
    let path = path(&paid);
    let body = refund("r1", 2500);
    let all = futures_util::future::join_all(keys.iter().map(|key| place.post(&path, key, &body))).await;
    let ids: Vec<Value> = all.iter().map(|reply| reply.json()["id"].clone()).collect();
    assert!(all.iter().all(|reply| [200, 201, 202].contains(&reply.status)) && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(all.iter().filter(|reply| reply.status == 201).count(), 1);
    let other = place.post(&path, "other", &refund("r1", 2600)).await.expect(409);
    assert_eq!((other.code().as_str(), &other.json()["refund"]["id"]), ("refund_conflict", &ids[0]));
    assert_eq!(place.executed("refund").await, (1, 2500));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b037_an_acknowledgement_that_was_lost_is_found_out_under_the_same_reference() {
    let place = Place::start().await;
    let paid = place.paid("O1", 10_000).await;
    place.fault("refund", "drop_response", 1, None).await;
    let reply = place.post(&path(&paid), "R1", &refund("r1", 2500)).await;
    assert_eq!((reply.status, reply.json()["status"].as_str()), (201, Some("succeeded")), "the look-up finds it: {}", reply.text());
    assert_eq!(place.executed("refund").await, (1, 2500));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b078_two_refunds_at_once_never_exceed_the_payment() {
    let place = Place::start().await;
    for round in 0..10 {
        let paid = place.paid(&format!("O{round}"), 10_000).await;
        let (key_a, key_b, path) = (place.key(), place.key(), path(&paid));
        let (body_a, body_b) = (refund("r1", 6000), refund("r2", 6000));
        let (a, b) = tokio::join!(place.post(&path, &key_a, &body_a), place.post(&path, &key_b, &body_b));
        let mut statuses = [a.status, b.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 422], "{} {}", a.text(), b.text());
    }
    assert_eq!(place.executed("refund").await, (10, 60_000));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_needs_a_paid_payment_and_a_sound_body() {
    let place = Place::start().await;
    let open = place.post("/v1/payments", "K1", &qr("O1", 500)).await.expect(201).json();
    assert_eq!(place.post(&path(&open), "R1", &refund("r1", 100)).await.expect(409).code(), "payment_not_paid");
    let paid = place.paid("P1", 500).await;
    for bad in [0, -1, i64::MIN] {
        place.post(&path(&paid), "R2", &refund("r1", bad)).await.expect(400);
    }
    place.post(&path(&paid), "R2", &json!({ "amount": 5 })).await.expect(400);
    place.post(&path(&paid), "R2", &json!({ "refund_id": "r1", "amount": 5, "currency": "CNY" })).await.expect(400);
    place.post("/v1/payments/pay_00000000000000000000000000000000/refunds", "R2", &refund("r1", 5)).await.expect(404);
    place.post("/v1/payments/nonsense/refunds", "R2", &refund("r1", 5)).await.expect(404);
    // All that is left, where no amount is named.
    let whole = place.post(&path(&paid), "R3", &json!({ "refund_id": "all" })).await.expect(201).json();
    assert_eq!(whole["amount"], 500);
    assert_eq!(place.executed("refund").await, (1, 500));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b083_a_refund_that_failed_for_good_can_be_made_again_under_another_number() {
    let place = Place::start().await;
    let paid = place.post("/v1/payments", "K1", &barcode("O1", 1000, CODE_PAYS)).await.expect(201).json();
    place.fault("refund", "declined", 1, None).await;
    let failed = place.post(&path(&paid), "R1", &refund("r1", 1000)).await.expect(201).json();
    assert_eq!(failed["status"], "failed", "{failed}");
    assert!(failed["failure"]["code"].is_string());
    assert_eq!(place.executed("refund").await, (0, 0));
    let known = place.post(&path(&paid), "R2", &refund("r1", 1000)).await.expect(200).json();
    assert_eq!(known["status"], "failed");
    let again = place.post(&path(&paid), "R3", &refund("r2", 1000)).await.expect(201).json();
    assert_eq!(again["status"], "succeeded");
    assert_eq!(place.executed("refund").await, (1, 1000));
    assert_eq!(place.event_types(3).await, ["payment.paid", "refund.failed", "refund.succeeded"]);
    place.stop().await;
}
