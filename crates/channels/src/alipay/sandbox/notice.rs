//! Notices: signed form posts about a trade.

use payonce_core::clock::Timestamp;
use serde_json::{Map, Value, json};
use std::time::Duration;

use super::methods::decimal;
use super::trade::{self, Trade};
use super::{Gateway, answer, form, sign, when};
use crate::books::{Books, Notice, Variant, WireNotice, draw_digits};

/// Queues the notice of what has just happened to a trade, if the order gave an address.
pub(super) fn tell(side: &Gateway, books: &mut dyn Books, trade: &Trade, kind: &str, out_request_no: Option<&str>) {
    if let Some(notice) = about(side, books, trade, kind, out_request_no) {
        books.notify(notice);
    }
}

fn about(side: &Gateway, books: &mut dyn Books, trade: &Trade, kind: &str, out_request_no: Option<&str>) -> Option<Notice> {
    let order = &trade.order;
    let url = order.notify_url.clone()?;
    let account = side.account(&order.account)?;
    let id = format!("{}{}", when::number(books.now()), draw_digits(books, 10));
    let mut content = Map::new();
    let mut put = |name: &str, value: &str| content.insert(name.to_owned(), json!(value));
    put("notify_type", "trade_status_sync");
    put("notify_id", &id);
    put("charset", if order.charset.is_empty() { "utf-8" } else { &order.charset });
    put("version", "1.0");
    put("app_id", account.app_id);
    put("auth_app_id", account.app_id);
    put("seller_id", account.seller_id);
    put("trade_no", &trade.trade_no);
    put("out_trade_no", &order.out_trade_no);
    put("trade_status", trade.state.word());
    put("total_amount", &decimal(order.total));
    put("subject", &order.subject);
    put("gmt_create", &when::text(trade.created));
    if let Some(body) = &order.body {
        put("body", body);
    }
    if let Some(passback) = &order.passback_params {
        put("passback_params", passback);
    }
    if let Some(buyer) = &order.buyer {
        put("buyer_id", buyer);
    }
    if let Some(paid) = trade.paid {
        let total = decimal(order.total);
        put("gmt_payment", &when::text(paid));
        put("receipt_amount", &total);
        put("buyer_pay_amount", &total);
        put("invoice_amount", &total);
        put("point_amount", "0.00");
        put("fund_bill_list", &json!([{ "amount": total, "fundChannel": "ALIPAYACCOUNT" }]).to_string());
    }
    // The running total, not this refund's amount: that is how the channel tells it.
    if let Some(refund) = out_request_no.and_then(|number| trade.refund(number)) {
        put("refund_fee", &decimal(trade.refunded()));
        put("out_biz_no", &refund.out_request_no);
        put("gmt_refund", &format!("{}.000", when::text(refund.at)));
    }
    if let Some(closed) = trade.closed {
        put("gmt_close", &when::text(closed));
    }
    Some(Notice {
        account: order.account.clone(),
        order_ref: order.out_trade_no.clone(),
        kind: kind.to_owned(),
        id,
        url,
        content: Value::Object(content),
    })
}

/// A notice that says paid, whether or not it is true.
pub(super) fn pretend_paid(side: &Gateway, books: &mut dyn Books, account: Option<&str>, out_trade_no: &str) -> Option<Notice> {
    let mut trade = side.keys.accounts.iter().filter(|known| account.is_none_or(|name| name == known.name)).find_map(|known| {
        trade::by_number(books, known.name, out_trade_no)
            .or_else(|| trade::latest_offer(books, known.name, out_trade_no).map(|order| pretended(books, order)))
    })?;
    trade.state = trade::State::TradeSuccess;
    trade.paid.get_or_insert(books.now());
    trade.closed = None;
    about(side, books, &trade, "paid", None)
}

fn pretended(books: &dyn Books, order: trade::Order) -> Trade {
    Trade {
        trade_no: format!("{}0000000", when::number(books.now())),
        state: trade::State::TradeSuccess,
        created: books.now(),
        paid: None,
        closed: None,
        refunds: Vec::new(),
        cancelled: false,
        asks_password: false,
        pays_at_next_query: false,
        order,
    }
}

/// Long before now, as the stale variant is.
const STALE: Duration = Duration::from_secs(48 * 3600);

/// The bytes of a delivery.
pub(super) fn compose(side: &Gateway, notice: &Notice, now: Timestamp, how: Variant) -> WireNotice {
    let charset = notice.content.get("charset").and_then(Value::as_str).unwrap_or_default().to_owned();
    let empty = Map::new();
    let mut texts: Vec<(String, String)> = notice
        .content
        .as_object()
        .unwrap_or(&empty)
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    let sent_at = match how {
        Variant::Genuine | Variant::Forged | Variant::Tampered => now,
        Variant::Stale => now.minus(STALE),
    };
    texts.push(("notify_time".to_owned(), when::text(sent_at)));
    texts.push(("sign_type".to_owned(), "RSA2".to_owned()));
    let mut params: form::Params = texts.iter().map(|(name, value)| (name.clone().into_bytes(), answer::encode(value, &charset))).collect();
    let key = match how {
        Variant::Genuine | Variant::Tampered | Variant::Stale => side.account(&notice.account).map(|account| &account.alipay),
        Variant::Forged => Some(&side.keys.forger),
    };
    let signature = key.and_then(|key| sign::sign_notice(&params, key).ok()).unwrap_or_default();
    match how {
        Variant::Tampered => tamper(&mut params),
        Variant::Genuine | Variant::Forged | Variant::Stale => {}
    }
    params.push((b"sign".to_vec(), signature.into_bytes()));
    let content_type = format!("application/x-www-form-urlencoded; charset={charset}");
    WireNotice {
        headers: vec![("content-type".to_owned(), content_type), ("user-agent".to_owned(), "Mozilla/4.0".to_owned())],
        body: form::encode(&params),
    }
}

/// The amount's first digit becomes another one.
fn tamper(params: &mut form::Params) {
    if let Some(digit) = params.iter_mut().find(|(name, _)| name == b"total_amount").and_then(|(_, value)| value.first_mut()) {
        *digit = if *digit == b'9' { b'1' } else { b'9' };
    }
}
