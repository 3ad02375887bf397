//! Deliveries: at once, again by the schedule, held, lost, spoilt, early.

use serde_json::json;

use crate::receiver::Receiver;
use crate::world::{World, barcode, order, read_answer};

const CODE: &str = "28763443825664394";

#[tokio::test]
async fn b051_payment_and_refunds_are_told_with_the_running_total() {
    let mut shop = Receiver::start().await;
    let world = World::new().await;
    world.paid("A1", Some(&shop.url)).await;
    let paid = shop.next().await;
    assert!(paid.is_authentic(&world.account.channel_key));
    for (name, value) in [
        ("notify_type", "trade_status_sync"),
        ("trade_status", "TRADE_SUCCESS"),
        ("out_trade_no", "A1"),
        ("total_amount", "88.80"),
        ("seller_id", "2088100100000001"),
        ("gmt_payment", "2026-12-01 21:45:36"),
        ("gmt_refund", ""),
        ("subject", "手机壳📱 \"50% off\" {}"),
    ] {
        assert_eq!(paid.text(name), value, "{name}");
    }
    for (request, amount, status, total) in [("r1", "30.00", "TRADE_SUCCESS", "30.00"), ("r2", "58.80", "TRADE_CLOSED", "88.80")] {
        world.call("alipay.trade.refund", json!({ "out_trade_no": "A1", "out_request_no": request, "refund_amount": amount })).await;
        let told = shop.next().await;
        assert!(told.is_authentic(&world.account.channel_key));
        assert_eq!(
            (told.text("trade_status").as_str(), told.text("refund_fee").as_str(), told.text("out_biz_no").as_str()),
            (status, total, request)
        );
        assert_eq!(told.text("trade_no"), paid.text("trade_no"));
        assert_ne!(told.text("notify_id"), paid.text("notify_id"));
    }
}

#[tokio::test]
async fn what_is_not_acknowledged_comes_again_eight_times_in_all_by_the_channels_clock() {
    let mut shop = Receiver::start().await;
    // Success only by exactly these seven bytes.
    shop.answer_with(&["SUCCESS", "success\n", "\"success\"", "fail", "", "ok", "{}", "fail"]);
    let world = World::new().await;
    world.paid("A1", Some(&shop.url)).await;
    let first = shop.next().await;
    for gap in [4 * 60, 10 * 60, 10 * 60, 3600, 2 * 3600, 6 * 3600, 15 * 3600] {
        assert!(world.advance(gap - 1).await["sent"].as_array().is_some_and(Vec::is_empty));
        assert_eq!(world.advance(1).await["sent"].as_array().map(Vec::len), Some(1));
        let again = shop.next().await;
        assert_eq!(again.text("notify_id"), first.text("notify_id"));
        assert!(again.text("notify_time") > first.text("notify_time") && again.is_authentic(&world.account.channel_key));
    }
    world.advance(10 * 24 * 3600).await;
    assert!(shop.nothing_came());
    let shown = world.get("/_sandbox/notifications?channel_ref=A1").await.json();
    assert_eq!(
        (&shown["notifications"][0]["standing"], shown["notifications"][0]["deliveries"].as_array().map(Vec::len)),
        (&json!("given_up"), Some(8))
    );
}

#[tokio::test]
async fn a_long_jump_passes_every_delivery_on_its_way_and_stops_when_it_is_acknowledged() {
    let mut shop = Receiver::start().await;
    shop.answer_with(&["fail", "fail", "fail"]);
    let world = World::new().await;
    world.paid("A1", Some(&shop.url)).await;
    shop.next().await;
    let sent = world.advance(26 * 3600).await["sent"].clone();
    let sent: Vec<_> = sent.as_array().expect("a list").iter().map(|done| done["acknowledged"].as_bool()).collect();
    assert_eq!(sent, [Some(false), Some(false), Some(true)]);
    let times = [shop.next().await, shop.next().await, shop.next().await].map(|came| came.text("notify_time"));
    assert_eq!(times, ["2026-12-01 21:49:36", "2026-12-01 21:59:36", "2026-12-01 22:09:36"]);
}

#[tokio::test]
async fn b050_held_and_lost_notifications_come_when_they_are_told_to() {
    let mut shop = Receiver::start().await;
    let world = World::new().await;
    world.mode(None, "hold").await;
    world.paid("A1", Some(&shop.url)).await;
    assert!(shop.nothing_came());
    let released = world.mode(Some("A1"), "release").await;
    assert_eq!(released["sent"][0]["acknowledged"], true);
    shop.next().await;

    world.mode(Some("A2"), "drop").await;
    world.mode(Some("A2"), "drop").await;
    world.paid("A2", Some(&shop.url)).await;
    world.advance(30 * 3600).await;
    assert!(shop.nothing_came());
    // Late, after all.
    assert_eq!(world.mode(Some("A2"), "deliver").await["sent"].as_array().map(Vec::len), Some(1));
    assert_eq!(shop.next().await.text("out_trade_no"), "A2");
    assert_eq!(world.mode(Some("A2"), "deliver").await["sent"].as_array().map(Vec::len), Some(0));
}

