//! What became of an order. In: its number. Out: the call. Never: proof by silence: what a "not found" means is the capability's to say.

use payonce_core::clock::Timestamp;
use payonce_core::outcome::Outcome;
use serde_json::json;

use super::config::Config;
use super::{outcome, reply, sign};
use crate::contract::{Call, Operation, OrderFacts};

const METHOD: &str = "alipay.trade.query";

pub(super) fn send(config: &Config, order: &OrderFacts, now: Timestamp) -> Call<Outcome> {
    let out_trade_no = order.channel_ref.as_str().to_owned();
    let biz = json!({ "out_trade_no": out_trade_no }).to_string();
    let keys = config.channel_keys.clone();
    Call {
        operation: Operation::Query,
        request: sign::post(config, sign::parameters(config, METHOD, &biz, now)),
        read: Box::new(move |wire| outcome::query(reply::read(wire, METHOD, &keys), &out_trade_no)),
    }
}
