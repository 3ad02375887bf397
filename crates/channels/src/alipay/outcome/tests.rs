use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const NO: &str = "order1";
const REFUND_NO: &str = "refund1";

fn node(code: &str, sub_code: &str) -> Result<Node, Unread> {
    Ok(Node::of(json!({ "code": code, "msg": "m", "sub_code": sub_code, "out_trade_no": NO })))
}

fn done(members: Value) -> Result<Node, Unread> {
    let mut whole = json!({ "code": "10000", "msg": "Success", "out_trade_no": NO });
    whole.as_object_mut().expect("object").extend(members.as_object().expect("object").clone());
    Ok(Node::of(whole))
}

fn fen(minor: i64) -> Money {
    Money::new(minor, Currency::CNY)
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Waiting { action: Some(_), .. } => "waiting+action",
        Outcome::Waiting { action: None, .. } => "waiting",
        Outcome::Paid(_) => "paid",
        Outcome::Authorized(_) => "authorized",
        Outcome::Declined(_) => "declined",
        Outcome::DeclinedOpen(_) => "declined open",
        Outcome::Closed => "closed",
        Outcome::AbsentFinal => "absent final",
        Outcome::AbsentYet => "absent yet",
        Outcome::NotAccepted(_) => "not accepted",
        Outcome::NotSent(_) => "not sent",
        Outcome::InProgress => "in progress",
        Outcome::Unknown(_) => "unknown",
    }
}

fn refund_word(outcome: &RefundOutcome) -> &'static str {
    match outcome {
        RefundOutcome::Processing => "processing",
        RefundOutcome::Succeeded { .. } => "succeeded",
        RefundOutcome::Failed(_) => "failed",
        RefundOutcome::Absent => "absent",
        RefundOutcome::NotAccepted(_) => "not accepted",
        RefundOutcome::NotSent(_) => "not sent",
        RefundOutcome::InProgress => "in progress",
        RefundOutcome::Unknown(_) => "unknown",
    }
}

fn close_word(outcome: &CloseOutcome) -> &'static str {
    match outcome {
        CloseOutcome::Closed => "closed",
        CloseOutcome::AlreadyPaid => "already paid",
        CloseOutcome::Returned(_) => "returned",
        CloseOutcome::Absent => "absent",
        CloseOutcome::Refused(_) => "refused",
        CloseOutcome::NotSent(_) => "not sent",
        CloseOutcome::Unknown(_) => "unknown",
    }
}

fn all(code: &str, sub_code: &str) -> [&'static str; 7] {
    let read = || node(code, sub_code);
    [
        word(&charge(read(), charge::PRECREATE, NO)),
        word(&charge(read(), charge::PAY, NO)),
        word(&query(read(), NO)),
        close_word(&close(read(), NO)),
        close_word(&cancel(read(), NO, fen(100))),
        refund_word(&refund(read(), NO)),
        refund_word(&refund_query(read(), NO, REFUND_NO, fen(100))),
    ]
}

#[test]
fn gateway_codes_by_operation() {
    // precreate, pay, query, close, cancel, refund, refund query
    for (code, expected) in [
        ("10000", ["unknown", "unknown", "unknown", "closed", "absent", "unknown", "absent"]),
        ("10003", ["waiting", "waiting", "unknown", "unknown", "unknown", "unknown", "unknown"]),
        ("20000", ["unknown"; 7]),
        ("20001", ["not accepted", "not accepted", "unknown", "refused", "refused", "not accepted", "unknown"]),
        ("40001", ["not accepted", "not accepted", "unknown", "refused", "refused", "not accepted", "unknown"]),
        ("40002", ["not accepted", "not accepted", "unknown", "refused", "refused", "not accepted", "unknown"]),
        ("40004", ["unknown"; 7]),
        ("40005", ["in progress", "in progress", "in progress", "unknown", "unknown", "in progress", "in progress"]),
        ("40006", ["not accepted", "not accepted", "unknown", "refused", "refused", "not accepted", "unknown"]),
        ("", ["unknown"; 7]),
        ("99999", ["unknown"; 7]),
    ] {
        assert_eq!(all(code, ""), expected, "{code}");
    }
}

