//! Ending an order. In: an order. Out: `close` where the buyer brings the order, `cancel` where we brought the buyer's code: cancel also
//! returns money that was taken in the meantime.

use payonce_core::clock::Timestamp;
use payonce_core::outcome::CloseOutcome;
use serde_json::json;

use super::config::Config;
use super::{outcome, reply, sign};
use crate::contract::{Call, Operation, OrderFacts};

const CLOSE: &str = "alipay.trade.close";
const CANCEL: &str = "alipay.trade.cancel";

pub(super) fn send(config: &Config, order: &OrderFacts, now: Timestamp) -> Call<CloseOutcome> {
    let out_trade_no = order.channel_ref.as_str().to_owned();
    let biz = json!({ "out_trade_no": out_trade_no }).to_string();
    let cancels = order.method == "barcode";
    let method = if cancels { CANCEL } else { CLOSE };
    let amount = order.amount;
    let keys = config.channel_keys.clone();
    Call {
        operation: Operation::Close,
        request: sign::post(config, sign::parameters(config, method, &biz, now)),
        read: Box::new(move |wire| {
            let read = reply::read(wire, method, &keys);
            if cancels { outcome::cancel(read, &out_trade_no, amount) } else { outcome::close(read, &out_trade_no) }
        }),
    }
}
