//! The buyer's side: the cashier page behind QR codes and page payments, and what buyers do by the sandbox's control call.

use serde_json::{Value, json};

use super::fields;
use super::methods::{decimal, re_enter};
use super::trade::{self, Order, State, Trade};
use super::{Gateway, form, notice, sign, when};
use crate::books::{Books, BuyerAction, BuyerFault, Draft, Recognised, SideReply, draw_digits};

const HTML: &str = "text/html;charset=utf-8";

/// The page that a page, wap or app payment opens: the trade is made now.
pub(super) fn open(side: &Gateway, books: &mut dyn Books, request: &Recognised) -> Draft {
    let order = match fields::order(request, books.now()) {
        Ok(order) => order,
        Err(failure) => return page(400, &error_text(failure.sub_code, &failure.sub_msg)),
    };
    let trade = match re_enter(books, &order) {
        Ok(trade) => trade,
        Err(failure) => return page(200, &error_text(failure.sub_code, &failure.sub_msg)),
    };
    let code = trade::make_offer(books, &order);
    let mut trade = trade.unwrap_or_else(|| trade::register(books, order));
    if books.buyer_pays_at_once() {
        trade::pay(side, books, &mut trade);
    }
    shown(&code, &trade)
}

/// A page that is opened by its code.
pub(super) fn execute(side: &Gateway, books: &mut dyn Books, request: &Recognised) -> Draft {
    let code = request.content.get("code").and_then(Value::as_str).unwrap_or_default();
    let Some(order) = trade::offer(books, code) else {
        return page(404, &error_text("ACQ.TRADE_NOT_EXIST", "二维码无效 This code is not known"));
    };
    let mut trade = match scan(books, &order) {
        Ok(trade) => trade,
        Err(failure) => return page(200, &error_text("ACQ.CONTEXT_INCONSISTENT", &failure)),
    };
    let pays = request.content.get("act").and_then(Value::as_str) == Some("pay") || books.buyer_pays_at_once();
    let declines = request.content.get("act").and_then(Value::as_str) == Some("decline");
    if pays && trade.state == State::WaitBuyerPay {
        trade::pay(side, books, &mut trade);
    }
    if declines {
        decline(side, books, &mut trade);
    }
    match (trade.state, &trade.order.return_url) {
        (State::TradeSuccess, Some(url)) if request.content.get("act").is_some_and(|act| act == "pay") => back(side, books, &trade, url),
        (State::WaitBuyerPay | State::TradeSuccess | State::TradeFinished | State::TradeClosed, _) => shown(code, &trade),
    }
}

/// The buyer opens an offer: the trade of its number, which is made now unless it is there.
fn scan(books: &mut dyn Books, order: &Order) -> Result<Trade, String> {
    match trade::by_number(books, &order.account, &order.out_trade_no) {
        Some(trade) if trade.order.agreed == order.agreed => Ok(trade),
        Some(_) => Err("交易信息被篡改 The order has changed".to_owned()),
        None if order.expires <= books.now() => Err("订单已过期 This order has expired".to_owned()),
        None => Ok(trade::register(books, order.clone())),
    }
}

fn decline(side: &Gateway, books: &mut dyn Books, trade: &mut Trade) {
    // Face to face the trade ends; elsewhere the buyer may come back.
    if trade.state == State::WaitBuyerPay && trade.order.method == "alipay.trade.pay" {
        trade::close(side, books, trade);
    }
}

/// What buyers do when they are told to.
pub(super) fn buyer(
    side: &Gateway,
    books: &mut dyn Books,
    account: Option<&str>,
    number: &str,
    action: BuyerAction,
    amount: Option<i64>,
) -> Result<Value, BuyerFault> {
    let takes_amount = matches!(action, BuyerAction::RefundAtConsole | BuyerAction::Dispute);
    if amount.is_some() && !takes_amount {
        return Err(BuyerFault::NotNow("a buyer pays exactly the order's amount: leave `amount` out".to_owned()));
    }
    let mut trade = find(side, books, account, number)?;
    let not_now = |trade: &Trade, rule: &str| Err(BuyerFault::NotNow(format!("the trade is {}: {rule}", trade.state.word())));
    match (action, trade.state) {
        (BuyerAction::Pay, State::WaitBuyerPay) => trade::pay(side, books, &mut trade),
        (BuyerAction::Pay, State::TradeSuccess | State::TradeFinished | State::TradeClosed) => {
            return not_now(&trade, "it cannot be paid; `pay_again` sends money that should not come");
        }
        (BuyerAction::PayAgain, State::WaitBuyerPay) => return not_now(&trade, "it is not paid yet: use `pay`"),
        // Money that crossed with the close: the same trade turns out to be paid.
        (BuyerAction::PayAgain, State::TradeClosed) if trade.paid.is_none() => trade::pay(side, books, &mut trade),
        (BuyerAction::PayAgain, State::TradeSuccess | State::TradeFinished | State::TradeClosed) => {
            trade = trade::pay_again(side, books, &trade);
        }
        (BuyerAction::Decline, State::WaitBuyerPay) => decline(side, books, &mut trade),
        (BuyerAction::Abandon, State::WaitBuyerPay) => notice::tell(side, books, &trade, "waiting", None),
        (BuyerAction::Decline | BuyerAction::Abandon, State::TradeSuccess | State::TradeFinished | State::TradeClosed) => {
            return not_now(&trade, "there is nothing left to decline");
        }
        (BuyerAction::RefundAtConsole | BuyerAction::Dispute, State::TradeSuccess | State::TradeFinished) => {
            let rest = trade.order.total - trade.refunded();
            let back = amount.unwrap_or(rest);
            if back < 1 || back > rest {
                return Err(BuyerFault::NotNow(format!("`amount` must be 1 to {rest} fen: that is what is left of the trade")));
            }
            let kind = if action == BuyerAction::Dispute { "DISPUTE" } else { "CONSOLE" };
            let refund = format!("{kind}{}", draw_digits(books, 16));
            trade::refund(side, books, &mut trade, &refund, back);
        }
        (BuyerAction::RefundAtConsole | BuyerAction::Dispute, State::WaitBuyerPay | State::TradeClosed) => {
            return not_now(&trade, "there is no money to give back");
        }
    }
    Ok(json!({
        "account": trade.order.account,
        "trade_no": trade.trade_no,
        "status": trade.state.word(),
        "amount": trade.order.total,
        "amount_refunded": trade.refunded(),
    }))
}

