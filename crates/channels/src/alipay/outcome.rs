//! What Alipay's answers mean, in one place. In: verified nodes, or why there is none. Out: outcomes. Never: a code that is not listed taken
//! for a proof: it is unknown, and the order is looked up.

use payonce_core::failure::Failure;
use payonce_core::money::{Currency, Money};
use payonce_core::outcome::{Action, CloseOutcome, Outcome, RefundOutcome, Taken};

use super::reply::{Node, Unread};
use super::{beijing, charge};
use crate::contract::misconfigured;

/// What the gateway's code says before the business is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gateway {
    /// 10000.
    Done,
    /// 10003: waiting for the buyer. Has been taken for a failure elsewhere.
    Waiting,
    /// 20000 and anything that is not listed: it may have happened.
    Unknown,
    /// 40004: the sub code decides.
    Business,
    /// 40005: come back later.
    RateLimited,
    /// 20001, 40001, 40002, 40006: our set-up or our request is at fault, and nothing was done.
    Refused,
}

pub(super) fn gateway(code: &str) -> Gateway {
    match code {
        "10000" => Gateway::Done,
        "10003" => Gateway::Waiting,
        "40004" => Gateway::Business,
        "40005" => Gateway::RateLimited,
        "20001" | "40001" | "40002" | "40006" => Gateway::Refused,
        _ => Gateway::Unknown,
    }
}

/// What a charge's sub code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChargeSays {
    /// The number is paid already: the look-up tells by whom, when and how much.
    LookUp,
    /// The number is closed for good.
    Closed,
    /// Nothing came of it, by our code for why.
    Refused(&'static str),
    /// The buyer's money could not be had this time; the trade may exist and be payable (I4).
    DeclinedOpen(&'static str),
    /// It may have happened.
    Unknown,
}

/// Sub codes of `trade.precreate` and `trade.pay`, without `ACQ.`.
pub(super) const CHARGE: [(&str, ChargeSays); 30] = [
    ("TRADE_HAS_SUCCESS", ChargeSays::LookUp),
    ("TRADE_HAS_CLOSE", ChargeSays::Closed),
    ("SYSTEM_ERROR", ChargeSays::Unknown),
    ("CONTEXT_INCONSISTENT", ChargeSays::Refused("reference_conflict")),
    ("TRADE_BUYER_NOT_MATCH", ChargeSays::Refused("buyer_mismatch")),
    ("INVALID_PARAMETER", ChargeSays::Refused("invalid_request")),
    ("EXIST_FORBIDDEN_WORD", ChargeSays::Refused("invalid_request")),
    ("TOTAL_FEE_EXCEED", ChargeSays::Refused("amount_not_allowed")),
    ("BUYER_SELLER_EQUAL", ChargeSays::Refused("buyer_is_seller")),
    ("ACCESS_FORBIDDEN", ChargeSays::Refused("channel_misconfigured")),
    ("PARTNER_ERROR", ChargeSays::Refused("channel_misconfigured")),
    ("SELLER_NOT_EXIST", ChargeSays::Refused("channel_misconfigured")),
    ("INVALID_STORE_ID", ChargeSays::Refused("invalid_request")),
    ("PAYMENT_AUTH_CODE_INVALID", ChargeSays::Refused("payment_code_invalid")),
    ("SOUNDWAVE_PARSER_FAIL", ChargeSays::Refused("payment_code_invalid")),
    ("BUYER_BALANCE_NOT_ENOUGH", ChargeSays::DeclinedOpen("insufficient_funds")),
    ("BUYER_BANKCARD_BALANCE_NOT_ENOUGH", ChargeSays::DeclinedOpen("insufficient_funds")),
    ("ERROR_BALANCE_PAYMENT_DISABLE", ChargeSays::DeclinedOpen("declined")),
    ("NO_PAYMENT_INSTRUMENTS_AVAILABLE", ChargeSays::DeclinedOpen("declined")),
    ("BUYER_PAYMENT_AMOUNT_DAY_LIMIT_ERROR", ChargeSays::DeclinedOpen("limit_reached")),
    ("BUYER_PAYMENT_AMOUNT_MONTH_LIMIT_ERROR", ChargeSays::DeclinedOpen("limit_reached")),
    ("BEYOND_PAY_RESTRICTION", ChargeSays::DeclinedOpen("limit_reached")),
    ("BEYOND_PER_RECEIPT_RESTRICTION", ChargeSays::DeclinedOpen("limit_reached")),
    ("ERROR_BUYER_CERTIFY_LEVEL_LIMIT", ChargeSays::DeclinedOpen("limit_reached")),
    ("BUYER_ENABLE_STATUS_FORBID", ChargeSays::DeclinedOpen("declined")),
    ("PAYMENT_FAIL", ChargeSays::DeclinedOpen("declined")),
    ("PAYMENT_REQUEST_HAS_RISK", ChargeSays::DeclinedOpen("risk_refused")),
    ("PULL_MOBILE_CASHIER_FAIL", ChargeSays::DeclinedOpen("declined")),
    ("MOBILE_PAYMENT_SWITCH_OFF", ChargeSays::DeclinedOpen("declined")),
    ("USER_FACE_PAYMENT_SWITCH_OFF", ChargeSays::DeclinedOpen("declined")),
];

/// What a close's or cancel's sub code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseSays {
    /// Paid, or ended before: the look-up tells which.
    LookUp,
    /// Alipay does not know the number (yet).
    Absent,
    /// Not by this call.
    Refused,
    /// It may have happened.
    Unknown,
}

