//! The way in: who, how large, in which form.

use http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::callbacks::Shop;
use crate::place::{CODE_PAYS, KEY, KEY_2, Place, barcode, qr};

#[tokio::test(flavor = "multi_thread")]
async fn without_a_valid_key_nothing_is_answered() {
    let place = Place::start().await;
    let url = format!("{}/v1/payments", place.base);
    let none = place.client.send(Method::GET, &url, &[], "").await.expect(401);
    assert_eq!((none.code().as_str(), none.header("www-authenticate").is_some()), ("authentication_required", true));
    for value in ["Bearer", "Bearer ", "Basic cGs6", "pk_test_first", "Bearer pk_test_first2"] {
        place.client.send(Method::GET, &url, &[("authorization", value)], "").await.expect(401);
        let headers = [("authorization", value), ("idempotency-key", "K1"), ("content-type", "application/json")];
        place.client.send(Method::POST, &url, &headers, qr("O1", 100).to_string()).await.expect(401);
    }
    let two = [("authorization", "Bearer pk_test_first"), ("authorization", "Bearer pk_test_second")];
    place.client.send(Method::GET, &url, &two, "").await.expect(401);
    place.client.send(Method::GET, &url, &[("authorization", "bearer pk_test_first")], "").await.expect(200);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_held_to_its_rules_and_each_refusal_names_the_field() {
    let place = Place::start().await;
    let with = |name: &str, value: Value| {
        let mut body = qr("O1", 100);
        body[name] = value;
        body
    };
    let long = "x".repeat(65);
    for (body, field) in [
        (with("order_id", json!("")), "order_id"),
        (with("order_id", json!(long)), "order_id"),
        (with("order_id", json!("a\nb")), "order_id"),
        (with("order_id", json!(5)), "order_id"),
        (with("amount", json!("100")), "amount"),
        (with("amount", json!(1.0)), "amount"),
        (with("amount", json!(1_000_000_000_000_001_i64)), "amount"),
        (with("currency", json!("USD")), "currency"),
        (with("currency", json!("XXX")), "currency"),
        (with("channel", json!("google")), "channel"),
        (with("channel", json!("nobody")), "channel"),
        (with("method", json!("telepathy")), "method"),
        (with("account", json!("other")), "account"),
        (with("session", json!("S1")), "session"),
        (with("return_url", json!("not a url")), "return_url"),
        (with("expires_at", json!("tomorrow")), "expires_at"),
        (with("expires_at", json!("2020-01-01T00:00:00Z")), "expires_at"),
        (with("metadata", json!({ "a": 1 })), "metadata"),
        (with("channel_options", json!([])), "channel_options"),
        (with("channel_options", json!({ "auth_code": CODE_PAYS })), "channel_options.auth_code"),
        (with("capture", json!("manual")), "capture"),
        (with("capture", json!("later")), "capture"),
        (with("description", json!("a\u{0}b")), "description"),
    ] {
        let reply = place.post("/v1/payments", "K1", &body).await.expect(400);
        assert!(!reply.code().is_empty());
        assert_eq!(
            (reply.json()["field"].as_str(), reply.json()["money_moved"].as_str(), reply.json()["retry"].as_str()),
            (Some(field), Some("no"), Some("never")),
            "{body}"
        );
    }
    for missing in ["order_id", "amount", "currency", "channel"] {
        let reply = place.post("/v1/payments", "K1", &with(missing, Value::Null)).await.expect(400);
        assert_eq!((reply.code().as_str(), reply.json()["field"].as_str()), ("parameter_missing", Some(missing)));
    }
    for raw in ["", "[]", "null", "{", "{\"amount\":01}", "{}{}", "\u{feff}{}"] {
        place.post_raw("/v1/payments", "K1", raw.to_owned()).await.expect(400);
    }
    assert!(place.requests().await.is_empty());
    place.post("/v1/payments", "K1", &qr("O1", 100)).await.expect(201);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b085_b088_b087_amounts_sessions_and_verbs_that_must_not_move_money() {
    let place = Place::start().await;
    let paid = place.paid("P1", 500).await;
    let before = place.requests().await.len();
    let id = paid["id"].as_str().expect("an id");
    for amount in ["-1", "0", "-9223372036854775808", "1.0", "1e2", "0.5", "99999999999999999999"] {
        let pay = format!("{{\"order_id\":\"O1\",\"amount\":{amount},\"currency\":\"CNY\",\"channel\":\"alipay\",\"method\":\"qr\"}}");
        let refund = format!("{{\"refund_id\":\"r1\",\"amount\":{amount}}}");
        let capture = format!("{{\"amount\":{amount}}}");
        for (path, body) in [
            ("/v1/payments".to_owned(), pay),
            (format!("/v1/payments/{id}/refunds"), refund),
            (format!("/v1/payments/{id}/capture"), capture.clone()),
            (format!("/v1/payments/{id}/attempts"), capture),
        ] {
            let reply = place.post_raw(&path, "K1", body).await.expect(400);
            assert_eq!((reply.code().as_str(), reply.json()["field"].as_str()), ("parameter_invalid", Some("amount")), "{path} {amount}");
        }
    }
    assert_eq!(place.post("/v1/payouts", "K1", &json!({})).await.expect(400).code(), "payouts_not_supported");
    assert_eq!(place.get("/v1/payouts/x").await.expect(404).code(), "payout_not_found");
    let captured = place.post(&format!("/v1/payments/{id}/capture"), "K1", &json!({ "amount": 500 })).await.expect(409);
    assert_eq!((captured.code().as_str(), captured.json()["money_moved"].as_str()), ("capture_not_supported", Some("no")));
    assert_eq!(place.requests().await.len(), before, "nothing was sent");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b090_bodies_up_to_the_limit_work_and_longer_ones_are_refused_unclaimed() {
    let place = Place::start().await;
    let limit = 64 * 1024;
    let padded = |length: usize| {
        let body = qr("O1", 100).to_string();
        format!("{body}{}", " ".repeat(length - body.len()))
    };
    for length in [limit + 1, limit * 2, 4 * 1024 * 1024] {
        let reply = place.post_raw("/v1/payments", "K1", padded(length)).await.expect(413);
        assert_eq!((reply.code().as_str(), reply.json()["money_moved"].as_str()), ("body_too_large", Some("no")));
    }
    let deep = format!("{{\"metadata\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(place.post_raw("/v1/payments", "K1", deep).await.expect(400).code(), "json_too_deep");
    let many: String = (0..6000).map(|n| format!("\"m{n}\":1,")).collect();
    place.post_raw("/v1/payments", "K1", format!("{{{many}\"z\":1}}")).await.expect(400);
    for length in [limit - 1, limit] {
        place.post_raw("/v1/payments", &format!("K-{length}"), padded(length)).await;
    }
    assert!(place.post_raw("/v1/payments", &format!("K-{limit}"), padded(limit)).await.is_replay());
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b090_an_endless_body_and_one_that_is_only_announced_are_refused() {
    let place = Place::start().await;
    let address = place.base.trim_start_matches("http://").to_owned();
    let head = format!(
        "POST /v1/payments HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\nidempotency-key: K1\r\ncontent-type: application/json\r\n"
    );
    // A gigabyte is announced, and "100 Continue" waited for: it is refused without a byte of it.
    let mut stream = TcpStream::connect(&address).await.expect("connected");
    stream.write_all(format!("{head}content-length: 1073741824\r\nexpect: 100-continue\r\n\r\n").as_bytes()).await.expect("written");
    assert_eq!(status_line(&mut stream).await, "HTTP/1.1 413 Payload Too Large");
    let mut stream = TcpStream::connect(&address).await.expect("connected");
    stream.write_all(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes()).await.expect("written");
    let (mut read, mut write) = stream.split();
    let chunk = format!("4000\r\n{}\r\n", " ".repeat(0x4000));
    let writing = async {
        // Until the other side has had enough.
        while write.write_all(chunk.as_bytes()).await.is_ok() {}
    };
    let mut answer = vec![0; 12];
    let ((), got) = tokio::join!(writing, read.read_exact(&mut answer));
    got.expect("the answer is there although the sender did not stop");
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 413");
    // A body that breaks off, or never comes, claims nothing.
    let mut stream = TcpStream::connect(&address).await.expect("connected");
    stream.write_all(format!("{head}content-length: 500\r\n\r\n{{\"order_id\"").as_bytes()).await.expect("written");
    drop(stream);
    place.post("/v1/payments", "K1", &qr("O1", 100)).await.expect(201);
    place.stop().await;
}

async fn status_line(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).await.expect("a byte");
        read.push(byte[0]);
    }
    String::from_utf8_lossy(&read).trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_body_is_given_up() {
    let place = Place::with(&[("PAYONCE_HTTP_BODY_TIMEOUT", "200ms")]).await;
    let mut stream = TcpStream::connect(place.base.trim_start_matches("http://")).await.expect("connected");
    let head = format!("POST /v1/payments HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-length: 500\r\n\r\n{{");
    stream.write_all(head.as_bytes()).await.expect("written");
    assert_eq!(status_line(&mut stream).await, "HTTP/1.1 408 Request Timeout");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_methods_and_types_that_are_not_served_are_problems_too() {
    let place = Place::start().await;
    let lost = place.get("/v2/payments").await.expect(404);
    assert_eq!(
        (lost.code().as_str(), &lost.json()["money_moved"], &lost.json()["retry"]),
        ("route_not_found", &json!("no"), &json!("never"))
    );
    assert_eq!(place.get("/").await.expect(307).header("location"), Some("/docs"));
    assert!(place.get("/docs/errors").await.expect(200).text().contains("/docs/errors/route_not_found"));
    assert_eq!(place.get("/v1/payments/nonsense").await.expect(404).code(), "payment_not_found");
    let bearer = format!("Bearer {KEY}");
    let wrong =
        place.client.send(Method::DELETE, &format!("{}/v1/payments", place.base), &[("authorization", &bearer)], "").await.expect(405);
    assert_eq!((wrong.code().as_str(), wrong.header("allow").map(|allow| allow.contains("POST"))), ("method_not_allowed", Some(true)));
    assert_eq!((&wrong.json()["money_moved"], &wrong.json()["retry"]), (&json!("no"), &json!("never")));
    let headers = [("authorization", bearer.as_str()), ("idempotency-key", "K1"), ("content-type", "application/x-www-form-urlencoded")];
    let form = place.client.send(Method::POST, &format!("{}/v1/payments", place.base), &headers, "order_id=O1").await.expect(415);
    assert_eq!(form.code(), "content_type_not_supported");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b091_nothing_secret_stands_in_the_clear_in_the_database() {
    let shop = Shop::open(&[]).await;
    let allowed = shop.addr.to_string();
    let place = Place::with(&[("PAYONCE_MERCHANT_ALLOW_HOSTS", &allowed)]).await;
    let made = place.post("/v1/payments", "K1", &qr("O1", 4200)).await.expect(201).json();
    let code_url = made["attempt"]["action"]["code_url"].as_str().expect("an address").to_owned();
    // Merchants write into free texts what should not be there.
    let mut careless = barcode("O2", 100, CODE_PAYS);
    careless["description"] = json!("card 4111111111111111");
    careless["return_url"] = json!("https://shop.example/back?token=sk_live_x");
    careless["notify_url"] = json!(format!("{}&card=4111111111111111", shop.url()));
    careless["metadata"] = json!({ "cvv": "737", "card": "4111111111111111", "auth": "Bearer sk_live_x" });
    let careless = place.post("/v1/payments", "K2", &careless).await.expect(201).json();
    let refunds = format!("/v1/payments/{}/refunds", careless["id"].as_str().expect("an id"));
    let reason = json!({ "refund_id": "r1", "amount": 40, "reason": "Bearer sk_live_x 4111111111111111" });
    place.post(&refunds, "K3", &reason).await.expect(201);
    place.buyer(&made, "pay").await;
    place.until_status(&made["id"], "paid").await;
    // Their owner sees them everywhere.
    let told = shop.until(2).await;
    assert_eq!(told[0].json()["data"]["payment"]["metadata"]["auth"], "Bearer sk_live_x");
    assert_eq!(told[1].json()["data"]["refund"]["reason"], reason["reason"]);
    let shown = place.payment(&careless["id"]).await;
    assert_eq!((&shown["metadata"]["cvv"], &shown["metadata"]["card"]), (&json!("737"), &json!("4111111111111111")));
    assert_eq!(shown["description"], "card 4111111111111111");
    assert_eq!(place.get(&refunds).await.expect(200).json()["data"][0]["reason"], reason["reason"]);
    let listed = place.get("/v1/payments?order_id=O2").await.expect(200).json();
    assert_eq!(listed["data"][0]["metadata"], shown["metadata"]);
    assert!(place.events(3).await.iter().any(|event| event["data"]["payment"]["metadata"] == shown["metadata"]));
    let dir = place.dir.path("payonce.db");
    let mut whole = Vec::new();
    for end in ["", "-wal"] {
        whole.extend(std::fs::read(format!("{}{end}", dir.display())).unwrap_or_default());
    }
    let key_file = std::fs::read_to_string(place.dir.path("payonce.db.key")).expect("a key file");
    assert!(whole.len() > 10_000);
    let holds = |text: &str| whole.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("O1") && holds("O2") && holds("r1"), "the merchant's numbers are there, so the search works");
    let careless = ["4111111111111111", "\"737\"", "cvv", "Bearer sk_live_x", "sk_live_x", "shop.example", &allowed];
    for secret in [code_url.as_str(), CODE_PAYS, KEY, KEY_2, key_file.trim(), "PRIVATE KEY", "MIIEv"].into_iter().chain(careless) {
        assert!(!holds(secret), "{secret} stands in the database");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(place.dir.path("payonce.db.key")).expect("a key file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_beside_the_api_answer_and_load_nothing_from_elsewhere() {
    let place = Place::start().await;
    place.paid("P1", 500).await;
    let open = |path: &'static str| place.client.send(Method::GET, Box::leak(format!("{}{path}", place.base).into_boxed_str()), &[], "");
    assert_eq!(open("/healthz").await.expect(200).text(), "ok\n");
    assert_eq!(open("/readyz").await.expect(200).text(), "ready\n");
    let metrics = open("/metrics").await.expect(200).text();
    for name in [
        "payonce_http_requests_total",
        "payonce_guard_replies_total{kind=\"fresh\"} 1",
        "payonce_guard_endings_total{fate=\"kept\"} 1",
        "payonce_channel_call_seconds",
    ] {
        assert!(metrics.contains(name), "{name} in {metrics}");
    }
    assert_eq!(open("/openapi.json").await.expect(200).json()["openapi"], "3.1.0");
    let docs = open("/docs").await.expect(200).text();
    assert!(docs.contains("/v1/payments/{id}/refunds") && !docs.contains("src=") && !docs.contains("://"), "self-contained");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_of_the_openapi_document_is_served_and_every_error_it_gives_has_a_page() {
    let place = Place::start().await;
    let document = place.client.send(Method::GET, &format!("{}/openapi.json", place.base), &[], "").await.expect(200).json();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for method in operations.as_object().expect("operations").keys() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
            let url = format!("{}{}", place.base, path.replace("{id}", "x"));
            let reply = place.client.send(method.clone(), &url, &[], "").await;
            assert_eq!((reply.status, reply.code().as_str()), (401, "authentication_required"), "{method} {path}");
        }
    }
    for code in [
        "authentication_required",
        "order_open",
        "payment_declined",
        "idempotency_key_reused",
        "refund_exceeds_payment",
        "store_unavailable",
    ] {
        let page = place.client.send(Method::GET, &format!("{}/docs/errors/{code}", place.base), &[], "").await.expect(200);
        assert!(page.text().contains(&format!("<h1><code>{code}</code></h1>")), "{}", page.text());
    }
    place.client.send(Method::GET, &format!("{}/docs/errors/nonsense", place.base), &[], "").await.expect(404);
    place.stop().await;
}
