//! Orders become payments once, whatever is repeated.

use serde_json::{Value, json};

use crate::place::{CODE_INVALID, CODE_NO_BALANCE, CODE_PAYS, KEY_2, Place, barcode, channel_ref, qr};

#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_the_buyer_shows_is_charged_once_and_replayed_byte_for_byte() {
    let place = Place::start().await;
    let body = barcode("O1", 1990, CODE_PAYS);
    let first = place.post("/v1/payments", "K1", &body).await.expect(201);
    let payment = first.json();
    assert_eq!(
        (payment["status"].as_str(), payment["amount"].as_i64(), payment["amount_captured"].as_i64()),
        (Some("paid"), Some(1990), Some(1990))
    );
    assert_eq!(payment["attempt"]["status"], "succeeded");
    assert_eq!(payment["attempt"]["action"]["type"], "none");
    assert_eq!(first.header("location"), Some(format!("/v1/payments/{}", payment["id"].as_str().expect("an id")).as_str()));
    let again = place.post("/v1/payments", "K1", &body).await.expect(201);
    assert!(again.is_replay() && !first.is_replay());
    assert_eq!(again.body, first.body);
    assert_eq!(place.executed("charge").await, (1, 1990));
    assert_eq!(place.event_types(1).await, ["payment.paid"]);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_of_ours_is_shown_paid_by_the_buyer_and_settled_by_the_notification() {
    let place = Place::start().await;
    let made = place.post("/v1/payments", "K1", &qr("O1", 8800)).await.expect(201).json();
    assert_eq!((made["status"].as_str(), made["attempt"]["status"].as_str()), (Some("pending"), Some("pending")));
    assert_eq!(made["attempt"]["action"]["type"], "qr_code");
    assert!(made["attempt"]["action"]["code_url"].as_str().is_some_and(|url| url.contains("://")), "{made}");
    assert_eq!(made["attempts"][0]["action"], made["attempt"]["action"]);
    place.buyer(&made, "pay").await;
    let paid = place.until_status(&made["id"], "paid").await;
    assert!(paid["attempt"]["channel_txn"].is_string());
    assert_eq!(place.event_types(1).await, ["payment.paid"]);
    let timeline = place.get(&format!("/v1/payments/{}/timeline", made["id"].as_str().expect("an id"))).await.expect(200).json();
    let kinds: Vec<&str> = timeline["data"].as_array().expect("entries").iter().filter_map(|entry| entry["kind"].as_str()).collect();
    assert_eq!(kinds.first(), Some(&"created"), "{kinds:?}");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b001_two_devices_submit_the_same_order_with_different_keys() {
    let place = Place::start().await;
    for round in 0..20 {
        let order = format!("O{round}");
        let body = barcode(&order, 1990, CODE_PAYS);
        let (key_a, key_b) = (place.key(), place.key());
        let (a, b) = tokio::join!(place.post("/v1/payments", &key_a, &body), place.post("/v1/payments", &key_b, &body));
        for reply in [&a, &b] {
            assert!([200, 201, 202].contains(&reply.status), "{}: {}", reply.status, reply.text());
        }
        assert_eq!(a.json()["id"], b.json()["id"]);
    }
    assert_eq!(place.executed("charge").await, (20, 20 * 1990));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b001_many_devices_at_once_while_the_channel_is_slow() {
    let place = Place::start().await;
    place.fault("charge", "delay_response", 1, Some(700)).await;
    let body = barcode("O1", 1990, CODE_PAYS);
    let keys: Vec<String> = (0..12).map(|_| place.key()).collect();
    let all = futures_util::future::join_all(keys.iter().map(|key| place.post("/v1/payments", key, &body))).await;
    let made = all.iter().filter(|reply| reply.status == 201).count();
    assert_eq!(made, 1, "{:?}", all.iter().map(|reply| reply.status).collect::<Vec<_>>());
    assert!(all.iter().all(|reply| [200, 201, 202].contains(&reply.status)));
    assert_eq!(place.executed("charge").await, (1, 1990));
    // Whoever was told 202 asks again with its own key, and gets what is there.
    for (key, _) in keys.iter().zip(&all).filter(|(_, reply)| reply.status == 202) {
        assert_eq!(place.post("/v1/payments", key, &body).await.expect(200).json()["status"], "paid");
    }
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b023_declined_then_a_good_code() {
    let place = Place::start().await;
    let declined = place.post("/v1/payments", "K1", &barcode("O1", 500, CODE_INVALID)).await.expect(402);
    assert_eq!(declined.code(), "payment_declined");
    let problem = declined.json();
    assert_eq!((problem["money_moved"].as_str(), problem["retry"].as_str()), (Some("no"), Some("never")));
    assert_eq!(problem["payment"]["status"], "failed");
    assert_eq!(place.post("/v1/payments", "K1", &barcode("O1", 500, CODE_INVALID)).await.expect(402).body, declined.body);
    let good = place.post("/v1/payments", "K2", &barcode("O1", 500, CODE_PAYS)).await.expect(201).json();
    assert_eq!(good["id"], problem["payment"]["id"]);
    assert_ne!(channel_ref(&good), channel_ref(&problem["payment"]), "another number downstream");
    assert_eq!(good["attempts"].as_array().map(Vec::len), Some(2));
    assert_eq!(place.executed("charge").await, (1, 500));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b086_amount_edited_after_a_failed_try() {
    let place = Place::start().await;
    let declined = place.post("/v1/payments", "K1", &barcode("O1", 1800, CODE_INVALID)).await.expect(402).json();
    let good = place.post("/v1/payments", "K2", &barcode("O1", 1000, CODE_PAYS)).await.expect(201).json();
    assert_eq!(
        (good["id"].as_str(), good["amount"].as_i64(), good["status"].as_str()),
        (declined["payment"]["id"].as_str(), Some(1000), Some("paid"))
    );
    assert_eq!(place.executed("charge").await, (1, 1000));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b023_a_decline_that_could_still_be_paid_is_ended_first() {
    let place = Place::start().await;
    let declined = place.post("/v1/payments", "K1", &barcode("O1", 500, CODE_NO_BALANCE)).await.expect(402).json();
    let attempt = &declined["payment"]["attempt"];
    assert!(attempt["failure"]["code"].is_string(), "{attempt}");
    // The answer was read and nothing is left of it at the channel, so it is at its end, and the good code is charged at once.
    let again = place.post("/v1/payments", "K2", &barcode("O1", 500, CODE_PAYS)).await.expect(201).json();
    assert_ne!(again["attempt"]["channel_ref"], attempt["channel_ref"]);
    assert_eq!(place.executed("charge").await, (1, 500));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_order_is_answered_by_what_it_is() {
    let place = Place::start().await;
    let made = place.post("/v1/payments", "K1", &qr("O1", 500)).await.expect(201).json();
    let known = place.post("/v1/payments", "K2", &qr("O1", 500)).await.expect(200);
    assert_eq!(known.json()["id"], made["id"]);
    assert!(place.post("/v1/payments", "K2", &qr("O1", 500)).await.expect(200).is_replay());
    let other = place.post("/v1/payments", "K3", &barcode("O1", 500, CODE_PAYS)).await.expect(409);
    assert_eq!(other.code(), "order_open");
    assert_eq!(other.json()["money_moved"], "no");
    let more = place.post("/v1/payments", "K4", &qr("O1", 600)).await.expect(409);
    assert_eq!(more.code(), "order_conflict");
    // Byte-exact: this is another order.
    assert_ne!(place.post("/v1/payments", "K5", &qr("o1", 500)).await.expect(201).json()["id"], made["id"]);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_way_of_paying_ends_the_open_one_first() {
    let place = Place::start().await;
    let made = place.post("/v1/payments", "K1", &qr("O1", 500)).await.expect(201).json();
    let path = format!("/v1/payments/{}/attempts", made["id"].as_str().expect("an id"));
    let same = place.post(&path, "K2", &json!({ "channel": "alipay", "method": "qr" })).await.expect(200).json();
    assert_eq!(same["attempts"].as_array().map(Vec::len), Some(1));
    // The buyer has scanned, so that there is something to close.
    place.buyer(&made, "abandon").await;
    let switched =
        place.post(&path, "K3", &json!({ "channel": "alipay", "method": "barcode", "channel_options": { "auth_code": CODE_PAYS } })).await;
    let switched = switched.expect(201).json();
    assert_eq!((switched["status"].as_str(), switched["attempts"][0]["status"].as_str()), (Some("paid"), Some("closed")));
    assert_eq!(place.executed("charge").await.0, 1);
    assert!(place.post(&path, "K4", &json!({ "channel": "alipay", "method": "qr" })).await.expect(200).json()["status"] == "paid");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_nobody_scanned_may_still_be_paid_and_is_not_switched_without_force() {
    let place = Place::start().await;
    let made = place.post("/v1/payments", "K1", &qr("O1", 500)).await.expect(201).json();
    let path = format!("/v1/payments/{}/attempts", made["id"].as_str().expect("an id"));
    let body = json!({ "channel": "alipay", "method": "barcode", "channel_options": { "auth_code": CODE_PAYS } });
    let refused = place.post(&path, "K2", &body).await.expect(409);
    assert_eq!(refused.code(), "attempt_unresolved");
    assert!(refused.json()["retry_at"].is_string() && refused.header("retry-after").is_some());
    let mut forced = body;
    forced["force_surplus"] = json!(true);
    let forced = place.post(&path, "K3", &forced).await.expect(201).json();
    assert_eq!((forced["status"].as_str(), forced["attempts"][0]["released"].as_bool()), (Some("paid"), Some(true)));
    // The risk that was taken: the buyer pays the old code too. It is surplus, and goes back once.
    place.control("buyer", json!({ "channel": "alipay", "channel_ref": forced["attempts"][0]["channel_ref"], "action": "pay" })).await;
    place.until(&made["id"], "a surplus", |payment| payment["surpluses"].as_array().is_some_and(|rows| rows.len() == 1)).await;
    for _ in 0..400 {
        if place.executed("refund").await == (1, 500) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    assert_eq!((place.executed("charge").await, place.executed("refund").await), ((2, 1000), (1, 500)));
    assert_eq!(place.payment(&made["id"]).await["status"], "paid");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b025_and_b058_tenants_share_keys_and_orders_and_nothing_else() {
    let place = Place::start().await;
    let first = place.post("/v1/payments", "K1", &barcode("O1", 500, CODE_PAYS)).await.expect(201).json();
    let second = place.post_as(KEY_2, "/v1/payments", "K1", barcode("O1", 500, CODE_PAYS).to_string()).await.expect(201);
    assert!(!second.is_replay());
    assert_ne!(second.json()["id"], first["id"]);
    assert_eq!(second.json()["attempt"]["account"], "alipay_2");
    let other = place.post_as(KEY_2, "/v1/payments", "K1", barcode("O1", 700, CODE_PAYS).to_string()).await.expect(422);
    assert!(!other.text().contains(first["id"].as_str().expect("an id")));
    let id = first["id"].as_str().expect("an id");
    assert_eq!(place.get_as(KEY_2, &format!("/v1/payments/{id}")).await.expect(404).code(), "payment_not_found");
    for path in ["close", "sync", "refunds", "attempts", "capture"] {
        let body = if path == "refunds" { json!({ "refund_id": "r1", "amount": 1 }) } else { json!({}) };
        let reply = place.post_as(KEY_2, &format!("/v1/payments/{id}/{path}"), &place.key(), body.to_string()).await;
        assert_eq!((reply.status, reply.code()), (404, "payment_not_found".to_owned()), "{path}");
    }
    let names_account =
        json!({ "order_id": "O9", "amount": 500, "currency": "CNY", "channel": "alipay", "account": "alipay", "method": "qr" });
    assert_eq!(place.post_as(KEY_2, "/v1/payments", "K9", names_account.to_string()).await.expect(400).code(), "parameter_invalid");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered_and_paged() {
    let place = Place::start().await;
    let mut ids: Vec<Value> = Vec::new();
    for n in 0..5 {
        ids.push(place.post("/v1/payments", &place.key(), &qr(&format!("O{n}"), 100)).await.expect(201).json()["id"].clone());
    }
    place.paid("P1", 300).await;
    let page = place.get("/v1/payments?status=pending&limit=2").await.expect(200).json();
    assert_eq!(
        (page["data"][0]["id"].clone(), page["data"][1]["id"].clone(), page["has_more"].clone()),
        (ids[4].clone(), ids[3].clone(), json!(true))
    );
    let after = page["next"].as_str().expect("a cursor");
    let rest = place.get(&format!("/v1/payments?status=pending&after={after}")).await.expect(200).json();
    assert_eq!((rest["data"].as_array().map(Vec::len), rest["has_more"].as_bool()), (Some(3), Some(false)));
    assert_eq!(place.get("/v1/payments?order_id=P1").await.expect(200).json()["data"][0]["status"], "paid");
    assert_eq!(place.get("/v1/payments?channel=wechat").await.expect(200).json()["data"], json!([]));
    for bad in ["limit=0", "limit=101", "status=gone", "colour=red", "after=x", "limit=1&limit=2"] {
        place.get(&format!("/v1/payments?{bad}")).await.expect(400);
    }
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b002_the_workers_and_a_manual_request_for_one_order_charge_once() {
    let quick = [
        ("PAYONCE_CHANNEL_DEADLINE", "700ms"),
        ("PAYONCE_HTTP_ANSWER_DUE", "900ms"),
        ("PAYONCE_RECONCILE_FIRST_LOOK_UP", "100ms"),
        ("PAYONCE_RECONCILE_INTERVAL", "50ms"),
    ];
    let place = Place::with(&quick).await;
    // The channel stalls past the deadline, and executes all the same.
    place.fault("charge", "delay", 1, Some(1500)).await;
    let body = barcode("O1", 50_000, CODE_PAYS);
    // The look-up finds nothing, so the same bytes are sent again: that may be answered in time.
    let first = place.post("/v1/payments", "K1", &body).await;
    assert!([201, 202].contains(&first.status), "{}", first.text());
    let first = first.json();
    let id = first["id"].as_str().expect("an id");
    let (sync, path) = (place.key(), format!("/v1/payments/{id}/sync"));
    let (again, other, synced) =
        tokio::join!(place.post("/v1/payments", "K1", &body), place.post("/v1/payments", "K2", &body), place.post_raw(&path, &sync, "{}"),);
    for reply in [&again, &other, &synced] {
        assert!([200, 201, 202, 409].contains(&reply.status), "{}", reply.text());
    }
    place.until_status(&first["id"], "paid").await;
    // The one that was stalled arrives at last, and meets what is paid.
    for _ in 0..200 {
        if place.requests().await.iter().all(|request| !request["status"].is_null() || request["executed"] == true) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    assert_eq!(place.executed("charge").await, (1, 50_000));
    assert_eq!(place.event_types(1).await, ["payment.paid"]);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_ends_only_what_nobody_knows() {
    let quick = [("PAYONCE_CHANNEL_DEADLINE", "300ms"), ("PAYONCE_HTTP_ANSWER_DUE", "500ms")];
    let place = Place::with(&quick).await;
    let paid = place.paid("P1", 100).await;
    let resolve = |payment: &Value| format!("/v1/payments/{}/resolve", payment["id"].as_str().expect("an id"));
    let said = json!({ "outcome": "succeeded", "evidence": "statement of 2026-12-01, line 7" });
    assert_eq!(place.post(&resolve(&paid), "R1", &said).await.expect(409).code(), "nothing_to_resolve");
    place.fault("charge", "drop_request", 5, None).await;
    place.fault("query", "error_before", 100, None).await;
    let lost = place.post("/v1/payments", "K1", &barcode("O1", 700, CODE_PAYS)).await.expect(202).json();
    assert_eq!(place.post(&resolve(&lost), "R2", &json!({ "outcome": "succeeded" })).await.expect(400).code(), "parameter_missing");
    let mut ended =
        place.post(&resolve(&lost), "R3", &json!({ "outcome": "never_happened", "evidence": "asked the channel's support" })).await;
    for _ in 0..100 {
        if ended.status == 200 {
            break;
        }
        // While a request is on its way, nobody may say what came of it.
        assert_eq!(ended.code(), "attempt_unresolved");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        ended = place.post(&resolve(&lost), "R3", &json!({ "outcome": "never_happened", "evidence": "asked the channel's support" })).await;
    }
    assert_eq!(ended.expect(200).json()["status"], "closed");
    let timeline = place.get(&format!("/v1/payments/{}/timeline", lost["id"].as_str().expect("an id"))).await.expect(200).json();
    let resolved =
        timeline["data"].as_array().expect("entries").iter().find(|entry| entry["kind"] == "resolved").cloned().expect("an entry");
    assert_eq!(
        (resolved["source"].as_str(), resolved["detail"]["evidence"].as_str()),
        (Some("operator"), Some("asked the channel's support"))
    );
    place.stop().await;
}