/// Sub codes of `trade.close` and `trade.cancel`, without `ACQ.` or `AQC.`.
pub(super) const CLOSE: [(&str, CloseSays); 11] = [
    ("TRADE_STATUS_ERROR", CloseSays::LookUp),
    ("REASON_TRADE_STATUS_INVALID", CloseSays::LookUp),
    ("REASON_ILLEGAL_STATUS", CloseSays::LookUp),
    ("TRADE_HAS_FINISHED", CloseSays::LookUp),
    // Cancel found the money taken and could not return it.
    ("SELLER_BALANCE_NOT_ENOUGH", CloseSays::LookUp),
    ("REASON_TRADE_BEEN_FREEZEN", CloseSays::LookUp),
    ("TRADE_NOT_EXIST", CloseSays::Absent),
    ("TRADE_CANCEL_TIME_OUT", CloseSays::Refused),
    ("CANCEL_NOT_ALLOWED", CloseSays::Refused),
    ("INVALID_PARAMETER", CloseSays::Refused),
    ("SYSTEM_ERROR", CloseSays::Unknown),
];

/// What a refund's sub code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefundSays {
    /// Not refunded under this number, whether or not it was sent before: a repeat of a refund that went through is recognised.
    Failed(&'static str),
    /// This request was refused; of an earlier one with the number it says nothing.
    Refused(&'static str),
    /// It may have happened: the same number again, or the look-up.
    Unknown,
}

/// Sub codes of `trade.refund`, without `ACQ.`.
pub(super) const REFUND: [(&str, RefundSays); 12] = [
    ("SELLER_BALANCE_NOT_ENOUGH", RefundSays::Failed("insufficient_balance")),
    ("DISCORDANT_REPEAT_REQUEST", RefundSays::Refused("reference_conflict")),
    ("REFUND_AMT_NOT_EQUAL_TOTAL", RefundSays::Refused("amount_not_allowed")),
    ("REASON_TRADE_REFUND_FEE_ERR", RefundSays::Refused("amount_not_allowed")),
    ("TRADE_HAS_FINISHED", RefundSays::Refused("refund_window_over")),
    ("TRADE_NOT_ALLOW_REFUND", RefundSays::Refused("refund_not_allowed")),
    ("TRADE_STATUS_ERROR", RefundSays::Refused("refund_not_allowed")),
    ("REASON_TRADE_BEEN_FREEZEN", RefundSays::Refused("refund_not_allowed")),
    ("TRADE_NOT_EXIST", RefundSays::Refused("order_unknown")),
    ("INVALID_PARAMETER", RefundSays::Refused("invalid_request")),
    ("REFUND_CHARGE_ERROR", RefundSays::Unknown),
    ("SYSTEM_ERROR", RefundSays::Unknown),
];

fn listed<T: Copy>(table: &[(&str, T)], sub_code: &str, otherwise: T) -> T {
    table.iter().find(|(code, _)| *code == sub_code).map_or(otherwise, |(_, says)| *says)
}

fn failure(code: &str, node: &Node) -> Failure {
    Failure::new(code, node.message()).with_channel_code(node.told_code())
}

fn refused(node: &Node) -> Failure {
    misconfigured(node.told_code(), &node.message())
}

fn unknown(node: &Node) -> String {
    format!("Alipay answered {} {}", node.code(), node.told_code())
}

/// Whether the node speaks of the order that was asked about. One that names none is taken where nothing but the order could be meant.
fn speaks_of(node: &Node, out_trade_no: &str) -> bool {
    node.text("out_trade_no") == Some(out_trade_no)
}

const OTHER_ORDER: &str = "the answer is about another order";

fn yuan(node: &Node, name: &str) -> Option<Money> {
    node.text(name).and_then(|text| Money::from_decimal(text, Currency::CNY).ok())
}

fn txn(node: &Node) -> Option<String> {
    node.text("trade_no").filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Money that a node says was taken; nothing where it does not say by which transaction and how much.
fn paid(node: &Node, paid_at: &str) -> Outcome {
    match (txn(node), yuan(node, "total_amount")) {
        (Some(txn), Some(amount)) => Outcome::Paid(Taken { txn, amount: Some(amount), at: node.text(paid_at).and_then(beijing::moment) }),
        (None, Some(_) | None) | (Some(_), None) => {
            Outcome::Unknown("paid, but without a transaction or an amount that can be read".to_owned())
        }
    }
}

pub(super) fn charge(read: Result<Node, Unread>, method: &str, out_trade_no: &str) -> Outcome {
    let node = match read {
        Ok(node) => node,
        Err(Unread::RateLimited) => return Outcome::InProgress,
        Err(Unread::Nothing(why)) => return Outcome::Unknown(why),
    };
    match gateway(node.code()) {
        Gateway::Done | Gateway::Waiting if !speaks_of(&node, out_trade_no) => Outcome::Unknown(OTHER_ORDER.to_owned()),
        Gateway::Waiting => Outcome::Waiting { action: None, txn: txn(&node) },
        Gateway::Done if method == charge::PAY => paid(&node, "gmt_payment"),
        Gateway::Done => match node.text("qr_code").filter(|code| !code.is_empty()) {
            Some(code) => Outcome::Waiting { action: Some(Action::QrCode { code_url: code.to_owned() }), txn: txn(&node) },
            None => Outcome::Unknown("accepted, but without a code to show".to_owned()),
        },
        Gateway::Unknown => Outcome::Unknown(unknown(&node)),
        Gateway::RateLimited => Outcome::InProgress,
        Gateway::Refused => Outcome::NotAccepted(refused(&node)),
        Gateway::Business => match listed(&CHARGE, node.sub_code(), ChargeSays::Unknown) {
            ChargeSays::LookUp => Outcome::Unknown("the number is paid already, says Alipay".to_owned()),
            ChargeSays::Closed => Outcome::Closed,
            ChargeSays::Refused(code) => Outcome::NotAccepted(failure(code, &node)),
            ChargeSays::DeclinedOpen(code) => Outcome::DeclinedOpen(failure(code, &node)),
            ChargeSays::Unknown => Outcome::Unknown(unknown(&node)),
        },
    }
}

/// A look-up never refuses an order: whatever is wrong with the question says nothing of the money.
pub(super) fn query(read: Result<Node, Unread>, out_trade_no: &str) -> Outcome {
    let node = match read {
        Ok(node) => node,
        Err(Unread::RateLimited) => return Outcome::InProgress,
        Err(Unread::Nothing(why)) => return Outcome::Unknown(why),
    };
    match gateway(node.code()) {
        Gateway::Done if !speaks_of(&node, out_trade_no) => Outcome::Unknown(OTHER_ORDER.to_owned()),
        Gateway::Done => match node.text("trade_status") {
            Some("WAIT_BUYER_PAY") => Outcome::Waiting { action: None, txn: txn(&node) },
            Some("TRADE_SUCCESS" | "TRADE_FINISHED") => paid(&node, "send_pay_date"),
            // Closed unpaid, or refunded whole: either way nobody can pay it and nothing of it is held.
            Some("TRADE_CLOSED") => Outcome::Closed,
            Some(other) => Outcome::Unknown(format!("a trade status that is not known: {}", other.chars().take(64).collect::<String>())),
            None => Outcome::Unknown("an answer without a trade status".to_owned()),
        },
        Gateway::Business if node.sub_code() == "TRADE_NOT_EXIST" => Outcome::AbsentYet,
        Gateway::RateLimited => Outcome::InProgress,
        Gateway::Waiting | Gateway::Unknown | Gateway::Refused | Gateway::Business => Outcome::Unknown(unknown(&node)),
    }
}

pub(super) fn close(read: Result<Node, Unread>, out_trade_no: &str) -> CloseOutcome {
    let node = match read {
        Ok(node) => node,
        Err(fault) => return CloseOutcome::Unknown(why(fault)),
    };
    match gateway(node.code()) {
        Gateway::Done if speaks_of(&node, out_trade_no) => CloseOutcome::Closed,
        Gateway::Done => CloseOutcome::Unknown(OTHER_ORDER.to_owned()),
        Gateway::Waiting | Gateway::Unknown | Gateway::Business | Gateway::RateLimited | Gateway::Refused => not_closed(&node),
    }
}

/// `order` is what a cancelled order took and gives back whole; the answer does not repeat the amount.
pub(super) fn cancel(read: Result<Node, Unread>, out_trade_no: &str, order: Money) -> CloseOutcome {
    let node = match read {
        Ok(node) => node,
        Err(fault) => return CloseOutcome::Unknown(why(fault)),
    };
    match gateway(node.code()) {
        Gateway::Done if !speaks_of(&node, out_trade_no) => CloseOutcome::Unknown(OTHER_ORDER.to_owned()),
        Gateway::Done if node.text("retry_flag") == Some("Y") => CloseOutcome::Unknown("Alipay asks for the cancel again".to_owned()),
        Gateway::Done => match (node.text("action").unwrap_or_default(), txn(&node)) {
            ("close", _) => CloseOutcome::Closed,
            ("refund", Some(txn)) => CloseOutcome::Returned(Taken { txn, amount: Some(order), at: None }),
            ("refund", None) => CloseOutcome::Unknown("returned, but without a transaction".to_owned()),
            // Nothing was there to be ended.
            ("", _) => CloseOutcome::Absent,
            (_, _) => CloseOutcome::Unknown("an action that is not known".to_owned()),
        },
        Gateway::Waiting | Gateway::Unknown | Gateway::Business | Gateway::RateLimited | Gateway::Refused => not_closed(&node),
    }
}

fn not_closed(node: &Node) -> CloseOutcome {
    match gateway(node.code()) {
        Gateway::Business => match listed(&CLOSE, node.sub_code(), CloseSays::Unknown) {
            CloseSays::LookUp => CloseOutcome::AlreadyPaid,
            CloseSays::Absent => CloseOutcome::Absent,
            CloseSays::Refused => CloseOutcome::Refused(failure("close_refused", node)),
            CloseSays::Unknown => CloseOutcome::Unknown(unknown(node)),
        },
        Gateway::Refused => CloseOutcome::Refused(refused(node)),
        Gateway::Done | Gateway::Waiting | Gateway::Unknown | Gateway::RateLimited => CloseOutcome::Unknown(unknown(node)),
    }
}

fn why(fault: Unread) -> String {
    match fault {
        Unread::RateLimited => "HTTP 429".to_owned(),
        Unread::Nothing(why) => why,
    }
}

pub(super) fn refund(read: Result<Node, Unread>, out_trade_no: &str) -> RefundOutcome {
    let node = match read {
        Ok(node) => node,
        Err(Unread::RateLimited) => return RefundOutcome::InProgress,
        Err(Unread::Nothing(why)) => return RefundOutcome::Unknown(why),
    };
    match gateway(node.code()) {
        Gateway::Done if !speaks_of(&node, out_trade_no) => RefundOutcome::Unknown(OTHER_ORDER.to_owned()),
        // `refund_fee` in here is the trade's running total and no measure of this refund.
        Gateway::Done if node.text("fund_change") == Some("Y") => RefundOutcome::Succeeded { channel_refund_id: None },
        // No money moved by this request. That is so for a repeat of a refund that went through, and the look-up has to say that it is (B024).
        Gateway::Done => {
            RefundOutcome::Unknown("accepted without a movement of money (fund_change is not Y): the look-up decides".to_owned())
        }
        Gateway::RateLimited => RefundOutcome::InProgress,
        Gateway::Refused => RefundOutcome::NotAccepted(refused(&node)),
        Gateway::Waiting | Gateway::Unknown => RefundOutcome::Unknown(unknown(&node)),
        Gateway::Business => match listed(&REFUND, node.sub_code(), RefundSays::Unknown) {
            RefundSays::Failed(code) => RefundOutcome::Failed(failure(code, &node)),
            RefundSays::Refused(code) => RefundOutcome::NotAccepted(failure(code, &node)),
            RefundSays::Unknown => RefundOutcome::Unknown(unknown(&node)),
        },
    }
}

/// Code 10000 says that the question was answered. There is a refund only where the answer holds one.
pub(super) fn refund_query(read: Result<Node, Unread>, out_trade_no: &str, out_request_no: &str, amount: Money) -> RefundOutcome {
    let node = match read {
        Ok(node) => node,
        Err(Unread::RateLimited) => return RefundOutcome::InProgress,
        Err(Unread::Nothing(why)) => return RefundOutcome::Unknown(why),
    };
    let other = |name: &str, ours: &str| node.text(name).is_some_and(|told| !told.is_empty() && told != ours);
    match gateway(node.code()) {
        Gateway::Done if other("out_trade_no", out_trade_no) || other("out_request_no", out_request_no) => {
            RefundOutcome::Unknown("the answer is about another refund".to_owned())
        }
        Gateway::Done => match (node.text("refund_status").unwrap_or_default(), node.text("refund_amount")) {
            ("", None) => RefundOutcome::Absent,
            ("REFUND_SUCCESS" | "", told) => {
                let names_it = node.text("out_request_no") == Some(out_request_no);
                match told.map(|_| yuan(&node, "refund_amount")) {
                    // A status without figures is enough where it names the refund.
                    None if names_it => RefundOutcome::Succeeded { channel_refund_id: None },
                    Some(Some(told)) if names_it && told == amount => RefundOutcome::Succeeded { channel_refund_id: None },
                    Some(Some(told)) if told.minor == 0 => RefundOutcome::Absent,
                    None | Some(_) => RefundOutcome::Unknown("a refund of another number or amount".to_owned()),
                }
            }
            (other, _) => {
                RefundOutcome::Unknown(format!("a refund status that is not known: {}", other.chars().take(64).collect::<String>()))
            }
        },
        Gateway::Business if node.sub_code() == "TRADE_NOT_EXIST" => RefundOutcome::Absent,
        Gateway::RateLimited => RefundOutcome::InProgress,
        Gateway::Waiting | Gateway::Unknown | Gateway::Refused | Gateway::Business => RefundOutcome::Unknown(unknown(&node)),
    }
}

#[cfg(test)]
mod tests;
