//! The merchant is told once, signed, in order, and never at an address inside the network.

use serde_json::json;

use crate::callbacks::Shop;
use crate::place::{CODE_PAYS, KEY_2, Place, barcode, qr};

const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

#[tokio::test(flavor = "multi_thread")]
async fn events_are_sent_signed_once_and_in_order() {
    let shop = Shop::open(&[]).await;
    let (url, allowed) = (shop.url(), shop.addr.to_string());
    let place = Place::with(&[
        ("PAYONCE_MERCHANT_WEBHOOK_URL", &url),
        ("PAYONCE_MERCHANT_SECRET", SECRET),
        ("PAYONCE_MERCHANT_ALLOW_HOSTS", &allowed),
    ])
    .await;
    let paid = place.paid("O1", 1000).await;
    place
        .post(&format!("/v1/payments/{}/refunds", paid["id"].as_str().expect("an id")), "R1", &json!({ "refund_id": "r1", "amount": 400 }))
        .await
        .expect(201);
    let got = shop.until(2).await;
    let events = place.events(2).await;
    assert_eq!(got.len(), 2);
    for (callback, event) in got.iter().zip(&events) {
        assert!(callback.is_signed_with(SECRET));
        assert!(!callback.is_signed_with("whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="), "the check can fail");
        let told = callback.json();
        assert_eq!((&told["id"], &told["type"], &told["data"]), (&event["id"], &event["type"], &event["data"]));
        assert_eq!(callback.headers["webhook-id"].to_str().ok(), event["id"].as_str());
    }
    assert_eq!((got[0].json()["type"].as_str(), got[1].json()["type"].as_str()), (Some("payment.paid"), Some("refund.succeeded")));
    assert_eq!(got[1].json()["data"]["refund"]["refund_id"], "r1");
    for _ in 0..400 {
        if place.events(2).await.iter().all(|event| event["delivery"] == "acknowledged") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    assert!(place.events(2).await.iter().all(|event| event["delivery"] == "acknowledged"));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_that_fails_is_told_again_and_the_next_event_waits() {
    let shop = Shop::open(&[500]).await;
    let (url, allowed) = (shop.url(), shop.addr.to_string());
    let place = Place::with(&[
        ("PAYONCE_MERCHANT_WEBHOOK_URL", &url),
        ("PAYONCE_MERCHANT_SECRET", SECRET),
        ("PAYONCE_MERCHANT_ALLOW_HOSTS", &allowed),
    ])
    .await;
    let paid = place.paid("O1", 1000).await;
    place
        .post(&format!("/v1/payments/{}/refunds", paid["id"].as_str().expect("an id")), "R1", &json!({ "refund_id": "r1", "amount": 400 }))
        .await
        .expect(201);
    let got = shop.until(3).await;
    let types: Vec<String> = got.iter().map(|callback| callback.json()["type"].as_str().expect("a type").to_owned()).collect();
    assert_eq!(types, ["payment.paid", "payment.paid", "refund.succeeded"]);
    assert_eq!(
        (&got[0].headers["webhook-id"], &got[0].body),
        (&got[1].headers["webhook-id"], &got[1].body),
        "the same bytes under the same id"
    );
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payments_own_address_beats_the_tenants_and_tenants_are_told_apart() {
    let (mine, theirs) = (Shop::open(&[]).await, Shop::open(&[]).await);
    let hosts = format!("{},{}", mine.addr, theirs.addr);
    let url = theirs.url();
    let place = Place::with(&[
        ("PAYONCE_MERCHANT_ALLOW_HOSTS", &hosts),
        ("PAYONCE_TENANT_SECOND_MERCHANT_WEBHOOK_URL", &url),
        ("PAYONCE_TENANT_SECOND_MERCHANT_SECRET", SECRET),
    ])
    .await;
    let mut body = barcode("O1", 1000, CODE_PAYS);
    body["notify_url"] = json!(mine.url());
    place.post("/v1/payments", "K1", &body).await.expect(201);
    place.post_as(KEY_2, "/v1/payments", "K1", barcode("O2", 900, CODE_PAYS).to_string()).await.expect(201);
    let (mine_got, theirs_got) = (mine.until(1).await, theirs.until(1).await);
    assert_eq!(
        (mine_got[0].json()["data"]["payment"]["order_id"].as_str(), theirs_got[0].json()["data"]["payment"]["order_id"].as_str()),
        (Some("O1"), Some("O2"))
    );
    let secrets = &place.running.as_ref().expect("running").webhook_secrets;
    assert!(mine_got[0].is_signed_with(secrets[0].1.expose()) && theirs_got[0].is_signed_with(SECRET));
    assert!(!mine_got[0].is_signed_with(SECRET));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b092_callbacks_inside_the_network_are_refused_at_creation_and_never_sent() {
    let inside = Shop::open(&[]).await;
    let place = Place::start().await;
    for url in [
        inside.url(),
        format!("http://localhost:{}/", inside.addr.port()),
        format!("http://127.1:{}/", inside.addr.port()),
        "http://[::1]/".to_owned(),
        "http://10.0.0.5/".to_owned(),
        "http://169.254.169.254/latest/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "gopher://x/".to_owned(),
        "https://user:pw@shop.example/".to_owned(),
    ] {
        let mut body = qr("O1", 100);
        body["notify_url"] = json!(url);
        let reply = place.post("/v1/payments", "K1", &body).await.expect(400);
        assert_eq!((reply.code().as_str(), reply.json()["field"].as_str()), ("notify_url_not_allowed", Some("notify_url")), "{url}");
    }
    let mut outside = barcode("O1", 100, CODE_PAYS);
    outside["notify_url"] = json!("https://shop.example/hook");
    place.post("/v1/payments", "K1", &outside).await.expect(201);
    assert!(inside.got().is_empty());
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b092_an_address_that_is_no_longer_allowed_is_refused_when_it_is_sent() {
    let inside = Shop::open(&[]).await;
    let dir = crate::place::Dir::new();
    let allowed = inside.addr.to_string();
    // Taken while it was allowed, and not told before the list was changed.
    let running = crate::place::serve(dir.database(), &[("PAYONCE_MERCHANT_ALLOW_HOSTS", &allowed)]).await;
    let client = crate::client::Client::new();
    let bearer = format!("Bearer {}", crate::place::KEY);
    let headers = [("authorization", bearer.as_str()), ("idempotency-key", "K1"), ("content-type", "application/json")];
    let mut body = qr("O1", 100);
    body["notify_url"] = json!(inside.url());
    let made = client
        .send(http::Method::POST, &format!("http://{}/v1/payments", running.addr), &headers, body.to_string())
        .await
        .expect(201)
        .json();
    let sandbox = running.sandbox_url.clone().expect("a sandbox");
    assert!(running.shutdown().await);
    let running = crate::place::serve(dir.database(), &[]).await;
    // An operator's word makes an event without any channel.
    drop(sandbox);
    let base = format!("http://{}", running.addr);
    let id = made["id"].as_str().expect("an id");
    let closing = format!("{base}/v1/payments/{id}/attempts");
    let forced = json!({ "channel": "alipay", "method": "barcode", "channel_options": { "auth_code": CODE_PAYS }, "force_surplus": true });
    let headers = [("authorization", bearer.as_str()), ("idempotency-key", "K2"), ("content-type", "application/json")];
    client.send(http::Method::POST, &closing, &headers, forced.to_string()).await.expect(201);
    let mut delivery = String::new();
    for _ in 0..200 {
        let page = client
            .send(http::Method::GET, &format!("{base}/v1/events"), &[("authorization", bearer.as_str())], "")
            .await
            .expect(200)
            .json();
        delivery = page["data"][0]["delivery"].as_str().unwrap_or_default().to_owned();
        let metrics = client.send(http::Method::GET, &format!("{base}/metrics"), &[], "").await.text();
        if metrics.contains("payonce_worker_rows_total{worker=\"publish\",result=\"again\"}") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    assert_eq!(delivery, "waiting");
    assert!(inside.got().is_empty(), "nothing was sent inside");
    assert!(running.shutdown().await);
}
