//! Two hundred at once: the ledger counts each thing once.

use futures_util::future::join_all;
use serde_json::json;

use crate::world::{World, barcode, order};

const MANY: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_requests_with_one_number_charge_once() {
    let world = World::new().await;
    let nodes = join_all((0..MANY).map(|_| world.call("alipay.trade.pay", barcode("C1", "28763443825664394")))).await;
    assert_eq!(nodes.iter().filter(|node| node["code"] == "10000").count(), 1);
    assert_eq!(nodes.iter().filter(|node| node["sub_code"] == "ACQ.TRADE_HAS_SUCCESS").count(), MANY - 1);
    assert_eq!(world.booked("C1", "charge").await, (1, 200, Some(8880)));

    let nodes = join_all(
        (0..MANY)
            .map(|_| world.call("alipay.trade.refund", json!({ "out_trade_no": "C1", "out_request_no": "r1", "refund_amount": "50.00" }))),
    )
    .await;
    assert_eq!(nodes.iter().filter(|node| node["fund_change"] == "Y").count(), 1);
    assert_eq!(world.booked("r1", "refund").await, (1, 200, Some(5000)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_numbers_at_once_are_two_hundred_charges() {
    let world = World::new().await;
    let numbers: Vec<String> = (0..MANY).map(|at| format!("M{at}")).collect();
    join_all(numbers.iter().map(|number| world.call("alipay.trade.pay", barcode(number, "28763443825664394")))).await;
    let rows = world.get("/_sandbox/ledger?channel=alipay&kind=charge").await.json();
    let rows = rows.as_array().expect("a list");
    assert_eq!(rows.len(), MANY);
    assert!(rows.iter().all(|row| row["executed"] == 1 && row["requests"] == 1 && row["amount"] == 8880 && row["currency"] == "CNY"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b078_refunds_that_race_never_exceed_the_payment() {
    let world = World::new().await;
    world.paid("V1", None).await;
    join_all((0..MANY).map(|at| {
        world.call("alipay.trade.refund", json!({ "out_trade_no": "V1", "out_request_no": format!("r{at}"), "refund_amount": "10.00" }))
    }))
    .await;
    let rows = world.ledger("V1").await;
    let refunded: i64 =
        rows.iter().filter(|row| row["kind"] == "refund" && row["executed"] == 1).filter_map(|row| row["amount"].as_i64()).sum();
    assert_eq!(refunded, 8000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buyers_who_race_pay_once() {
    let world = World::new().await;
    world.call("alipay.trade.precreate", order("Y1")).await;
    let body = json!({ "channel": "alipay", "channel_ref": "Y1", "action": "pay" }).to_string();
    let answers = join_all((0..20).map(|_| world.http("POST", "/_sandbox/buyer", "application/json", body.clone()))).await;
    let paid = answers.into_iter().filter(|answer| answer.as_ref().is_ok_and(|raw| raw.status == 200)).count();
    assert_eq!((paid, world.booked("Y1", "charge").await.0), (1, 1));
}
