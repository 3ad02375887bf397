//! Alipay's rules on numbers, states, refunds and time.

use serde_json::{Value, json};

use crate::receiver::Receiver;
use crate::world::{World, barcode, order};

const PRECREATE: &str = "alipay.trade.precreate";
const QUERY: &str = "alipay.trade.query";
const CLOSE: &str = "alipay.trade.close";
const REFUND: &str = "alipay.trade.refund";

fn number(number: &str) -> Value {
    json!({ "out_trade_no": number })
}

fn code_of(node: &Value) -> String {
    node["sub_code"].as_str().or(node["code"].as_str()).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_qr_code_is_no_trade_until_it_is_scanned_and_can_be_paid_all_the_same() {
    let world = World::new().await;
    world.precreate("A1", None).await;
    for method in [QUERY, CLOSE] {
        assert_eq!(code_of(&world.call(method, number("A1")).await), "ACQ.TRADE_NOT_EXIST", "{method}");
    }
    assert_eq!(world.booked("A1", "charge").await, (0, 1, Some(8880)));
    world.buyer("A1", "pay").await;
    let node = world.call(QUERY, number("A1")).await;
    assert_eq!((node["trade_status"].as_str(), node["total_amount"].as_str()), (Some("TRADE_SUCCESS"), Some("88.80")));
    assert_eq!(world.booked("A1", "charge").await, (1, 1, Some(8880)));
    // By Alipay's own number as well.
    assert_eq!(world.call(QUERY, json!({ "trade_no": node["trade_no"] })).await["out_trade_no"], "A1");
}

#[tokio::test]
async fn the_same_number_again_is_judged_by_state_and_parameters() {
    let world = World::new().await;
    let changed = |number: &str| json!({ "out_trade_no": number, "total_amount": "88.81", "subject": "手机壳📱 \"50% off\" {}" });

    // Offered, waiting, paid, closed: the same and changed parameters.
    for (number, state) in [("N1", "offered"), ("N2", "waiting"), ("N3", "paid"), ("N4", "closed")] {
        world.precreate(number, None).await;
        match state {
            "waiting" => drop(world.buyer(number, "abandon").await),
            "paid" => drop(world.buyer(number, "pay").await),
            "closed" => {
                world.buyer(number, "abandon").await;
                assert_eq!(code_of(&world.call(CLOSE, json!({ "out_trade_no": number })).await), "10000");
            }
            _ => {}
        }
        let (same, other) = match state {
            "paid" => ("ACQ.TRADE_HAS_SUCCESS", "ACQ.TRADE_HAS_SUCCESS"),
            "closed" => ("ACQ.TRADE_HAS_CLOSE", "ACQ.TRADE_HAS_CLOSE"),
            _ => ("10000", "ACQ.CONTEXT_INCONSISTENT"),
        };
        assert_eq!(code_of(&world.call(PRECREATE, order(number)).await), same, "{state}");
        assert_eq!(code_of(&world.call(PRECREATE, changed(number)).await), other, "{state}");
    }
    // The amount is compared as a number.
    let mut written = order("N1");
    written["total_amount"] = json!("88.8");
    assert_eq!(code_of(&world.call(PRECREATE, written).await), "10000");
    // Whatever was sent, each was charged at most once.
    for (number, charges) in [("N1", 0), ("N2", 0), ("N3", 1), ("N4", 0)] {
        assert_eq!(world.booked(number, "charge").await.0, charges, "{number}");
    }
}

#[tokio::test]
async fn a_waiting_trade_is_bound_to_its_buyer() {
    let world = World::new().await;
    let create = |buyer: &str| {
        let mut biz = order("B1");
        biz["buyer_id"] = json!(buyer);
        biz
    };
    let first = world.call("alipay.trade.create", create("2088000000000001")).await;
    let again = world.call("alipay.trade.create", create("2088000000000001")).await;
    assert_eq!((&first["code"], &first["trade_no"]), (&again["code"], &again["trade_no"]));
    assert_eq!(code_of(&world.call("alipay.trade.create", create("2088000000000002")).await), "ACQ.TRADE_BUYER_NOT_MATCH");
    assert_eq!(code_of(&world.call("alipay.trade.create", order("B2")).await), "ACQ.INVALID_PARAMETER");
}

#[tokio::test]
async fn payment_codes_choose_how_a_barcode_payment_ends() {
    let world = World::new().await;
    let cases = [
        ("28763443825664394", "10000", 1, Some("TRADE_SUCCESS")),
        ("2800010000000000001234", "10003", 0, Some("WAIT_BUYER_PAY")),
        ("2800020000000000001234", "ACQ.BUYER_BALANCE_NOT_ENOUGH", 0, None),
        ("2800030000000000001234", "ACQ.PAYMENT_AUTH_CODE_INVALID", 0, None),
        ("2800040000000000001234", "isp.unknow-error", 1, Some("TRADE_SUCCESS")),
        ("2800050000000000001234", "isp.unknow-error", 0, None),
        ("2800060000000000001234", "ACQ.SYSTEM_ERROR", 1, Some("TRADE_SUCCESS")),
        ("2800070000000000001234", "ACQ.PAYMENT_REQUEST_HAS_RISK", 0, None),
        ("2800080000000000001234", "10003", 0, Some("TRADE_SUCCESS")),
        ("99763443825664394", "ACQ.PAYMENT_AUTH_CODE_INVALID", 0, None),
    ];
    for (at, (auth_code, answer, charges, then)) in cases.into_iter().enumerate() {
        let reference = format!("P{at}");
        assert_eq!(code_of(&world.call("alipay.trade.pay", barcode(&reference, auth_code)).await), answer, "{auth_code}");
        assert_eq!(world.booked(&reference, "charge").await.0, charges, "{auth_code}");
        let seen = world.call(QUERY, number(&reference)).await;
        assert_eq!(seen["trade_status"].as_str(), then, "{auth_code}");
    }
}

#[tokio::test]
async fn a_trade_that_was_declined_may_still_be_paid() {
    let world = World::new().await;
    for reference in ["O1", "O2"] {
        let declined = world.call("alipay.trade.pay", barcode(reference, "2800090000000000001234")).await;
        assert_eq!(code_of(&declined), "ACQ.BUYER_BALANCE_NOT_ENOUGH");
        assert_eq!(world.call(QUERY, number(reference)).await["trade_status"], "WAIT_BUYER_PAY");
    }
    // By a new code of the same buyer under the same number, or by the buyer alone.
    assert_eq!(code_of(&world.call("alipay.trade.pay", barcode("O1", "28763443825661234")).await), "10000");
    world.buyer("O2", "pay").await;
    assert_eq!((world.booked("O1", "charge").await, world.booked("O2", "charge").await.0), ((1, 2, Some(8880)), 1));
}

#[tokio::test]
async fn a_password_is_waited_for_then_paid_or_declined() {
    let world = World::new().await;
    for (reference, action, status) in [("W1", "pay", "TRADE_SUCCESS"), ("W2", "decline", "TRADE_CLOSED")] {
        let pay = || world.call("alipay.trade.pay", barcode(reference, "2800010000000000001234"));
        assert_eq!(code_of(&pay().await), "10003");
        // Also on a repeat with the same number; not with another buyer's code.
        assert_eq!(code_of(&pay().await), "10003");
        let other = world.call("alipay.trade.pay", barcode(reference, "2800010000000000009999")).await;
        assert_eq!(code_of(&other), "ACQ.TRADE_BUYER_NOT_MATCH");
        world.buyer(reference, action).await;
        assert_eq!(world.call(QUERY, number(reference)).await["trade_status"], status);
    }
    assert_eq!(world.booked("W1", "charge").await, (1, 3, Some(8880)));
    assert_eq!(world.booked("W2", "charge").await, (0, 3, Some(8880)));
}

#[tokio::test]
async fn b024_refunds_have_their_number_and_repeats_change_nothing() {
    let world = World::new().await;
    world.paid("R1", None).await;
    let refund = |request: Option<&str>, amount: &str| {
        let mut biz = json!({ "out_trade_no": "R1", "refund_amount": amount });
        if let Some(request) = request {
            biz["out_request_no"] = json!(request);
        }
        world.call(REFUND, biz)
    };
    let first = refund(Some("r1"), "30.00").await;
    assert_eq!((first["fund_change"].as_str(), first["refund_fee"].as_str()), (Some("Y"), Some("30.00")));
    let second = refund(Some("r2"), "30.00").await;
    assert_eq!((second["fund_change"].as_str(), second["refund_fee"].as_str()), (Some("Y"), Some("60.00")));
    let again = refund(Some("r1"), "30").await;
    assert_eq!((again["fund_change"].as_str(), again["refund_fee"].as_str()), (Some("N"), Some("60.00")));
    assert_eq!(code_of(&refund(Some("r1"), "31.00").await), "ACQ.DISCORDANT_REPEAT_REQUEST");
    assert_eq!(code_of(&refund(Some("r3"), "28.81").await), "ACQ.REFUND_AMT_NOT_EQUAL_TOTAL");
    // Without a number of its own, the second refund is taken for the first.
    assert_eq!(refund(None, "1.00").await["fund_change"], "Y");
    assert_eq!(refund(None, "1.00").await["fund_change"], "N");
    let total: i64 = world
        .ledger("R1")
        .await
        .iter()
        .filter(|row| row["kind"] == "refund" && row["executed"] == 1)
        .filter_map(|row| row["amount"].as_i64())
        .sum();
    assert_eq!(total, 6100);
    assert_eq!(world.booked("r1", "refund").await, (1, 3, Some(3000)));
    assert_eq!(world.booked("r3", "refund").await, (0, 1, Some(2881)));

    assert_eq!(world.call(QUERY, number("R1")).await["trade_status"], "TRADE_SUCCESS");
    refund(Some("rest"), "27.80").await;
    assert_eq!(world.call(QUERY, number("R1")).await["trade_status"], "TRADE_CLOSED");
    assert_eq!(refund(Some("r2"), "30.00").await["fund_change"], "N");
}

#[tokio::test]
async fn a_refund_exists_only_if_the_query_shows_its_data() {
    let world = World::new().await;
    world.paid("Q1", None).await;
    let ask = |request: &str| world.call("alipay.trade.fastpay.refund.query", json!({ "out_trade_no": "Q1", "out_request_no": request }));
    let none = ask("r1").await;
    assert_eq!((none["code"].as_str(), none.get("refund_status"), none.get("refund_amount")), (Some("10000"), None, None));
    world.call(REFUND, json!({ "out_trade_no": "Q1", "out_request_no": "r1", "refund_amount": "8.80" })).await;
    let some = ask("r1").await;
    assert_eq!((some["refund_status"].as_str(), some["refund_amount"].as_str()), (Some("REFUND_SUCCESS"), Some("8.80")));
    let absent = world.call("alipay.trade.fastpay.refund.query", json!({ "out_trade_no": "nope", "out_request_no": "r1" })).await;
    assert_eq!(code_of(&absent), "ACQ.TRADE_NOT_EXIST");
}

#[tokio::test]
async fn what_is_not_paid_is_not_refunded_and_what_is_paid_is_not_closed() {
    let world = World::new().await;
    world.precreate("C1", None).await;
    let refund = |order: &str| world.call(REFUND, json!({ "out_trade_no": order, "out_request_no": "r", "refund_amount": "1.00" }));
    assert_eq!(code_of(&refund("C1").await), "ACQ.TRADE_NOT_EXIST");
    world.buyer("C1", "abandon").await;
    assert_eq!(code_of(&refund("C1").await), "ACQ.TRADE_STATUS_ERROR");
    world.buyer("C1", "pay").await;
    assert_eq!(code_of(&world.call(CLOSE, number("C1")).await), "ACQ.TRADE_STATUS_ERROR");
    assert_eq!(world.booked("C1", "close").await, (0, 1, None));
}

#[tokio::test]
async fn cancel_closes_what_is_unpaid_and_returns_what_is_paid_once() {
    let world = World::new().await;
    let cancel = |order: &str| world.call("alipay.trade.cancel", number(order));
    world.call("alipay.trade.pay", barcode("X1", "2800010000000000001234")).await;
    world.call("alipay.trade.pay", barcode("X2", "28763443825664394")).await;
    world.call("alipay.trade.pay", barcode("X3", "28763443825664394")).await;
    for (order, action, refunds) in [("X1", "close", 0), ("X2", "refund", 1)] {
        for _ in 0..2 {
            let node = cancel(order).await;
            assert_eq!(
                (node["code"].as_str(), node["action"].as_str(), node["retry_flag"].as_str()),
                (Some("10000"), Some(action), Some("N"))
            );
        }
        assert_eq!(world.call(QUERY, number(order)).await["trade_status"], "TRADE_CLOSED");
        let rows = world.ledger(order).await;
        let returned: Vec<_> = rows.iter().filter(|row| row["kind"] == "refund").collect();
        assert_eq!(returned.len(), refunds);
        assert!(returned.iter().all(|row| row["executed"] == 1 && row["amount"] == 8880));
        assert_eq!(world.booked(order, "close").await.0, 1);
    }
    assert_eq!(code_of(&cancel("unheard").await), "ACQ.TRADE_NOT_EXIST");
    world.advance(24 * 3600 + 1).await;
    assert_eq!(code_of(&cancel("X3").await), "ACQ.TRADE_CANCEL_TIME_OUT");
}

#[tokio::test]
async fn orders_expire_by_the_channels_clock() {
    let mut shop = Receiver::start().await;
    let world = World::new().await;
    let expiring = |number: &str| {
        let mut biz = order(number);
        biz["time_expire"] = json!("2026-12-01 22:00:36");
        biz
    };
    for number in ["E1", "E2"] {
        world.try_call(PRECREATE, expiring(number), Some(&shop.url)).await.expect("an answer");
    }
    world.buyer("E1", "abandon").await;
    assert_eq!(shop.next().await.text("trade_status"), "WAIT_BUYER_PAY");
    world.advance(15 * 60).await;
    // The trade that was opened ends, and says so; the code that was not can no longer be paid.
    let closed = shop.next().await;
    assert_eq!(
        (closed.text("out_trade_no"), closed.text("trade_status"), closed.text("gmt_refund")),
        ("E1".to_owned(), "TRADE_CLOSED".to_owned(), String::new())
    );
    assert_eq!(closed.text("gmt_close"), "2026-12-01 22:00:36");
    for (number, status) in [("E1", 409), ("E2", 409)] {
        let body = json!({ "channel": "alipay", "channel_ref": number, "action": "pay" }).to_string();
        let raw = world.http("POST", "/_sandbox/buyer", "application/json", body).await.expect("an answer");
        assert_eq!(raw.status, status, "{}", raw.text());
    }
    assert_eq!(code_of(&world.call(PRECREATE, expiring("E2")).await), "ACQ.INVALID_PARAMETER");
    assert_eq!(world.booked("E1", "charge").await.0 + world.booked("E2", "charge").await.0, 0);
}

#[tokio::test]
async fn a_trade_is_finished_after_the_refund_window() {
    let world = World::new().await;
    world.paid("F1", None).await;
    world.advance(91 * 24 * 3600).await;
    assert_eq!(world.call(QUERY, number("F1")).await["trade_status"], "TRADE_FINISHED");
    let refund = world.call(REFUND, json!({ "out_trade_no": "F1", "out_request_no": "r", "refund_amount": "1.00" })).await;
    assert_eq!(code_of(&refund), "ACQ.TRADE_HAS_FINISHED");
}

#[tokio::test]
async fn b025_two_merchants_do_not_see_each_other() {
    let world = World::new().await;
    let other = world.second();
    world.paid("S1", None).await;
    assert_eq!(code_of(&world.call_from(&other, QUERY, number("S1")).await), "ACQ.TRADE_NOT_EXIST");
    assert_eq!(code_of(&world.call_from(&other, PRECREATE, order("S1")).await), "10000");
    let body = json!({ "channel": "alipay", "channel_ref": "S1", "action": "pay", "account": "alipay_2" });
    assert_eq!(world.control("buyer", body).await["account"], "alipay_2");
    let rows = world.ledger("S1").await;
    let charges: Vec<_> = rows.iter().map(|row| (row["account"].as_str(), row["executed"].as_u64())).collect();
    assert_eq!(charges, [(Some("alipay"), Some(1)), (Some("alipay_2"), Some(1))]);
}

#[tokio::test]
async fn money_that_should_not_come_comes_under_its_own_trade_number() {
    let world = World::new().await;
    world.paid("Z1", None).await;
    let first = world.call(QUERY, number("Z1")).await["trade_no"].clone();
    let second = world.buyer("Z1", "pay_again").await["trade_no"].clone();
    assert_ne!(first, second);
    assert_eq!(world.booked("Z1", "charge").await.0, 2);
    // Each is refunded by its own number.
    let back = world.call(REFUND, json!({ "trade_no": second, "out_request_no": "r", "refund_amount": "88.80" })).await;
    assert_eq!((back["fund_change"].as_str(), &back["trade_no"]), (Some("Y"), &second));
    assert_eq!(world.call(QUERY, number("Z1")).await["trade_status"], "TRADE_SUCCESS");

    // Closed, and paid all the same.
    world.precreate("Z2", None).await;
    world.buyer("Z2", "abandon").await;
    world.call(CLOSE, number("Z2")).await;
    world.buyer("Z2", "pay_again").await;
    assert_eq!(world.call(QUERY, number("Z2")).await["trade_status"], "TRADE_SUCCESS");
    assert_eq!(world.booked("Z2", "charge").await.0, 1);
}
