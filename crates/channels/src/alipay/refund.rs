//! Giving money back, and what became of it. In: a refund with its own number, always (B024: without one Alipay takes the order's, and the
//! second refund of an order is then a repeat of the first). Out: the content, the call, the look-up.

use payonce_core::clock::Timestamp;
use payonce_core::money::Currency;
use payonce_core::outcome::RefundOutcome;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::charge::{number, refusal};
use super::config::Config;
use super::{outcome, reply, sign};
use crate::contract::{Call, Operation, RefundFacts, RefundOrder, Refusal};

const REFUND: &str = "alipay.trade.refund";
const REFUND_QUERY: &str = "alipay.trade.fastpay.refund.query";
const REASON_MAX_CHARS: usize = 256;

/// What is stored: the business content, and what the answer has to agree with.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    biz_content: String,
    out_trade_no: String,
}

pub(super) fn prepare(refund: &RefundOrder) -> Result<Vec<u8>, Refusal> {
    if refund.amount.currency != Currency::CNY || refund.of.currency != Currency::CNY {
        return Err(refusal("currency", "must be CNY"));
    }
    if !(1..=refund.of.minor).contains(&refund.amount.minor) {
        return Err(refusal("amount", "must be positive and at most the order's"));
    }
    let reason = refund.reason.as_deref().filter(|text| !text.trim().is_empty());
    if reason.is_some_and(|text| text.chars().count() > REASON_MAX_CHARS) {
        return Err(refusal("reason", format!("must have at most {REASON_MAX_CHARS} characters")));
    }
    let out_trade_no = number("channel_ref", refund.channel_ref.as_str())?.to_owned();
    let mut biz = json!({
        "out_trade_no": out_trade_no,
        "out_request_no": number("refund_ref", refund.refund_ref.as_str())?,
        "refund_amount": refund.amount.to_decimal(),
    });
    if let (Some(reason), Value::Object(members)) = (reason, &mut biz) {
        members.insert("refund_reason".to_owned(), Value::String(reason.to_owned()));
    }
    serde_json::to_vec(&Content { biz_content: biz.to_string(), out_trade_no }).map_err(|_| refusal("reason", "cannot be written as JSON"))
}

pub(super) fn send(config: &Config, content: &[u8], now: Timestamp) -> Call<RefundOutcome> {
    // Content that is not ours becomes a request that Alipay refuses for want of a number: no money, and a clear code.
    let content = serde_json::from_slice::<Content>(content).unwrap_or_default();
    let keys = config.channel_keys.clone();
    Call {
        operation: Operation::Refund,
        request: sign::post(config, sign::parameters(config, REFUND, &content.biz_content, now)),
        read: Box::new(move |wire| outcome::refund(reply::read(wire, REFUND, &keys), &content.out_trade_no)),
    }
}

pub(super) fn query(config: &Config, refund: &RefundFacts, now: Timestamp) -> Call<RefundOutcome> {
    let out_trade_no = refund.order.channel_ref.as_str().to_owned();
    let out_request_no = refund.refund_ref.as_str().to_owned();
    let amount = refund.amount;
    let biz = json!({ "out_trade_no": out_trade_no, "out_request_no": out_request_no }).to_string();
    let keys = config.channel_keys.clone();
    Call {
        operation: Operation::RefundQuery,
        request: sign::post(config, sign::parameters(config, REFUND_QUERY, &biz, now)),
        read: Box::new(move |wire| outcome::refund_query(reply::read(wire, REFUND_QUERY, &keys), &out_trade_no, &out_request_no, amount)),
    }
}
