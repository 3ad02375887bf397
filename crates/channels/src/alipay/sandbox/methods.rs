//! The methods of the gateway: one function each, on a trade that is looked up first.

use std::time::Duration;

use payonce_core::money::Money;
use serde_json::{Value, json};

use super::auth_code::{self, Story};
use super::fields::{self, Failure};
use super::trade::{self, Order, State, Trade};
use super::{Gateway, answer, biz, cashier, when};
use crate::books::{Books, Draft, Entry, EntryKind, Recognised};

/// A face-to-face trade can be cancelled for a day.
const CANCELLABLE: Duration = Duration::from_secs(24 * 3600);

/// Does what a gateway request asks.
pub(super) fn execute(side: &Gateway, books: &mut dyn Books, request: &Recognised) -> Draft {
    let method = request.content.get("method").and_then(Value::as_str).unwrap_or_default();
    let done = match method {
        "alipay.trade.precreate" => precreate(side, books, request),
        "alipay.trade.create" => create(side, books, request),
        "alipay.trade.pay" => pay(side, books, request),
        "alipay.trade.page.pay" | "alipay.trade.wap.pay" | "alipay.trade.app.pay" => Ok(cashier::open(side, books, request)),
        "alipay.trade.query" => query(side, books, request),
        "alipay.trade.close" => close(side, books, request),
        "alipay.trade.cancel" => cancel(side, books, request),
        "alipay.trade.refund" => refund(side, books, request),
        "alipay.trade.fastpay.refund.query" => refund_query(books, request),
        _ => Err(Failure::new("isv.invalid-method", "不存在的方法名")),
    };
    done.unwrap_or_else(Draft::from)
}

/// What a number that is ordered again may do: the trade that goes on, or nothing yet.
pub(super) fn re_enter(books: &dyn Books, order: &Order) -> Result<Option<Trade>, Failure> {
    let Some(trade) = trade::by_number(books, &order.account, &order.out_trade_no) else {
        let offered = trade::latest_offer(books, &order.account, &order.out_trade_no);
        return match offered {
            Some(earlier) if earlier.expires > books.now() && earlier.agreed != order.agreed => Err(inconsistent()),
            _ => Ok(None),
        };
    };
    match trade.state {
        State::TradeSuccess | State::TradeFinished => Err(Failure::new("ACQ.TRADE_HAS_SUCCESS", "交易已被支付")),
        State::TradeClosed => Err(Failure::new("ACQ.TRADE_HAS_CLOSE", "交易已经关闭")),
        State::WaitBuyerPay if trade.order.agreed != order.agreed => Err(inconsistent()),
        State::WaitBuyerPay if order.buyer.is_some() && trade.order.buyer.is_some() && order.buyer != trade.order.buyer => {
            Err(Failure::new("ACQ.TRADE_BUYER_NOT_MATCH", "交易买家不匹配"))
        }
        State::WaitBuyerPay => Ok(Some(trade)),
    }
}

fn inconsistent() -> Failure {
    Failure::new("ACQ.CONTEXT_INCONSISTENT", "交易信息被篡改")
}

fn precreate(side: &Gateway, books: &mut dyn Books, request: &Recognised) -> Result<Draft, Failure> {
    let order = fields::order(request, books.now())?;
    let trade = re_enter(books, &order)?;
    let code = trade::make_offer(books, &order);
    let answer =
        answer::success(json!({ "out_trade_no": order.out_trade_no, "qr_code": format!("{}/alipay/qr/{code}", books.base_url()) }));
    if books.buyer_pays_at_once() {
        let mut trade = trade.unwrap_or_else(|| trade::register(books, order));
        trade::pay(side, books, &mut trade);
    }
    Ok(answer)
}

fn create(side: &Gateway, books: &mut dyn Books, request: &Recognised) -> Result<Draft, Failure> {
    let order = fields::order(request, books.now())?;
    let mut trade = match re_enter(books, &order)? {
        Some(trade) => trade,
        None => trade::register(books, order),
    };
    if books.buyer_pays_at_once() {
        trade::pay(side, books, &mut trade);
    }
    Ok(answer::success(json!({ "out_trade_no": trade.order.out_trade_no, "trade_no": trade.trade_no })))
}

