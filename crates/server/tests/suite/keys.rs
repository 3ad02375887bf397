//! The idempotency key: once, never for another request, and the answer again byte for byte.

use http::Method;
use serde_json::{Value, json};

use crate::place::{CODE_INVALID, CODE_PAYS, KEY, Place, barcode, qr};

#[tokio::test(flavor = "multi_thread")]
async fn b010_b012_another_body_under_the_same_key_is_refused_at_any_time() {
    let place = Place::start().await;
    place.fault("charge", "delay_response", 1, Some(600)).await;
    let (right, wrong) = (barcode("O1", 100, CODE_PAYS), barcode("O1", 101, CODE_PAYS));
    let (first, early) = tokio::join!(place.post("/v1/payments", "K1", &right), async {
        place.until_requests(1).await;
        place.post("/v1/payments", "K1", &wrong).await
    });
    let id = first.expect(201).json()["id"].as_str().expect("an id").to_owned();
    assert_eq!(early.expect(422).code(), "idempotency_key_reused");
    let body = barcode("O2", 9900, CODE_PAYS);
    let many = futures_util::future::join_all((0..20).map(|_| place.post("/v1/payments", "K1", &body))).await;
    for reply in many {
        assert_eq!(reply.code(), "idempotency_key_reused");
        assert_eq!((reply.status, reply.json()["money_moved"].as_str()), (422, Some("no")));
        assert!(!reply.text().contains(&id), "nothing of the first request");
    }
    assert_eq!(place.executed("charge").await, (1, 100));
    assert_eq!(place.get("/v1/payments?order_id=O2").await.expect(200).json()["data"], json!([]));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b011_the_order_of_elements_counts_and_b008_the_order_of_members_does_not() {
    let place = Place::start().await;
    let one = r#"{"order_id":"O1","amount":100,"currency":"CNY","channel":"alipay","method":"qr","metadata":{"a":"1","b":"2"}}"#;
    let two =
        r#"{ "metadata" : {"b":"2","a":"1"}, "method":"qr", "channel":"alipay","currency":"CNY", "amount":100, "order_id":"\u004f1"}"#;
    let three = r#"{"order_id":"O1","amount":100,"currency":"CNY","channel":"alipay","method":"qr","metadata":{"a":"2","b":"1"}}"#;
    let first = place.post_raw("/v1/payments", "K1", one).await.expect(201);
    let again = place.post_raw("/v1/payments", "K1", two).await.expect(201);
    assert!(again.is_replay() && again.body == first.body);
    place.post_raw("/v1/payments", "K1", three).await.expect(422);
    place.post_raw("/v1/payments?x=1", "K1", one).await.expect(422);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b013_duplicate_members_never_reach_a_key_or_a_channel() {
    let place = Place::start().await;
    for body in [
        r#"{"order_id":"O1","amount":1,"amount":99900,"currency":"CNY","channel":"alipay","method":"qr"}"#,
        r#"{"order_id":"O1","amount":99900,"amount":1,"currency":"CNY","channel":"alipay","method":"qr"}"#,
    ] {
        assert_eq!(place.post_raw("/v1/payments", "K1", body).await.expect(400).code(), "json_duplicate_member");
    }
    assert!(place.requests().await.is_empty());
    let clean = place.post("/v1/payments", "K1", &qr("O1", 99_900)).await.expect(201);
    assert!(!clean.is_replay());
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b014_b015_a_replay_is_the_same_but_for_what_belongs_to_the_exchange() {
    let place = Place::start().await;
    let paid = place.paid("P1", 1000).await;
    let refunds = format!("/v1/payments/{}/refunds", paid["id"].as_str().expect("an id"));
    let open = place.post("/v1/payments", "open", &qr("Q1", 700)).await.expect(201).json();
    let of_open = |verb: &str| format!("/v1/payments/{}/{verb}", open["id"].as_str().expect("an id"));
    let calls: Vec<(String, Value, u16)> = vec![
        ("/v1/payments".to_owned(), qr("O1", 100), 201),
        ("/v1/payments".to_owned(), qr("Q1", 700), 200),
        ("/v1/payments".to_owned(), barcode("O2", 100, CODE_INVALID), 402),
        (refunds.clone(), json!({ "refund_id": "r1", "amount": 10 }), 201),
        (refunds, json!({ "refund_id": "r1", "amount": 10 }), 200),
        (of_open("sync"), json!({}), 200),
    ];
    for (path, body, status) in calls {
        let key = place.key();
        let first = place.post(&path, &key, &body).await.expect(status);
        let again = place.post(&path, &key, &body).await.expect(status);
        assert!(again.is_replay() && !first.is_replay(), "{path} {body}");
        assert_eq!(again.body, first.body, "{path} {body}");
        for name in ["content-type", "location", "etag", "content-length"] {
            assert_eq!(again.header(name), first.header(name), "{path}: {name}");
        }
        assert_ne!(again.header("x-request-id"), first.header("x-request-id"));
        assert_eq!(again.header("set-cookie"), None);
    }
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b016_free_text_comes_back_byte_for_byte() {
    let place = Place::start().await;
    let mut body = qr("O1", 100);
    body["metadata"] = json!({ "zz": "10.00", "aa": "\u{1f600} \u{1} \" \\ \u{2028}", "mm": "" });
    let first = place.post("/v1/payments", "K1", &body).await.expect(201);
    assert_eq!(first.json()["metadata"], body["metadata"]);
    let again = place.post("/v1/payments", "K1", &body).await.expect(201);
    assert!(again.is_replay() && again.body == first.body);
    assert_eq!(place.payment(&first.json()["id"]).await["metadata"], body["metadata"]);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b017_a_validation_refusal_does_not_burn_the_key() {
    let place = Place::start().await;
    for bad in [-5, 0] {
        assert_eq!(place.post("/v1/payments", "K1", &qr("O1", bad)).await.expect(400).code(), "parameter_invalid");
    }
    let mut usd = qr("O1", 500);
    usd["currency"] = json!("USD");
    assert_eq!(place.post("/v1/payments", "K1", &usd).await.expect(400).code(), "currency_not_supported");
    let good = place.post("/v1/payments", "K1", &qr("O1", 500)).await.expect(201);
    assert!(!good.is_replay());
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b026_one_key_on_two_endpoints_never_gets_the_other_answer() {
    let place = Place::start().await;
    let body = barcode("O1", 1000, CODE_PAYS);
    let paid = place.post("/v1/payments", "K1", &body).await.expect(201).json();
    let id = paid["id"].as_str().expect("an id");
    let refund = place.post(&format!("/v1/payments/{id}/refunds"), "K1", &json!({ "refund_id": "r1", "amount": 400 })).await.expect(201);
    assert!(!refund.is_replay());
    assert_eq!(refund.json()["object"], "refund");
    let other = place.post("/v1/payments", "K2", &qr("O2", 500)).await.expect(201).json();
    let closed = place.post(&format!("/v1/payments/{}/sync", other["id"].as_str().expect("an id")), "K1", &json!({})).await.expect(200);
    assert!(!closed.is_replay());
    assert_eq!(closed.json()["id"], other["id"]);
    assert!(place.post("/v1/payments", "K1", &body).await.expect(201).is_replay());
    assert_eq!((place.executed("charge").await, place.executed("refund").await), ((1, 1000), (1, 400)));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b027_keys_and_orders_are_compared_byte_for_byte() {
    let place = Place::start().await;
    let one = place.post("/v1/payments", "Abc", &qr("A1", 100)).await.expect(201).json();
    let two = place.post("/v1/payments", "abc", &qr("a1", 100)).await.expect(201).json();
    assert_ne!(one["id"], two["id"]);
    assert!(place.post("/v1/payments", "\"Abc\"", &qr("A1", 100)).await.expect(201).is_replay(), "quoted and bare are one key");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b028_every_post_needs_one_well_formed_key() {
    let place = Place::start().await;
    let paid = place.paid("P1", 1000).await;
    let id = paid["id"].as_str().expect("an id");
    let before = place.requests().await.len();
    let bearer = format!("Bearer {KEY}");
    let posts = [
        ("/v1/payments".to_owned(), qr("O1", 100)),
        (format!("/v1/payments/{id}/refunds"), json!({ "refund_id": "r1", "amount": 1 })),
        (format!("/v1/payments/{id}/attempts"), json!({ "channel": "alipay", "method": "qr" })),
        (format!("/v1/payments/{id}/capture"), json!({})),
        (format!("/v1/payments/{id}/close"), json!({})),
        (format!("/v1/payments/{id}/sync"), json!({})),
        (format!("/v1/payments/{id}/resolve"), json!({ "outcome": "succeeded", "evidence": "x" })),
        ("/v1/payouts".to_owned(), json!({})),
        ("/v1/inbox/inb_00000000000000000000000000000000/retry".to_owned(), json!({})),
    ];
    let keys: [(&[&str], &str); 8] = [
        (&[], "idempotency_key_missing"),
        (&[""], "idempotency_key_invalid"),
        (&["   "], "idempotency_key_invalid"),
        (&["\"\""], "idempotency_key_invalid"),
        (&["a,b"], "idempotency_key_invalid"),
        (&["a b"], "idempotency_key_invalid"),
        (&["a", "b"], "idempotency_key_invalid"),
        (&["ключ"], "idempotency_key_invalid"),
    ];
    for (path, body) in &posts {
        for (values, code) in keys {
            let mut headers = vec![("authorization", bearer.as_str()), ("content-type", "application/json")];
            headers.extend(values.iter().map(|value| ("idempotency-key", *value)));
            let reply = place.client.send(Method::POST, &format!("{}{path}", place.base), &headers, body.to_string()).await;
            assert_eq!((reply.status, reply.code().as_str()), (400, code), "{path} {values:?}");
        }
    }
    assert_eq!(place.requests().await.len(), before, "nothing was sent");
    let long = "k".repeat(256);
    assert_eq!(place.post("/v1/payments", &long, &qr("O1", 100)).await.expect(400).code(), "idempotency_key_invalid");
    // Two equal ones are one.
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("idempotency-key", "K1"),
        ("idempotency-key", "\"K1\""),
    ];
    place.client.send(Method::POST, &format!("{}/v1/payments", place.base), &headers, qr("O1", 100).to_string()).await.expect(201);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b009_what_varies_from_send_to_send_does_not_count() {
    let place = Place::start().await;
    let bearer = format!("Bearer {KEY}");
    let mut first = None;
    for n in 0..3 {
        let noise = format!("r{n}");
        let headers = [
            ("authorization", bearer.as_str()),
            ("idempotency-key", "K1"),
            ("content-type", if n == 2 { "application/json; charset=utf-8" } else { "application/json" }),
            ("x-request-id", noise.as_str()),
            ("traceparent", noise.as_str()),
            ("user-agent", noise.as_str()),
            ("accept-encoding", "gzip, br"),
        ];
        let reply =
            place.client.send(Method::POST, &format!("{}/v1/payments", place.base), &headers, qr("O1", 100).to_string()).await.expect(201);
        assert_eq!(
            (reply.is_replay(), reply.header("x-request-id"), reply.header("content-encoding")),
            (n > 0, Some(noise.as_str()), None)
        );
        assert_eq!(first.get_or_insert_with(|| reply.body.clone()), &reply.body);
    }
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_waits_where_the_configuration_says_so() {
    let place = Place::with(&[("PAYONCE_GUARD_IN_FLIGHT", "wait")]).await;
    place.fault("charge", "delay_response", 1, Some(500)).await;
    let body = barcode("O1", 100, CODE_PAYS);
    let (a, b) = tokio::join!(place.post("/v1/payments", "K1", &body), place.post("/v1/payments", "K1", &body));
    assert_eq!((a.status, b.status, a.is_replay() != b.is_replay()), (201, 201, true));
    assert_eq!(a.body, b.body);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b029_an_expired_key_is_taken_over_by_one_of_many() {
    let short = [
        ("PAYONCE_GUARD_TTL", "1500ms"),
        ("PAYONCE_GUARD_LEASE", "1200ms"),
        ("PAYONCE_CHANNEL_DEADLINE", "500ms"),
        ("PAYONCE_HTTP_ANSWER_DUE", "900ms"),
    ];
    let place = Place::with(&short).await;
    place.post("/v1/payments", "K1", &barcode("O1", 100, CODE_PAYS)).await.expect(201);
    tokio::time::sleep(std::time::Duration::from_millis(2000)).await;
    let body = barcode("O2", 200, CODE_PAYS);
    let all = futures_util::future::join_all((0..10).map(|_| place.post("/v1/payments", "K1", &body))).await;
    let fresh = all.iter().filter(|reply| reply.status == 201 && !reply.is_replay()).count();
    assert_eq!(fresh, 1, "{:?}", all.iter().map(|reply| reply.status).collect::<Vec<_>>());
    assert!(all.iter().all(|reply| reply.status == 201 || (reply.status == 409 && reply.code() == "idempotency_key_in_use")));
    assert_eq!(place.executed("charge").await, (2, 300));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b004_answers_that_are_none_leave_no_key_in_progress() {
    let place = Place::start().await;
    for (n, fault) in ["malformed", "empty", "error_after", "bad_signature", "drop_response"].into_iter().enumerate() {
        place.fault("charge", fault, 1, None).await;
        let (key, body) = (place.key(), barcode(&format!("O{n}"), 100, CODE_PAYS));
        let first = place.post("/v1/payments", &key, &body).await;
        assert!([201, 202].contains(&first.status), "{fault}: {}", first.text());
        let again = place.post("/v1/payments", &key, &body).await.expect(201).json();
        assert_eq!((again["status"].as_str(), again["id"].clone()), (Some("paid"), first.json()["id"].clone()), "{fault}");
    }
    assert_eq!(place.executed("charge").await, (5, 500));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b089_an_answer_over_the_limit_is_kept_as_a_marker_that_points_to_the_payment() {
    let place = Place::with(&[("PAYONCE_GUARD_MAX_ANSWER", "4KiB")]).await;
    let mut body = barcode("O1", 100, CODE_PAYS);
    let long = "x".repeat(500);
    body["metadata"] = (0..20).map(|n| (format!("m{n}"), json!(long))).collect();
    let first = place.post("/v1/payments", "K1", &body).await.expect(201);
    let again = place.post("/v1/payments", "K1", &body).await.expect(201);
    assert!(again.is_replay());
    assert_eq!((again.header("location"), again.json()["code"].as_str()), (first.header("location"), Some("idempotency_answer_not_kept")));
    assert_eq!(place.executed("charge").await, (1, 100));
    place.stop().await;
}
