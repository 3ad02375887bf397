//! What each fault does to the request, to the books and to the connection.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{World, barcode, read_answer, soon};

const CODE: &str = "28763443825664394";

/// What is left after a payment by code met a fault: executed, requests counted, status of the answer, its first bytes.
async fn meet(fault: &str) -> ((u64, u64), Option<(u16, String)>) {
    let world = World::new().await;
    world.fault("charge", fault).await;
    let answer = world.try_call("alipay.trade.pay", barcode("F1", CODE), None).await.ok();
    let (executed, requests, _) = world.booked("F1", "charge").await;
    // The fault is used up: the next one goes through.
    let next = world.call("alipay.trade.pay", barcode("F2", CODE)).await;
    assert_eq!(next["code"], "10000", "{fault}");
    ((executed, requests), answer.map(|raw| (raw.status, raw.text())))
}

#[tokio::test]
async fn every_fault_executes_or_not_and_answers_or_not_as_it_says() {
    assert_eq!(meet("refuse_connection").await, ((0, 0), None));
    assert_eq!(meet("drop_request").await, ((0, 1), None));
    assert_eq!(meet("drop_response").await, ((1, 1), None));
    for (fault, executed, status, holds) in [
        ("delay", 1, 200, "\"code\":\"10000\""),
        ("delay_response", 1, 200, "\"code\":\"10000\""),
        ("error_before", 0, 500, "Internal"),
        ("error_after", 1, 500, "Internal"),
        ("rate_limited", 0, 200, "\"code\":\"40005\""),
        ("in_progress", 0, 200, "ACQ.SYSTEM_ERROR"),
        ("declined", 0, 200, "ACQ.BUYER_BALANCE_NOT_ENOUGH"),
        ("bad_signature", 1, 200, "\"code\":\"10000\""),
        ("malformed", 1, 200, "alipay_trade_pay_response"),
        ("empty", 1, 200, ""),
    ] {
        let (booked, answer) = meet(fault).await;
        let (seen, text) = answer.expect(fault);
        assert_eq!((booked, seen), ((executed, 1), status), "{fault}");
        assert!(text.contains(holds), "{fault}: {text}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).is_ok(),
            !matches!(fault, "malformed" | "empty" | "error_before" | "error_after"),
            "{fault}"
        );
    }
}

/// Sends a signed payment on a raw socket.
async fn raw_payment(world: &World, number: &str) -> TcpStream {
    let form = world.account.form(&world.params(&world.account, "alipay.trade.pay", &barcode(number, CODE)));
    let mut stream = TcpStream::connect(world.running.addr()).await.expect("connect");
    let head = format!("POST /alipay/gateway.do HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{form}", form.len());
    stream.write_all(head.as_bytes()).await.expect("write");
    stream
}

async fn until_executed(world: &World, number: &str) {
    soon(async {
        while world.booked(number, "charge").await.0 == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_delayed_request_is_executed_though_the_caller_has_hung_up() {
    let world = World::new().await;
    world.fault("charge", "delay").await;
    let stream = raw_payment(&world, "D1").await;
    // It has arrived when its request is counted; only then does the caller leave.
    soon(async {
        while world.booked("D1", "charge").await.1 == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(world.booked("D1", "charge").await.0, 0);
    drop(stream);
    until_executed(&world, "D1").await;
}

#[tokio::test]
async fn a_refused_connection_is_reset_and_a_dropped_one_is_closed() {
    let world = World::new().await;
    let mut answer = [0u8; 64];
    world.fault("charge", "refuse_connection").await;
    let mut stream = raw_payment(&world, "T1").await;
    let why = soon(stream.read(&mut answer)).await.expect_err("a reset");
    assert_eq!(why.kind(), std::io::ErrorKind::ConnectionReset);

    world.fault("charge", "drop_response").await;
    let mut stream = raw_payment(&world, "T2").await;
    assert_eq!(soon(stream.read(&mut answer)).await.expect("an end"), 0);
    assert_eq!((world.booked("T1", "charge").await.0, world.booked("T2", "charge").await.0), (0, 1));
    // Nothing of the refused one was read; the other is on the list.
    let requests = world.get("/_sandbox/requests?channel=alipay").await.json();
    let seen: Vec<_> = requests.as_array().expect("a list").iter().map(|arrival| arrival["channel_ref"].as_str()).collect();
    assert_eq!(seen, [Some("T2")]);
    assert_eq!(
        (&requests[0]["executed"], &requests[0]["status"], &requests[0]["fault"]),
        (&json!(true), &json!(null), &json!("drop_response"))
    );
}

#[tokio::test]
async fn a_delay_is_as_long_as_it_was_set_and_a_reset_forgets_what_waits() {
    let world = World::new().await;
    world.control("faults", json!({ "channel": "alipay", "operation": "charge", "fault": "delay_response", "delay_ms": 400 })).await;
    let begun = Instant::now();
    world.call("alipay.trade.pay", barcode("L1", CODE)).await;
    assert!(begun.elapsed() >= Duration::from_millis(400));

    world.fault("charge", "delay").await;
    let mut waiting = raw_payment(&world, "L2").await;
    soon(async {
        while world.booked("L2", "charge").await.1 == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    world.control("reset", json!({})).await;
    let mut rest = Vec::new();
    soon(waiting.read_to_end(&mut rest)).await.expect("an end");
    assert!(rest.is_empty() && world.get("/_sandbox/ledger").await.json() == json!([]));
}

#[tokio::test]
async fn faults_meet_their_operation_only_in_order_and_so_often() {
    let world = World::new().await;
    world.control("faults", json!({ "channel": "alipay", "operation": "query", "fault": "rate_limited", "times": 2 })).await;
    world.control("faults", json!({ "channel": "alipay", "operation": "query", "fault": "error_before" })).await;
    assert_eq!(world.get("/_sandbox/faults").await.json().as_array().map(Vec::len), Some(2));
    world.paid("O1", None).await;
    let ask = || async {
        let raw = world.try_call("alipay.trade.query", json!({ "out_trade_no": "O1" }), None).await.expect("an answer");
        if raw.status == 200 { read_answer(&raw.body, &world.account.channel_key).0["code"].clone() } else { json!(raw.status) }
    };
    assert_eq!([ask().await, ask().await, ask().await, ask().await], [json!("40005"), json!("40005"), json!(500), json!("10000")]);
    world.fault("query", "empty").await;
    let removed = world.http("DELETE", "/_sandbox/faults", "text/plain", "").await.expect("an answer");
    assert_eq!((removed.status, removed.json()), (200, json!({ "removed": 1 })));
    assert_eq!(ask().await, json!("10000"));
}

#[tokio::test]
async fn paying_wins_over_a_close_that_is_late() {
    let world = World::new().await;
    world.precreate("K1", None).await;
    world.buyer("K1", "abandon").await;
    world.fault("close", "delay").await;
    let close = world.call("alipay.trade.close", json!({ "out_trade_no": "K1" }));
    let pay = async {
        soon(async {
            while world.booked("K1", "close").await.1 == 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        world.buyer("K1", "pay").await
    };
    let (closed, _) = tokio::join!(close, pay);
    assert_eq!(closed["sub_code"], "ACQ.TRADE_STATUS_ERROR");
    assert_eq!((world.booked("K1", "charge").await.0, world.booked("K1", "close").await.0), (1, 0));
}
