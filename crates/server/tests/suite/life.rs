//! Start, restart, and the end: nothing is lost and nothing runs twice.

use http::Method;
use payonce_server::App;
use payonce_server::config::{Config, Environment, Options};
use serde_json::json;

use crate::client::Client;
use crate::place::{CODE_PAYS, Dir, KEY, Place, barcode, serve};

#[tokio::test(flavor = "multi_thread")]
async fn b012_b041_a_restart_forgets_nothing() {
    let dir = Dir::new();
    let client = Client::new();
    let bearer = format!("Bearer {KEY}");
    let headers = [("authorization", bearer.as_str()), ("idempotency-key", "K1"), ("content-type", "application/json")];
    let mut bodies = Vec::new();
    for _ in 0..3 {
        let running = serve(dir.database(), &[]).await;
        let url = format!("http://{}/v1/payments", running.addr);
        let reply = client.send(Method::POST, &url, &headers, barcode("O1", 100, CODE_PAYS).to_string()).await.expect(201);
        bodies.push(reply.body.clone());
        client.send(Method::POST, &url, &headers, barcode("O1", 101, CODE_PAYS).to_string()).await.expect(422);
        assert!(running.shutdown().await);
    }
    assert!(bodies.iter().all(|body| *body == bodies[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn b039_what_runs_at_the_end_is_finished_and_new_requests_are_refused_unclaimed() {
    let mut place = Place::start().await;
    place.fault("charge", "delay_response", 10, Some(800)).await;
    let running = place.running.take().expect("running");
    let orders: Vec<_> = (0..10).map(|n| (place.key(), barcode(&format!("O{n}"), 100, CODE_PAYS))).collect();
    let paying = futures_util::future::join_all(orders.iter().map(|(key, body)| place.post("/v1/payments", key, body)));
    let late = barcode("late", 100, CODE_PAYS);
    let ending = async {
        place.until_requests(10).await;
        let ended = tokio::spawn(running.shutdown());
        // The flag is set at once; the answer may still race with it.
        let mut refused = place.post("/v1/payments", "late", &late).await;
        for _ in 0..20 {
            if refused.status == 503 {
                break;
            }
            refused = place.post("/v1/payments", "late-2", &late).await;
        }
        let ready = place.client.send(Method::GET, &format!("{}/readyz", place.base), &[], "").await;
        (refused, ready, ended.await.expect("ended"))
    };
    let (paid, (refused, ready, all_ended)) = tokio::join!(paying, ending);
    assert_eq!((refused.status, refused.code().as_str(), refused.header("retry-after")), (503, "shutting_down", Some("1")));
    assert_eq!((refused.json()["money_moved"].as_str(), refused.json()["retry"].as_str()), (Some("no"), Some("safe")));
    assert_eq!(ready.status, 503);
    assert!(all_ended);
    assert!(paid.iter().all(|reply| reply.status == 201), "{:?}", paid.iter().map(|reply| reply.status).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn b038_a_caller_that_hangs_up_stops_nothing() {
    let place = Place::start().await;
    place.fault("charge", "delay_response", 1, Some(500)).await;
    let body = barcode("O1", 100, CODE_PAYS);
    {
        let hung = place.post("/v1/payments", "K1", &body);
        tokio::pin!(hung);
        tokio::select! {
            _ = &mut hung => panic!("answered too early"),
            () = place.until_requests(1) => {}
        }
    }
    let made = loop {
        let page = place.get("/v1/payments?order_id=O1").await.expect(200).json();
        if page["data"][0]["status"] == "paid" {
            break page["data"][0].clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    };
    let mut again = place.post("/v1/payments", "K1", &body).await;
    while again.status == 409 {
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        again = place.post("/v1/payments", "K1", &body).await;
    }
    assert_eq!((again.status, again.is_replay(), again.json()["id"].clone()), (201, true, made["id"].clone()));
    assert_eq!(place.executed("charge").await, (1, 100));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_file_of_another_database_is_found_out_at_the_start() {
    let dir = Dir::new();
    assert!(serve(dir.database(), &[]).await.shutdown().await);
    let other = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    let options = Options { listen: Some("127.0.0.1:0".to_owned()), database: Some(dir.database()), sandbox: true, ..Options::default() };
    let config = Config::load(&options, &Environment::of([("PAYONCE_SECRETS_KEY", other)])).expect("a configuration");
    let fault = App::build(config).await.expect_err("refused");
    assert!(fault.to_string().contains("not in the key file"), "{fault}");
    assert!(fault.hint().is_some());
    // With the old key behind the new one, everything opens.
    let old = std::fs::read_to_string(dir.path("payonce.db.key")).expect("a key file");
    let both = format!("{other},{}", old.trim());
    assert!(serve(dir.database(), &[("PAYONCE_SECRETS_KEY", &both)]).await.shutdown().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_is_refused_at_once() {
    let dir = Dir::new();
    let options = Options { listen: Some("127.0.0.1:0".to_owned()), database: Some(dir.database()), ..Options::default() };
    let app = App::build(Config::load(&options, &Environment::default()).expect("a configuration")).await.expect("built");
    let tenant = payonce_core::id::TenantId::parse("shop").expect("a tenant");
    let (row, key) = app.create_api_key(&tenant, "test").await.expect("made");
    let (store, clock) = (app.store(), app.clock());
    let running = app.serve().await.expect("served");
    let (url, bearer) = (format!("http://{}/v1/payments", running.addr), format!("Bearer {}", key.expose()));
    let client = Client::new();
    client.send(Method::GET, &url, &[("authorization", &bearer)], "").await.expect(200);
    assert!(store.revoke_api_key(&row.id, clock.now()).await.expect("asked"));
    assert_eq!(client.send(Method::GET, &url, &[("authorization", &bearer)], "").await.expect(401).code(), "api_key_invalid");
    // No account, no secret: both are said before anything is claimed.
    let (_, other) = {
        let row = payonce_core::ports::directory::ApiKey {
            id: payonce_core::id::ApiKeyId::parse("key_00000000000000000000000000000001").expect("an id"),
            hash: payonce_core::secret::sha256(b"pk_other"),
            ..row
        };
        store.put_api_key(&row).await.expect("stored");
        (row, "Bearer pk_other")
    };
    let headers = [("authorization", other), ("idempotency-key", "K1"), ("content-type", "application/json")];
    let reply = client
        .send(Method::POST, &url, &headers, json!({ "order_id": "O1", "amount": 1, "currency": "CNY", "channel": "alipay" }).to_string())
        .await
        .expect(400);
    assert!(reply.json()["detail"].as_str().is_some_and(|detail| detail.contains("payonce account add")), "{}", reply.text());
    assert!(running.shutdown().await);
}