fn pay(side: &Gateway, books: &mut dyn Books, request: &Recognised) -> Result<Draft, Failure> {
    let order = fields::order(request, books.now())?;
    let code = fields::text(&biz(request), "auth_code").unwrap_or_default();
    let story = auth_code::read(&code).map_or(Story::CodeExpired, |(story, _)| story);
    let trade = re_enter(books, &order)?;
    if let Some(trade) = trade.as_ref().filter(|trade| trade.asks_password) {
        return Ok(waiting(trade));
    }
    let no_balance = || Failure::new("ACQ.BUYER_BALANCE_NOT_ENOUGH", "买家余额不足");
    let asks = match story {
        Story::NoBalance => return Err(no_balance()),
        Story::CodeExpired => return Err(Failure::new("ACQ.PAYMENT_AUTH_CODE_INVALID", "支付失败，获取顾客账户信息失败")),
        Story::Risk => return Err(Failure::new("ACQ.PAYMENT_REQUEST_HAS_RISK", "支付有风险")),
        Story::NotPaidButUnknown => return Ok(unknown()),
        Story::AsksForPassword | Story::PaysAtNextQuery => true,
        Story::Pays | Story::PaidButUnknown | Story::PaidButSystemError | Story::NoBalanceButOpen => false,
    };
    let mut trade = trade.unwrap_or_else(|| trade::register(books, order));
    if asks {
        let answer = waiting(&trade);
        trade.asks_password = true;
        trade.pays_at_next_query = story == Story::PaysAtNextQuery;
        trade::keep(books, &trade);
        if books.buyer_pays_at_once() {
            trade::pay(side, books, &mut trade);
        }
        return Ok(answer);
    }
    if story == Story::NoBalanceButOpen {
        return Err(no_balance());
    }
    trade::pay(side, books, &mut trade);
    match story {
        Story::PaidButUnknown => Ok(unknown()),
        Story::PaidButSystemError => Err(Failure::new("ACQ.SYSTEM_ERROR", "系统异常")),
        Story::Pays
        | Story::AsksForPassword
        | Story::PaysAtNextQuery
        | Story::NoBalance
        | Story::NoBalanceButOpen
        | Story::CodeExpired
        | Story::Risk
        | Story::NotPaidButUnknown => Ok(answer::success(paid_facts(&trade, "gmt_payment"))),
    }
}

fn waiting(trade: &Trade) -> Draft {
    answer::with_code("10003", "order success pay inprocess", paid_facts(trade, "gmt_payment"))
}

fn unknown() -> Draft {
    answer::failure("20000", "isp.unknow-error", "系统繁忙")
}

/// The trade that a request names: by Alipay's number where there is one, else by the merchant's.
fn named(books: &dyn Books, request: &Recognised) -> Result<Trade, Failure> {
    let biz = biz(request);
    let absent = || Failure::new("ACQ.TRADE_NOT_EXIST", "交易不存在");
    match (fields::text(&biz, "trade_no"), fields::text(&biz, "out_trade_no")) {
        (Some(trade_no), _) => trade::by_trade_no(books, &request.account, &trade_no).ok_or_else(absent),
        (None, Some(number)) => trade::by_number(books, &request.account, &number).ok_or_else(absent),
        (None, None) => Err(Failure::new("ACQ.INVALID_PARAMETER", "参数无效：out_trade_no 和 trade_no 不能同时为空")),
    }
}

fn query(side: &Gateway, books: &mut dyn Books, request: &Recognised) -> Result<Draft, Failure> {
    let mut trade = named(books, request)?;
    if trade.pays_at_next_query && trade.state == State::WaitBuyerPay {
        trade::pay(side, books, &mut trade);
    }
    let mut facts = paid_facts(&trade, "send_pay_date");
    facts["trade_status"] = json!(trade.state.word());
    facts["subject"] = json!(trade.order.subject);
    Ok(answer::success(facts))
}

fn close(side: &Gateway, books: &mut dyn Books, request: &Recognised) -> Result<Draft, Failure> {
    let mut trade = named(books, request)?;
    match trade.state {
        State::WaitBuyerPay => {}
        State::TradeSuccess | State::TradeFinished | State::TradeClosed => {
            return Err(Failure::new("ACQ.TRADE_STATUS_ERROR", "交易状态不合法"));
        }
    }
    trade::close(side, books, &mut trade);
    book_close(books, &trade);
    Ok(answer::success(json!({ "out_trade_no": trade.order.out_trade_no, "trade_no": trade.trade_no })))
}

fn cancel(side: &Gateway, books: &mut dyn Books, request: &Recognised) -> Result<Draft, Failure> {
    let mut trade = named(books, request)?;
    let done = |trade: &Trade, action: &str| {
        let facts = json!({ "out_trade_no": trade.order.out_trade_no, "trade_no": trade.trade_no, "retry_flag": "N", "action": action });
        Ok(answer::success(facts))
    };
    // A repeat changes nothing and says the same.
    if trade.cancelled {
        return done(&trade, if trade.paid.is_some() { "refund" } else { "close" });
    }
    if books.now() > trade.created.plus(CANCELLABLE) {
        return Err(Failure::new("ACQ.TRADE_CANCEL_TIME_OUT", "超过撤销时间范围"));
    }
    match trade.state {
        State::TradeFinished => Err(Failure::new("ACQ.TRADE_HAS_FINISHED", "交易已完结")),
        State::WaitBuyerPay => {
            trade.cancelled = true;
            trade::close(side, books, &mut trade);
            book_close(books, &trade);
            done(&trade, "close")
        }
        State::TradeClosed => done(&trade, "close"),
        State::TradeSuccess => {
            trade.cancelled = true;
            let (number, rest) = (trade.trade_no.clone(), trade.order.total - trade.refunded());
            trade::refund(side, books, &mut trade, &number, rest);
            book_close(books, &trade);
            done(&trade, "refund")
        }
    }
}