fn find(side: &Gateway, books: &mut dyn Books, account: Option<&str>, number: &str) -> Result<Trade, BuyerFault> {
    let accounts = side.keys.accounts.iter().filter(|known| account.is_none_or(|name| name == known.name));
    for known in accounts {
        if let Some(trade) = trade::by_number(books, known.name, number) {
            return Ok(trade);
        }
        if let Some(order) = trade::latest_offer(books, known.name, number) {
            return scan(books, &order).map_err(BuyerFault::NotNow);
        }
    }
    let hint = "a QR code is known once it was precreated; a page or wap order only when its address (`action.url`) is opened: open it, or give it here as `url`";
    Err(BuyerFault::Unknown(hint.to_owned()))
}

/// Sends the buyer back to the shop with the signed return parameters.
fn back(side: &Gateway, books: &dyn Books, trade: &Trade, url: &str) -> Draft {
    let Some(account) = side.account(&trade.order.account) else { return page(200, "") };
    let mut params: form::Params = [
        ("app_id", account.app_id.to_owned()),
        ("auth_app_id", account.app_id.to_owned()),
        ("charset", "utf-8".to_owned()),
        ("method", format!("{}.return", trade.order.method)),
        ("out_trade_no", trade.order.out_trade_no.clone()),
        ("seller_id", account.seller_id.to_owned()),
        ("sign_type", "RSA2".to_owned()),
        ("timestamp", when::text(books.now())),
        ("total_amount", decimal(trade.order.total)),
        ("trade_no", trade.trade_no.clone()),
        ("version", "1.0".to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (name.as_bytes().to_vec(), value.into_bytes()))
    .collect();
    let signature = sign::sign_notice(&params, &account.alipay).unwrap_or_default();
    params.push((b"sign".to_vec(), signature.into_bytes()));
    let joint = if url.contains('?') { '&' } else { '?' };
    let query = String::from_utf8_lossy(&form::encode(&params)).into_owned();
    let location: String = format!("{url}{joint}{query}").chars().filter(|c| !c.is_control() && c.is_ascii()).collect();
    Draft::Ready(SideReply { status: 302, headers: vec![("location".to_owned(), location)], body: Vec::new() })
}

fn shown(code: &str, trade: &Trade) -> Draft {
    let order = &trade.order;
    let state = match trade.state {
        State::WaitBuyerPay => "等待付款 Waiting for payment",
        State::TradeSuccess | State::TradeFinished => "支付成功 Paid",
        State::TradeClosed => "交易关闭 Closed",
    };
    let buttons = match trade.state {
        State::WaitBuyerPay => {
            "<button name=\"act\" value=\"pay\">确认付款 Pay</button> <button name=\"act\" value=\"decline\">取消 Decline</button>"
        }
        State::TradeSuccess | State::TradeFinished | State::TradeClosed => "",
    };
    let subject = escape(&order.subject);
    let total = decimal(order.total);
    let number = escape(&order.out_trade_no);
    page(
        200,
        &format!(
            "<h1>收银台 Cashier</h1><dl><dt>商品 Item</dt><dd>{subject}</dd><dt>金额 Amount</dt><dd>¥{total}</dd>\
             <dt>订单号 Order</dt><dd>{number}</dd><dt>状态 State</dt><dd id=\"state\">{state}</dd></dl>\
             <form method=\"post\" action=\"/alipay/cashier/{code}\">{buttons}</form>"
        ),
    )
}

fn error_text(code: &str, message: &str) -> String {
    format!("<h1>收银台 Cashier</h1><p id=\"error\">{}: {}</p>", escape(code), escape(message))
}

fn page(status: u16, content: &str) -> Draft {
    let style = "body{font:16px/1.6 system-ui,sans-serif;max-width:28rem;margin:3rem auto;padding:0 1rem;color:#1c2430}\
                 dt{color:#6b7482;font-size:.85rem}dd{margin:0 0 .6rem}button{font:inherit;padding:.6rem 1.2rem;border-radius:.4rem;border:1px solid #1677ff;\
                 background:#1677ff;color:#fff}button+button{background:#fff;color:#1677ff}";
    let html = format!(
        "<!doctype html><html lang=\"zh\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>沙箱收银台 Sandbox cashier</title><style>{style}</style></head><body>{content}<p><small>沙箱：没有真实资金 Sandbox: no real money</small></p></body></html>"
    );
    Draft::Ready(SideReply::new(status, HTML, html))
}

fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_merchant_writes_does_not_become_markup() {
        assert_eq!(escape("<b>&\"'"), "&lt;b&gt;&amp;&quot;&#39;");
    }
}