#[tokio::test]
async fn b046_a_notification_can_be_repeated_many_times_at_once() {
    let mut shop = Receiver::start().await;
    let world = World::new().await;
    world.paid("A1", Some(&shop.url)).await;
    let first = shop.next().await.text("notify_id");
    let sent = world.control("notifications", json!({ "channel": "alipay", "channel_ref": "A1", "mode": "repeat", "times": 50 })).await;
    assert_eq!(sent["sent"].as_array().map(Vec::len), Some(50));
    for _ in 0..50 {
        assert_eq!(shop.next().await.text("notify_id"), first);
    }
    assert_eq!(world.booked("A1", "charge").await.0, 1);
}

#[tokio::test]
async fn spoilt_notifications_do_not_verify_and_stale_ones_do() {
    let mut shop = Receiver::start().await;
    let world = World::new().await;
    world.precreate("A1", Some(&shop.url)).await;
    for mode in ["forge", "tamper"] {
        // Of an order that nobody has paid.
        world.mode(Some("A1"), mode).await;
        let came = shop.next().await;
        assert_eq!((came.text("out_trade_no"), came.text("trade_status")), ("A1".to_owned(), "TRADE_SUCCESS".to_owned()));
        assert_eq!(
            (came.is_authentic(&world.account.channel_key), came.text("total_amount") == "88.80"),
            (false, mode == "forge"),
            "{mode}"
        );
    }
    assert_eq!(world.booked("A1", "charge").await.0, 0);
    let unpaid = json!({ "channel": "alipay", "channel_ref": "A1", "mode": "stale" }).to_string();
    assert_eq!(world.http("POST", "/_sandbox/notifications", "application/json", unpaid).await.expect("an answer").status, 409);

    world.buyer("A1", "pay").await;
    let genuine = shop.next().await;
    world.mode(Some("A1"), "stale").await;
    let stale = shop.next().await;
    assert!(stale.is_authentic(&world.account.channel_key));
    assert_eq!((stale.text("notify_id"), stale.text("notify_time").as_str()), (genuine.text("notify_id"), "2026-11-29 21:45:36"));
}

#[tokio::test]
async fn notifications_can_overtake_each_other() {
    let mut shop = Receiver::start().await;
    let world = World::new().await;
    world.mode(Some("A1"), "reorder").await;
    world.paid("A1", Some(&shop.url)).await;
    assert!(shop.nothing_came());
    world.call("alipay.trade.refund", json!({ "out_trade_no": "A1", "out_request_no": "r1", "refund_amount": "1.00" })).await;
    let came = [shop.next().await, shop.next().await].map(|came| came.text("out_biz_no"));
    assert_eq!(came, ["r1", ""]);
    // And again, when everything is known.
    world.mode(Some("A1"), "reorder").await;
    let came = [shop.next().await, shop.next().await].map(|came| came.text("out_biz_no"));
    assert_eq!(came, ["r1", ""]);
}

#[tokio::test]
async fn b043_an_early_notification_is_delivered_before_the_request_is_answered() {
    let mut shop = Receiver::start().await;
    let world = World::new().await;
    world.mode(None, "early").await;
    for (number, method, biz) in [("A1", "alipay.trade.pay", barcode("A1", CODE)), ("A2", "alipay.trade.precreate", order("A2"))] {
        let raw = world.try_call(method, biz, Some(&shop.url)).await.expect("an answer");
        // It is there already: the answer came after it.
        assert!(!shop.nothing_came(), "{number}");
        assert_eq!(read_answer(&raw.body, &world.account.channel_key).0["code"], "10000");
        assert_eq!(world.booked(number, "charge").await.0, 1);
    }
    world.mode(None, "deliver").await;
    world.precreate("A3", Some(&shop.url)).await;
    assert_eq!(world.booked("A3", "charge").await.0, 0);
}

#[tokio::test]
async fn what_happens_at_the_console_is_told_and_booked() {
    let mut shop = Receiver::start().await;
    let world = World::new().await;
    world.paid("A1", Some(&shop.url)).await;
    shop.next().await;
    let body = json!({ "channel": "alipay", "channel_ref": "A1", "action": "refund_at_console", "amount": 1000 });
    assert_eq!(world.control("buyer", body).await["amount_refunded"], 1000);
    let told = shop.next().await;
    assert!(told.text("out_biz_no").starts_with("CONSOLE") && told.text("refund_fee") == "10.00");
    assert_eq!(world.buyer("A1", "dispute").await["status"], "TRADE_CLOSED");
    let told = shop.next().await;
    assert!(
        told.text("out_biz_no").starts_with("DISPUTE") && told.text("refund_fee") == "88.80" && told.text("trade_status") == "TRADE_CLOSED"
    );
    let rows = world.ledger("A1").await;
    let refunds: Vec<_> = rows
        .iter()
        .filter(|row| row["kind"] == "refund")
        .map(|row| (row["amount"].as_i64(), row["executed"].as_u64(), row["requests"].as_u64()))
        .collect();
    assert_eq!(refunds, [(Some(1000), Some(1), Some(0)), (Some(7880), Some(1), Some(0))]);
}

#[tokio::test]
async fn b092_no_notification_leaves_this_machine() {
    let world = World::new().await;
    for (number, url) in
        [("A1", "http://10.0.0.5/n"), ("A2", "http://169.254.169.254/latest"), ("A3", "https://127.0.0.1/n"), ("A4", "file:///etc/passwd")]
    {
        world.paid(number, Some(url)).await;
        let sent = world.mode(Some(number), "deliver").await;
        let error = sent["sent"][0]["error"].as_str().unwrap_or_default().to_owned();
        assert!(error.starts_with("refused"), "{url}: {error}");
    }
}