fn book_close(books: &mut dyn Books, trade: &Trade) {
    books.book(Entry {
        account: trade.order.account.clone(),
        kind: EntryKind::Close,
        channel_ref: trade.order.out_trade_no.clone(),
        order_ref: None,
        amount: trade::yuan(trade.order.total),
    });
}

fn refund(side: &Gateway, books: &mut dyn Books, request: &Recognised) -> Result<Draft, Failure> {
    let biz = biz(request);
    let mut trade = named(books, request)?;
    let amount = fields::fen(&biz, "refund_amount")?;
    // Without a number of its own a refund has the order's: a second one of that kind is taken for the first.
    let number = match biz.get("out_request_no") {
        None => trade.order.out_trade_no.clone(),
        Some(_) => fields::number(&biz, "out_request_no", b"_-")?,
    };
    if let Some(earlier) = trade.refund(&number) {
        if earlier.amount != amount {
            return Err(Failure::new("ACQ.DISCORDANT_REPEAT_REQUEST", "请求信息不一致"));
        }
        return Ok(refunded(&trade, "N"));
    }
    match trade.state {
        State::WaitBuyerPay => return Err(Failure::new("ACQ.TRADE_STATUS_ERROR", "交易状态不合法")),
        State::TradeClosed if trade.paid.is_none() => return Err(Failure::new("ACQ.TRADE_STATUS_ERROR", "交易状态不合法")),
        State::TradeFinished => return Err(Failure::new("ACQ.TRADE_HAS_FINISHED", "交易已完结")),
        State::TradeSuccess | State::TradeClosed => {}
    }
    if amount > trade.order.total - trade.refunded() {
        return Err(Failure::new("ACQ.REFUND_AMT_NOT_EQUAL_TOTAL", "退款金额超限"));
    }
    trade::refund(side, books, &mut trade, &number, amount);
    Ok(refunded(&trade, "Y"))
}

fn refunded(trade: &Trade, fund_change: &str) -> Draft {
    let last = trade.refunds.last().map(|refund| when::text(refund.at));
    answer::success(json!({
        "trade_no": trade.trade_no,
        "out_trade_no": trade.order.out_trade_no,
        "buyer_logon_id": "san***@sandbox.test",
        "buyer_user_id": trade.order.buyer,
        "fund_change": fund_change,
        "refund_fee": decimal(trade.refunded()),
        "send_back_fee": decimal(trade.refunded()),
        "gmt_refund_pay": last,
    }))
}

fn refund_query(books: &mut dyn Books, request: &Recognised) -> Result<Draft, Failure> {
    let biz = biz(request);
    let trade = named(books, request)?;
    let number = fields::number(&biz, "out_request_no", b"_-")?;
    // A code of 10000 says that the query worked; only the members below say that there is a refund.
    Ok(answer::success(match trade.refund(&number) {
        None => json!({}),
        Some(refund) => json!({
            "trade_no": trade.trade_no,
            "out_trade_no": trade.order.out_trade_no,
            "out_request_no": refund.out_request_no,
            "total_amount": decimal(trade.order.total),
            "refund_amount": decimal(refund.amount),
            "refund_status": "REFUND_SUCCESS",
            "gmt_refund_pay": when::text(refund.at),
        }),
    }))
}

fn paid_facts(trade: &Trade, paid_at: &str) -> Value {
    let paid = if trade.paid.is_some() { trade.order.total } else { 0 };
    let mut facts = json!({
        "trade_no": trade.trade_no,
        "out_trade_no": trade.order.out_trade_no,
        "total_amount": decimal(trade.order.total),
        "buyer_logon_id": "san***@sandbox.test",
        "receipt_amount": decimal(paid),
        "buyer_pay_amount": decimal(paid),
        "invoice_amount": decimal(paid),
        "point_amount": "0.00",
    });
    if let Some(buyer) = &trade.order.buyer {
        facts["buyer_user_id"] = json!(buyer);
    }
    if let Some(at) = trade.paid {
        facts[paid_at] = json!(when::text(at));
        facts["fund_bill_list"] = json!([{ "amount": decimal(paid), "fund_channel": "ALIPAYACCOUNT" }]);
    }
    facts
}

/// Fen as yuan with two places.
pub(super) fn decimal(fen: i64) -> String {
    Money::to_decimal(trade::yuan(fen))
}
