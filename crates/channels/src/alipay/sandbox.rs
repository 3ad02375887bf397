//! Alipay's own side of the gateway, for the sandbox.
//!
//! What comes in: requests to `gateway.do`, buyers at the cashier page, time. What goes out: signed answers, pages, notices, and entries
//! in the true ledger. It shares no code with the adapter beside it: form decoding, canonical text, signing and verifying are written
//! here a second time on purpose.

mod answer;
mod auth_code;
mod cashier;
mod fields;
mod form;
mod keys;
mod methods;
mod notice;
mod recognise;
mod sign;
mod trade;
mod when;

use std::time::Duration;

use payonce_core::clock::Timestamp;
use payonce_core::notification::RawRequest;
use serde_json::{Value, json};

use crate::books::{
    Books, BuyerAction, BuyerFault, Draft, Finish, Notice, Recognised, Refused, Side, SideAccount, SideReply, Variant, WireNotice,
};
use crate::contract::Operation;
use keys::{Keyed, Keys};
pub use sign::{request_is_authentic, sign_notice};

/// The simulated gateway.
#[derive(Debug)]
pub struct Gateway {
    keys: Keys,
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// Eight deliveries in about 25 hours.
const GAPS: [Duration; 7] = [
    Duration::from_secs(4 * MINUTE),
    Duration::from_secs(10 * MINUTE),
    Duration::from_secs(10 * MINUTE),
    Duration::from_secs(HOUR),
    Duration::from_secs(2 * HOUR),
    Duration::from_secs(6 * HOUR),
    Duration::from_secs(15 * HOUR),
];

impl Gateway {
    /// With the committed test keys.
    pub fn new() -> Result<Self, String> {
        Ok(Self { keys: Keys::load()? })
    }

    fn account(&self, name: &str) -> Option<&Keyed> {
        self.keys.accounts.iter().find(|account| account.name == name)
    }
}

impl Side for Gateway {
    fn channel(&self) -> &'static str {
        "alipay"
    }

    fn accounts(&self, base_url: &str) -> Vec<SideAccount> {
        self.keys.accounts.iter().map(|account| account.shown(base_url)).collect()
    }

    fn recognise(&self, request: &RawRequest) -> Result<Recognised, SideReply> {
        recognise::recognise(self, request)
    }

    fn resolve(&self, books: &dyn Books, request: &mut Recognised) {
        if let Some(code) = request.content.get("code").and_then(Value::as_str)
            && let Some(order) = trade::offer(books, code)
        {
            request.account = order.account;
            request.channel_ref = Some(order.out_trade_no);
        }
        // An order that is named by Alipay's number only.
        let named = request.content.pointer("/biz/trade_no").and_then(Value::as_str);
        if let Some(trade) = named.and_then(|trade_no| trade::by_trade_no(books, &request.account, trade_no)) {
            if request.operation == Some(Operation::Refund) || request.operation == Some(Operation::RefundQuery) {
                request.order_ref.get_or_insert(trade.order.out_trade_no);
            } else {
                request.channel_ref.get_or_insert(trade.order.out_trade_no);
            }
        }
    }

    fn execute(&self, books: &mut dyn Books, request: &Recognised) -> Draft {
        trade::pass_time(self, books);
        match request.content.get("route").and_then(Value::as_str) {
            Some(_) => cashier::execute(self, books, request),
            None => methods::execute(self, books, request),
        }
    }

    fn finish(&self, request: &Recognised, draft: Draft, how: Finish) -> SideReply {
        answer::finish(self, request, draft, how)
    }

    fn signs_answers(&self) -> bool {
        true
    }

    fn refuse(&self, request: &Recognised, why: Refused) -> Draft {
        match why {
            Refused::RateLimited => answer::failure("40005", "isv.app-call-limited", "应用调用次数超限"),
            // What two requests with one number get is not documented; the gateway's word for "ask me later" is a system error.
            Refused::InProgress => answer::failure("40004", "ACQ.SYSTEM_ERROR", "系统异常"),
            Refused::Declined => match request.operation {
                Some(Operation::Refund) => answer::failure("40004", "ACQ.SELLER_BALANCE_NOT_ENOUGH", "卖家余额不足"),
                Some(Operation::Charge) => answer::failure("40004", "ACQ.BUYER_BALANCE_NOT_ENOUGH", "买家余额不足"),
                _ => answer::failure("40004", "ACQ.ACCESS_FORBIDDEN", "无权限使用接口"),
            },
        }
    }

    fn buyer(
        &self,
        books: &mut dyn Books,
        account: Option<&str>,
        channel_ref: &str,
        action: BuyerAction,
        amount: Option<i64>,
    ) -> Result<Value, BuyerFault> {
        trade::pass_time(self, books);
        cashier::buyer(self, books, account, channel_ref, action, amount)
    }

    fn tick(&self, books: &mut dyn Books) {
        trade::pass_time(self, books);
    }

    fn wakes_at(&self, books: &dyn Books) -> Option<Timestamp> {
        trade::next_wake(books)
    }

    fn pretend_paid(&self, books: &mut dyn Books, account: Option<&str>, channel_ref: &str) -> Option<Notice> {
        notice::pretend_paid(self, books, account, channel_ref)
    }

    fn compose(&self, notice: &Notice, now: Timestamp, how: Variant) -> WireNotice {
        notice::compose(self, notice, now, how)
    }

    fn acknowledged(&self, status: u16, body: &[u8]) -> bool {
        // Exactly these seven bytes: no BOM, no quotes, no line feed.
        status == 200 && body == b"success"
    }

    fn redelivery(&self) -> &'static [Duration] {
        &GAPS
    }
}

/// What a request asks for, out of [`Recognised::content`].
fn biz(request: &Recognised) -> Value {
    request.content.get("biz").cloned().unwrap_or_else(|| json!({}))
}
