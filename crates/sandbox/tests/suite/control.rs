//! The control calls' own manners.

use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_wrong_call_names_the_field_the_rule_and_the_way_out() {
    let world = World::new().await;
    let cases = [
        ("POST", "/_sandbox/faults", json!({ "channel": "alipay", "operation": "charge", "fault": "no_such" }), 400, Some("fault")),
        ("POST", "/_sandbox/faults", json!({ "channel": "alipay", "fault": "empty" }), 400, Some("operation")),
        ("POST", "/_sandbox/faults", json!({ "channel": "nobody", "operation": "charge", "fault": "empty" }), 404, Some("channel")),
        ("POST", "/_sandbox/faults", json!({ "operation": "charge", "fault": "empty" }), 400, Some("channel")),
        ("POST", "/_sandbox/faults", json!({ "channel": "alipay", "operation": "charge", "fault": "delay" }), 400, Some("delay_ms")),
        (
            "POST",
            "/_sandbox/faults",
            json!({ "channel": "alipay", "operation": "charge", "fault": "empty", "times": 0 }),
            400,
            Some("times"),
        ),
        (
            "POST",
            "/_sandbox/faults",
            json!({ "channel": "alipay", "operation": "charge", "fault": "empty", "timse": 1 }),
            400,
            Some("timse"),
        ),
        ("POST", "/_sandbox/buyer", json!({ "channel": "alipay", "channel_ref": "x", "action": "steal" }), 400, Some("action")),
        ("POST", "/_sandbox/buyer", json!({ "channel": "alipay", "channel_ref": "x", "action": "pay" }), 404, Some("channel_ref")),
        ("POST", "/_sandbox/notifications", json!({ "channel": "alipay", "mode": "forge" }), 400, Some("channel_ref")),
        ("POST", "/_sandbox/notifications", json!({ "channel": "alipay", "channel_ref": "x", "mode": "repeat" }), 409, Some("channel_ref")),
        ("POST", "/_sandbox/clock", json!({ "advance_s": -1 }), 400, Some("advance_s")),
        ("POST", "/_sandbox/clock", json!([1]), 400, None),
        ("POST", "/_sandbox/google", json!({ "account": "google", "call": "capture" }), 501, None),
        ("GET", "/_sandbox/ledger?channel=nobody", json!({}), 404, Some("channel")),
        ("GET", "/_sandbox/ledger?chanel=alipay", json!({}), 400, Some("chanel")),
        ("PUT", "/_sandbox/ledger", json!({}), 405, None),
        ("GET", "/_sandbox/nothing", json!({}), 404, None),
        ("GET", "/nobody/v1", json!({}), 404, None),
    ];
    for (method, path, body, status, field) in cases {
        let raw = world.http(method, path, "application/json", body.to_string()).await.expect("an answer");
        let problem = raw.json();
        assert_eq!(
            (raw.status, problem["status"].as_u64(), problem["field"].as_str()),
            (status, Some(u64::from(status)), field),
            "{path} {body}: {problem}"
        );
        assert_eq!(raw.headers["content-type"], "application/problem+json");
        for member in ["title", "rule", "hint", "detail"] {
            assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "{path}: {member}");
        }
    }
}

#[tokio::test]
async fn accounts_show_two_merchants_with_both_sides_keys() {
    let world = World::new().await;
    let shown = world.get("/_sandbox/accounts").await.json();
    for (name, tenant) in [("alipay", 1), ("alipay_2", 2)] {
        let account = &shown[name];
        assert_eq!((account["channel"].as_str(), account["tenant"].as_u64()), (Some("alipay"), Some(tenant)));
        assert_eq!(account["settings"]["gateway_url"], format!("{}/alipay/gateway.do", world.base));
        // The product's own adapter takes the settings as they are.
        let adapter = payonce_channels::registry::adapter("alipay").expect("an adapter");
        adapter.account(&account["settings"]).unwrap_or_else(|why| panic!("{name}: {why}"));
    }
    for key in ["app_id", "seller_id", "private_key", "alipay_public_key"] {
        assert_ne!(shown["alipay"]["settings"][key], shown["alipay_2"]["settings"][key], "{key}");
    }
}

#[tokio::test]
async fn what_arrived_is_listed_in_order_with_what_became_of_it() {
    let world = World::new().await;
    world.precreate("A1", None).await;
    world.call("alipay.trade.query", json!({ "out_trade_no": "A1" })).await;
    world.post_form("app_id=x".to_owned()).await.expect("an answer");
    let list = world.get("/_sandbox/requests?channel=alipay").await.json();
    let seen: Vec<_> = list
        .as_array()
        .expect("a list")
        .iter()
        .map(|a| (a["number"].as_u64(), a["operation"].as_str(), a["account"].as_str(), a["executed"].as_bool()))
        .collect();
    assert_eq!(
        seen,
        [
            (Some(1), Some("charge"), Some("alipay"), Some(true)),
            (Some(2), Some("query"), Some("alipay"), Some(true)),
            (Some(3), None, None, Some(false)),
        ]
    );
    assert_eq!(list[0]["content"]["biz"]["out_trade_no"], "A1");
    assert!(list[0]["body"].as_str().is_some_and(|body| body.contains("sign=")));
}

#[tokio::test]
async fn a_reset_forgets_everything_and_goes_on() {
    let world = World::new().await;
    world.paid("A1", None).await;
    world.fault("charge", "empty").await;
    world.advance(1000).await;
    world.control("reset", json!({})).await;
    assert_eq!(world.get("/_sandbox/ledger").await.json(), json!([]));
    assert_eq!(world.get("/_sandbox/faults").await.json(), json!([]));
    assert_eq!(world.get("/_sandbox/requests").await.json(), json!([]));
    assert_eq!(world.get("/_sandbox").await.json()["now"], "2026-12-01T13:45:36Z");
    world.paid("A1", None).await;
    assert_eq!(world.booked("A1", "charge").await.0, 1);
}

#[tokio::test]
async fn it_stops_when_it_is_told_to_and_the_port_is_free_again() {
    let world = World::new().await;
    let addr = world.running.addr();
    world.running.shutdown().await;
    tokio::net::TcpListener::bind(addr).await.expect("free");
}
