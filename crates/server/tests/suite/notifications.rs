//! What channels tell: believed only if it is theirs, acted on once, acknowledged byte for byte.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::place::{CODE_ASKS, CODE_PAYS, Place, barcode, channel_ref, qr};

/// An order of which the channel knows, open.
async fn open(place: &Place, order: &str, amount: i64) -> Value {
    place.post("/v1/payments", &place.key(), &qr(order, amount)).await.expect(201).json()
}

async fn inbox(place: &Place, status: &str) -> Vec<Value> {
    place.get(&format!("/v1/inbox?status={status}&limit=100")).await.expect(200).json()["data"].as_array().expect("a list").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn b043_a_notification_that_comes_before_the_answer_counts() {
    let place = Place::start().await;
    place.control("notifications", json!({ "channel": "alipay", "mode": "early" })).await;
    let made = place.post("/v1/payments", "K1", &barcode("O1", 700, CODE_ASKS)).await;
    assert!([200, 201, 202].contains(&made.status), "{}", made.text());
    place.until_status(&made.json()["id"], "paid").await;
    assert_eq!((place.executed("charge").await, place.event_types(1).await), ((1, 700), vec!["payment.paid".to_owned()]));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b046_b047_fifty_copies_have_one_effect_and_each_is_acknowledged() {
    let place = Place::start().await;
    let made = open(&place, "O1", 700).await;
    place.buyer(&made, "pay").await;
    place.until_status(&made["id"], "paid").await;
    let sent = place
        .control("notifications", json!({ "channel": "alipay", "channel_ref": channel_ref(&made), "mode": "repeat", "times": 50 }))
        .await;
    let copies = sent["sent"].as_array().expect("deliveries");
    assert_eq!(copies.len(), 50);
    for copy in copies {
        assert_eq!(
            (copy["status"].as_u64(), copy["body"].as_str(), copy["acknowledged"].as_bool()),
            (Some(200), Some("success"), Some(true))
        );
    }
    assert_eq!(place.event_types(1).await, ["payment.paid"]);
    assert_eq!(place.executed("charge").await, (1, 700));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b046_copies_that_race_with_the_first_have_one_effect() {
    let place = Place::start().await;
    let made = open(&place, "O1", 700).await;
    place.notify(&made, "hold").await;
    place.buyer(&made, "pay").await;
    let copies = (0..5).map(|_| {
        place.control("notifications", json!({ "channel": "alipay", "channel_ref": channel_ref(&made), "mode": "repeat", "times": 10 }))
    });
    futures_util::future::join_all(copies).await;
    place.until_status(&made["id"], "paid").await;
    place.notify(&made, "release").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(place.event_types(1).await, ["payment.paid"]);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b050_all_notifications_lost_and_one_that_comes_late() {
    let place = Place::with(&[("PAYONCE_RECONCILE_FIRST_LOOK_UP", "300ms"), ("PAYONCE_RECONCILE_INTERVAL", "100ms")]).await;
    let made = open(&place, "O1", 700).await;
    place.notify(&made, "drop").await;
    place.buyer(&made, "pay").await;
    place.until_status(&made["id"], "paid").await;
    place.notify(&made, "repeat").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(place.event_types(1).await, ["payment.paid"]);
    assert_eq!(place.executed("charge").await, (1, 700));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b051_refund_notices_that_carry_the_payments_numbers_are_refunds() {
    let place = Place::start().await;
    let made = open(&place, "O1", 10_000).await;
    place.buyer(&made, "pay").await;
    place.until_status(&made["id"], "paid").await;
    let refund = |number: &str, amount: i64| json!({ "refund_id": number, "amount": amount });
    let path = format!("/v1/payments/{}/refunds", made["id"].as_str().expect("an id"));
    place.post(&path, "R1", &refund("r1", 3000)).await.expect(201);
    place.post(&path, "R2", &refund("r2", 2000)).await.expect(201);
    // At the console, too: unknown to us until it is told.
    place
        .control("buyer", json!({ "channel": "alipay", "channel_ref": channel_ref(&made), "action": "refund_at_console", "amount": 1000 }))
        .await;
    let after = place.until(&made["id"], "the console's refund", |payment| payment["amount_refunded"] == 6000).await;
    assert_eq!(after["status"], "paid");
    let types = place.event_types(4).await;
    assert_eq!(
        (types.iter().filter(|kind| *kind == "payment.paid").count(), types.iter().filter(|kind| *kind == "refund.succeeded").count()),
        (1, 3),
        "{types:?}"
    );
    assert_eq!(place.post(&path, "R3", &refund("r3", 4001)).await.expect(422).json()["amount_refundable"], 4000);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b052_a_notice_of_waiting_does_not_use_up_the_one_of_payment() {
    let place = Place::start().await;
    let made = open(&place, "O1", 700).await;
    // The buyer scans: the trade is there, and waits.
    place.buyer(&made, "abandon").await;
    place.buyer(&made, "pay").await;
    place.until_status(&made["id"], "paid").await;
    assert_eq!(place.event_types(1).await, ["payment.paid"]);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b054_forged_and_tampered_notices_leave_no_trace_that_blocks_the_genuine_one() {
    let place = Place::start().await;
    let made = open(&place, "O1", 700).await;
    // The genuine ones are kept back, so that whatever stands in the inbox was forged.
    place.notify(&made, "hold").await;
    place.buyer(&made, "abandon").await;
    for mode in ["forge", "tamper"] {
        let sent = place.notify(&made, mode).await;
        for copy in sent["sent"].as_array().expect("deliveries") {
            assert_eq!((copy["acknowledged"].as_bool(), copy["body"].as_str()), (Some(false), Some("fail")), "{copy}");
        }
    }
    assert_eq!(place.payment(&made["id"]).await["status"], "pending");
    let hook = format!("{}/webhooks/alipay/alipay", place.base);
    let reference = channel_ref(&made);
    let unsigned = format!("out_trade_no={reference}&trade_status=TRADE_SUCCESS&total_amount=7.00&app_id=2021000000000001");
    let form = [("content-type", "application/x-www-form-urlencoded")];
    for (url, body) in [
        (hook.clone(), unsigned.clone()),
        (hook.clone(), format!("{unsigned}&sign=&sign_type=RSA2")),
        (hook.clone(), String::new()),
        (hook.clone(), "{}".to_owned()),
        (format!("{hook}?{unsigned}&sign=AAAA&sign_type=RSA2"), String::new()),
    ] {
        let reply = place.client.send(Method::POST, &url, &form, body).await;
        assert_eq!(reply.text(), "fail");
    }
    for status in ["waiting", "settled", "unmatched", "foreign"] {
        assert_eq!(inbox(&place, status).await, Vec::<Value>::new(), "no trace");
    }
    place.buyer(&made, "pay").await;
    place.notify(&made, "release").await;
    place.until_status(&made["id"], "paid").await;
    assert_eq!(place.event_types(1).await, ["payment.paid"]);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b056_an_account_without_its_keys_is_refused_when_it_is_set_up() {
    use payonce_server::App;
    use payonce_server::config::{Config, Environment, Options};
    let dir = crate::place::Dir::new();
    for key in ["", "   ", "AAAA"] {
        let file = dir.path("payonce.toml");
        let text = format!(
            "[account.shop]\nchannel = \"alipay\"\n[account.shop.settings]\napp_id = \"2021\"\nseller_id = \"2088\"\nprivate_key = \"{key}\"\nalipay_public_key = \"{key}\"\n"
        );
        std::fs::write(&file, text).expect("written");
        let options = Options { config: Some(file), database: Some(dir.database()), ..Options::default() };
        let config = Config::load(&options, &Environment::default()).expect("a configuration");
        let fault = App::build(config).await.expect_err("refused").to_string();
        assert!(fault.contains("account shop") && fault.contains("private_key"), "{fault}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b058_a_notice_at_another_tenants_address_moves_nothing() {
    let place = Place::start().await;
    let made = open(&place, "O1", 700).await;
    place.notify(&made, "hold").await;
    place.buyer(&made, "pay").await;
    // What was signed for the one account, delivered to the other's address: the signature does not hold there.
    let listed = place
        .client
        .send(Method::GET, &format!("{}/_sandbox/notifications?channel=alipay", place.sandbox), &[], "")
        .await
        .expect(200)
        .json();
    assert_eq!(listed["notifications"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(place.payment(&made["id"]).await["status"], "pending");
    let nowhere = format!("{}/webhooks/alipay/nobody", place.base);
    assert_eq!(place.client.send(Method::POST, &nowhere, &[], "x=1").await.status, 404);
    let wrong_channel = format!("{}/webhooks/stripe/alipay", place.base);
    assert_eq!(place.client.send(Method::POST, &wrong_channel, &[], "x=1").await.status, 404);
    place.notify(&made, "release").await;
    place.until_status(&made["id"], "paid").await;
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b065_the_acknowledgement_is_exactly_seven_bytes_and_nothing_wraps_it() {
    let place = Place::start().await;
    let made = open(&place, "O1", 700).await;
    place.buyer(&made, "pay").await;
    place.until_status(&made["id"], "paid").await;
    let listed = place
        .client
        .send(Method::GET, &format!("{}/_sandbox/notifications?channel=alipay", place.sandbox), &[], "")
        .await
        .expect(200)
        .json();
    let deliveries = listed["notifications"][0]["deliveries"].as_array().cloned().unwrap_or_default();
    assert!(!deliveries.is_empty(), "{listed}");
    for delivery in deliveries {
        assert_eq!((delivery["status"].as_u64(), delivery["body"].as_str()), (Some(200), Some("success")));
    }
    let rows = inbox(&place, "settled").await;
    assert_eq!((rows.len(), rows[0]["payment"].clone(), rows[0]["facts"]["kind"].as_str()), (1, made["id"].clone(), Some("paid")));
    let again =
        place.post(&format!("/v1/inbox/{}/retry", rows[0]["id"].as_str().expect("an id")), "K9", &json!({})).await.expect(200).json();
    assert_eq!(again["status"], "settled");
    assert_eq!(place.event_types(1).await, ["payment.paid"]);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b075_closed_counts_once_the_channel_has_confirmed_it_and_is_final_for_the_buyer() {
    let place = Place::start().await;
    let made = open(&place, "O1", 700).await;
    place.buyer(&made, "abandon").await;
    place.notify(&made, "hold").await;
    let close = format!("/v1/payments/{}/close", made["id"].as_str().expect("an id"));
    let closed = place.post(&close, "C1", &json!({})).await.expect(200).json();
    assert_eq!((closed["status"].as_str(), closed["attempt"]["status"].as_str()), (Some("closed"), Some("closed")));
    assert_eq!(place.event_types(1).await, ["payment.closed"]);
    assert!(place.post(&close, "C1", &json!({})).await.expect(200).is_replay());
    assert_eq!(place.post(&close, "C2", &json!({})).await.expect(200).json()["status"], "closed");
    // The channel itself has confirmed the close, so the buyer cannot pay any more.
    let url = format!("{}/_sandbox/buyer", place.sandbox);
    let pay = json!({ "channel": "alipay", "channel_ref": channel_ref(&made), "action": "pay" }).to_string();
    assert_eq!(place.client.send(Method::POST, &url, &[("content-type", "application/json")], pay).await.status, 409);
    assert_eq!(place.executed("charge").await, (0, 0));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b075_closing_loses_to_paying() {
    let place = Place::start().await;
    let made = open(&place, "O1", 700).await;
    place.notify(&made, "hold").await;
    place.buyer(&made, "pay").await;
    let close = format!("/v1/payments/{}/close", made["id"].as_str().expect("an id"));
    let reply = place.post(&close, "C1", &json!({})).await.expect(200).json();
    assert_eq!((reply["status"].as_str(), reply["amount_captured"].as_i64()), (Some("paid"), Some(700)));
    // (b) The answer to the close is lost, and the look-up that comes first is too.
    let other = open(&place, "O2", 900).await;
    place.buyer(&other, "abandon").await;
    place.fault("close", "drop_response", 1, None).await;
    let close = format!("/v1/payments/{}/close", other["id"].as_str().expect("an id"));
    let first = place.post(&close, "C2", &json!({})).await;
    assert!([200, 409].contains(&first.status), "{}", first.text());
    let settled = place.post(&close, "C3", &json!({})).await.expect(200).json();
    assert_eq!(settled["status"], "closed");
    assert_eq!(place.event_types(2).await, ["payment.paid", "payment.closed"]);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b034_b035_a_timeout_is_not_a_failure_and_is_found_out_under_the_same_number() {
    let quick = [
        ("PAYONCE_CHANNEL_DEADLINE", "500ms"),
        ("PAYONCE_HTTP_ANSWER_DUE", "900ms"),
        ("PAYONCE_RECONCILE_FIRST_LOOK_UP", "200ms"),
        ("PAYONCE_RECONCILE_INTERVAL", "100ms"),
    ];
    let place = Place::with(&quick).await;
    place.control("notifications", json!({ "channel": "alipay", "mode": "drop" })).await;
    // Executes, and answers long after everybody has given up; look-ups fail at first.
    place.fault("charge", "delay_response", 1, Some(3000)).await;
    place.fault("query", "error_before", 2, None).await;
    let body = barcode("O1", 700, CODE_PAYS);
    let first = place.post("/v1/payments", "K1", &body).await.expect(202).json();
    assert_eq!(first["status"], "pending");
    assert!(["unknown", "prepared"].contains(&first["attempt"]["status"].as_str().expect("a status")), "{first}");
    let again = place.post("/v1/payments", "K1", &body).await;
    assert!([201, 202, 409].contains(&again.status), "{}", again.text());
    place.until_status(&first["id"], "paid").await;
    let last = place.post("/v1/payments", "K1", &body).await.expect(201);
    assert_eq!((last.json()["id"].clone(), last.json()["status"].as_str()), (first["id"].clone(), Some("paid")));
    assert!(place.post("/v1/payments", "K1", &body).await.is_replay(), "a parked key that has come to its end is kept");
    assert_eq!((place.executed("charge").await, place.event_types(1).await), ((1, 700), vec!["payment.paid".to_owned()]));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b044_a_refund_notice_that_beats_the_answer_is_the_same_refund() {
    let place = Place::start().await;
    let paid = place.post("/v1/payments", "K1", &barcode("O1", 5000, CODE_PAYS)).await.expect(201).json();
    place.fault("refund", "delay_response", 1, Some(600)).await;
    let path = format!("/v1/payments/{}/refunds", paid["id"].as_str().expect("an id"));
    let refund = place.post(&path, "R1", &json!({ "refund_id": "r1", "amount": 3000 })).await.expect(201).json();
    assert_eq!(refund["status"], "succeeded");
    let after = place.until(&paid["id"], "refunded", |payment| payment["amount_refunded"] == 3000).await;
    assert_eq!(after["status"], "paid");
    let types = place.event_types(2).await;
    assert_eq!(types, ["payment.paid", "refund.succeeded"]);
    assert_eq!(place.executed("refund").await, (1, 3000));
    place.stop().await;
}