#[test]
fn business_codes_by_operation() {
    for (sub_code, at, expected) in [
        ("ACQ.TRADE_HAS_SUCCESS", 0, "unknown"),
        ("ACQ.TRADE_HAS_SUCCESS", 1, "unknown"),
        ("ACQ.TRADE_HAS_CLOSE", 0, "closed"),
        ("ACQ.CONTEXT_INCONSISTENT", 0, "not accepted"),
        ("ACQ.SYSTEM_ERROR", 0, "unknown"),
        ("ACQ.SYSTEM_ERROR", 1, "unknown"),
        ("ACQ.BUYER_BALANCE_NOT_ENOUGH", 1, "declined open"),
        ("ACQ.PAYMENT_AUTH_CODE_INVALID", 1, "not accepted"),
        ("ACQ.TRADE_NOT_EXIST", 2, "absent yet"),
        ("ACQ.SYSTEM_ERROR", 2, "unknown"),
        ("ACQ.INVALID_PARAMETER", 2, "unknown"),
        ("ACQ.TRADE_STATUS_ERROR", 3, "already paid"),
        ("ACQ.REASON_TRADE_STATUS_INVALID", 3, "already paid"),
        ("ACQ.REASON_ILLEGAL_STATUS", 3, "already paid"),
        ("ACQ.TRADE_NOT_EXIST", 3, "absent"),
        ("AQC.SYSTEM_ERROR", 4, "unknown"),
        ("ACQ.SELLER_BALANCE_NOT_ENOUGH", 4, "already paid"),
        ("ACQ.TRADE_HAS_FINISHED", 4, "already paid"),
        ("ACQ.TRADE_CANCEL_TIME_OUT", 4, "refused"),
        ("ACQ.CANCEL_NOT_ALLOWED", 4, "refused"),
        ("ACQ.SELLER_BALANCE_NOT_ENOUGH", 5, "failed"),
        ("ACQ.DISCORDANT_REPEAT_REQUEST", 5, "not accepted"),
        ("ACQ.TRADE_STATUS_ERROR", 5, "not accepted"),
        ("ACQ.REFUND_CHARGE_ERROR", 5, "unknown"),
        ("ACQ.SYSTEM_ERROR", 5, "unknown"),
        ("ACQ.TRADE_NOT_EXIST", 6, "absent"),
        ("ACQ.SYSTEM_ERROR", 6, "unknown"),
    ] {
        assert_eq!(all("40004", sub_code)[at], expected, "{sub_code} in column {at}");
    }
}

#[test]
fn tables_name_every_code_once() {
    fn unique<T>(table: &[(&str, T)]) {
        let mut codes: Vec<&str> = table.iter().map(|(code, _)| *code).collect();
        codes.sort_unstable();
        codes.windows(2).for_each(|pair| assert_ne!(pair[0], pair[1]));
    }
    unique(&CHARGE);
    unique(&CLOSE);
    unique(&REFUND);
}

#[test]
fn a_look_up_reads_states_amounts_and_the_right_order() {
    let paid = json!({ "trade_no": "T1", "trade_status": "TRADE_SUCCESS", "total_amount": "8.8", "send_pay_date": "2026-12-01 21:45:06" });
    let Outcome::Paid(taken) = query(done(paid.clone()), NO) else { panic!("paid") };
    assert_eq!((taken.txn.as_str(), taken.amount), ("T1", Some(fen(880))));
    assert_eq!(taken.at, payonce_core::Timestamp::parse_rfc3339("2026-12-01T13:45:06Z"));
    assert_eq!(word(&query(done(paid.clone()), "order2")), "unknown", "another order's answer");
    for (name, value) in
        [("total_amount", json!("8.801")), ("total_amount", json!(8.8)), ("total_amount", json!("")), ("trade_no", json!(""))]
    {
        let mut spoilt = paid.clone();
        spoilt[name] = value;
        assert_eq!(word(&query(done(spoilt.clone()), NO)), "unknown", "{spoilt}");
    }
    for (status, expected) in
        [("WAIT_BUYER_PAY", "waiting"), ("TRADE_FINISHED", "paid"), ("TRADE_CLOSED", "closed"), ("TRADE_PENDING", "unknown")]
    {
        let mut other = paid.clone();
        other["trade_status"] = json!(status);
        assert_eq!(word(&query(done(other), NO)), expected, "{status}");
    }
}

#[test]
fn a_charge_reads_its_answer() {
    let Outcome::Waiting { action: Some(Action::QrCode { code_url }), .. } =
        charge(done(json!({ "qr_code": "https://qr/x" })), charge::PRECREATE, NO)
    else {
        panic!("a code")
    };
    assert_eq!(code_url, "https://qr/x");
    let paid = json!({ "trade_no": "T1", "total_amount": "1.00" });
    assert_eq!(word(&charge(done(paid.clone()), charge::PAY, NO)), "paid");
    assert_eq!(word(&charge(done(paid), charge::PAY, "order2")), "unknown");
    assert_eq!(word(&charge(Err(Unread::RateLimited), charge::PAY, NO)), "in progress");
    assert_eq!(word(&charge(Err(Unread::Nothing("HTTP 502".to_owned())), charge::PAY, NO)), "unknown");
}

#[test]
fn cancelling_says_whether_money_was_returned() {
    let said = |action: &str, retry: &str| cancel(done(json!({ "trade_no": "T1", "action": action, "retry_flag": retry })), NO, fen(500));
    assert_eq!(said("close", "N"), CloseOutcome::Closed);
    assert_eq!(said("refund", "N"), CloseOutcome::Returned(Taken { txn: "T1".to_owned(), amount: Some(fen(500)), at: None }));
    assert_eq!(close_word(&said("refund", "Y")), "unknown", "asked to call again");
    assert_eq!(close_word(&said("", "N")), "absent");
    assert_eq!(close_word(&said("dance", "N")), "unknown");
}

#[test]
fn b024_only_a_movement_of_money_or_the_refund_itself_proves_a_refund() {
    assert_eq!(refund_word(&refund(done(json!({ "fund_change": "Y", "refund_fee": "70.00" })), NO)), "succeeded");
    for members in [json!({ "fund_change": "N", "refund_fee": "30.00" }), json!({}), json!({ "fund_change": "" })] {
        assert_eq!(refund_word(&refund(done(members), NO)), "unknown");
    }
    assert_eq!(refund_word(&refund(done(json!({ "fund_change": "Y" })), "order2")), "unknown");

    let found = |members: Value| refund_word(&refund_query(done(members), NO, REFUND_NO, fen(3000))).to_owned();
    assert_eq!(found(json!({ "out_request_no": REFUND_NO, "refund_amount": "30.00", "refund_status": "REFUND_SUCCESS" })), "succeeded");
    assert_eq!(found(json!({ "out_request_no": REFUND_NO, "refund_amount": "30.00" })), "succeeded");
    assert_eq!(found(json!({ "out_request_no": REFUND_NO, "refund_status": "REFUND_SUCCESS" })), "succeeded");
    assert_eq!(found(json!({})), "absent", "the question worked, there is no refund");
    assert_eq!(found(json!({ "out_request_no": REFUND_NO })), "absent");
    assert_eq!(found(json!({ "out_request_no": REFUND_NO, "refund_amount": "40.00", "refund_status": "REFUND_SUCCESS" })), "unknown");
    assert_eq!(found(json!({ "out_request_no": "refund2", "refund_amount": "30.00", "refund_status": "REFUND_SUCCESS" })), "unknown");
    assert_eq!(found(json!({ "refund_amount": "30.00", "refund_status": "REFUND_SUCCESS" })), "unknown", "names no refund");
    assert_eq!(found(json!({ "out_request_no": REFUND_NO, "refund_status": "REFUND_PROCESSING" })), "unknown");
    // Without figures of the order a first-page answer of a real gateway is `{"code":"10000","msg":"Success"}`.
    assert_eq!(refund_query(Ok(Node::of(json!({ "code": "10000" }))), NO, REFUND_NO, fen(1)), RefundOutcome::Absent);
}

proptest! {
    #[test]
    fn what_is_not_listed_proves_nothing(code in "[0-9]{5}", sub_code in "(ACQ|isp|isv|AQC)?\\.?[A-Za-z_.-]{0,30}") {
        let known = |sub_code: &str| CHARGE.iter().any(|(c, _)| *c == sub_code) || CLOSE.iter().any(|(c, _)| *c == sub_code) || REFUND.iter().any(|(c, _)| *c == sub_code);
        let bare = sub_code.trim_start_matches("ACQ.").trim_start_matches("AQC.");
        prop_assume!(!known(bare) && gateway(&code) != Gateway::Refused && code != "10000" && code != "10003" && code != "40005");
        prop_assert_eq!(all(&code, &sub_code), ["unknown"; 7]);
    }
}
