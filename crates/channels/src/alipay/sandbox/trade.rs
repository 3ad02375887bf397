//! Trades: what an order is, and every move that it can make. Amounts are whole fen.
//!
//! An order from a QR code, page or app is only an *offer* until the buyer opens it; then it becomes a trade. One number has one trade.

use std::time::Duration;

use payonce_core::clock::Timestamp;
use payonce_core::money::{Currency, Money};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Gateway, notice, when};
use crate::books::{Books, Entry, EntryKind, draw_digits, read, write};

/// What was ordered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Order {
    /// Whose.
    pub(super) account: String,
    /// As the request wrote it; notices come in the same.
    pub(super) charset: String,
    /// The merchant's number.
    pub(super) out_trade_no: String,
    /// `alipay.trade.precreate` …
    pub(super) method: String,
    /// Fen.
    pub(super) total: i64,
    /// For the buyer.
    pub(super) subject: String,
    /// For the buyer.
    pub(super) body: Option<String>,
    /// Comes back in notices.
    pub(super) passback_params: Option<String>,
    /// Where notices go.
    pub(super) notify_url: Option<String>,
    /// Where the buyer goes back to.
    pub(super) return_url: Option<String>,
    /// Everything that a repeat with this number must say again.
    pub(super) agreed: Value,
    /// Until when it can be paid.
    pub(super) expires: Timestamp,
    /// Who pays, where the order says so.
    pub(super) buyer: Option<String>,
}

/// Alipay's words for a trade's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum State {
    /// Not paid.
    WaitBuyerPay,
    /// Paid, refundable.
    TradeSuccess,
    /// Paid, not refundable any more.
    TradeFinished,
    /// Closed unpaid, or refunded in full.
    TradeClosed,
}

impl State {
    /// As it is written.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::WaitBuyerPay => "WAIT_BUYER_PAY",
            Self::TradeSuccess => "TRADE_SUCCESS",
            Self::TradeFinished => "TRADE_FINISHED",
            Self::TradeClosed => "TRADE_CLOSED",
        }
    }
}

/// Money that went back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Refund {
    /// Its number.
    pub(super) out_request_no: String,
    /// Fen.
    pub(super) amount: i64,
    /// When.
    pub(super) at: Timestamp,
}

/// A trade.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Trade {
    /// What was ordered.
    pub(super) order: Order,
    /// Alipay's number.
    pub(super) trade_no: String,
    /// Where it stands.
    pub(super) state: State,
    /// Since when there is a trade.
    pub(super) created: Timestamp,
    /// When it was paid.
    pub(super) paid: Option<Timestamp>,
    /// When it was closed.
    pub(super) closed: Option<Timestamp>,
    /// Oldest first.
    pub(super) refunds: Vec<Refund>,
    /// Whether `cancel` ended it.
    pub(super) cancelled: bool,
    /// Whether a payment code waits for its buyer's password.
    pub(super) asks_password: bool,
    /// Whether the buyer pays by the time of the next query.
    pub(super) pays_at_next_query: bool,
}

impl Trade {
    /// The running total of refunds, in fen.
    pub(super) fn refunded(&self) -> i64 {
        self.refunds.iter().map(|refund| refund.amount).sum()
    }

    /// The refund of this number.
    pub(super) fn refund(&self, out_request_no: &str) -> Option<&Refund> {
        self.refunds.iter().find(|refund| refund.out_request_no == out_request_no)
    }
}

const TRADES: &str = "trade";
const NUMBERS: &str = "number";
const OFFERS: &str = "offer";
const LATEST_OFFERS: &str = "latest_offer";
const DUE: &str = "due";

/// A paid trade is finished, and takes no refund any more, after the refund window of three months.
const REFUNDABLE: Duration = Duration::from_secs(90 * 24 * 3600);

fn key(account: &str, number: &str) -> String {
    format!("{account}/{number}")
}

/// The trade of Alipay's own number.
pub(super) fn by_trade_no(books: &dyn Books, account: &str, trade_no: &str) -> Option<Trade> {
    read(books, TRADES, &key(account, trade_no))
}

/// The trade of the merchant's number.
pub(super) fn by_number(books: &dyn Books, account: &str, out_trade_no: &str) -> Option<Trade> {
    let trade_no: String = read(books, NUMBERS, &key(account, out_trade_no))?;
    by_trade_no(books, account, &trade_no)
}

/// The offer behind a QR code or cashier page.
pub(super) fn offer(books: &dyn Books, code: &str) -> Option<Order> {
    read(books, OFFERS, code)
}

/// The newest offer of the merchant's number.
pub(super) fn latest_offer(books: &dyn Books, account: &str, out_trade_no: &str) -> Option<Order> {
    let code: String = read(books, LATEST_OFFERS, &key(account, out_trade_no))?;
    offer(books, &code)
}

/// Offers an order; the answer is the code that a buyer opens it by.
pub(super) fn make_offer(books: &mut dyn Books, order: &Order) -> String {
    let code = format!("bax{}{}", draw_digits(books, 10), draw_digits(books, 14));
    write(books, OFFERS, &code, order);
    write(books, LATEST_OFFERS, &key(&order.account, &order.out_trade_no), &code);
    let entry = charge_entry(order);
    books.know(entry);
    code
}

/// Makes the trade of an order.
pub(super) fn register(books: &mut dyn Books, order: Order) -> Trade {
    let now = books.now();
    let entry = charge_entry(&order);
    books.know(entry);
    let trade = Trade {
        trade_no: format!("{}{}", when::number(now), draw_digits(books, 7)),
        state: State::WaitBuyerPay,
        created: now,
        paid: None,
        closed: None,
        refunds: Vec::new(),
        cancelled: false,
        asks_password: false,
        pays_at_next_query: false,
        order,
    };
    write(books, NUMBERS, &key(&trade.order.account, &trade.order.out_trade_no), &trade.trade_no);
    keep(books, &trade);
    wake(books, &trade, trade.order.expires);
    trade
}

/// Stores a trade.
pub(super) fn keep(books: &mut dyn Books, trade: &Trade) {
    write(books, TRADES, &key(&trade.order.account, &trade.trade_no), trade);
}

/// The buyer's money comes in.
pub(super) fn pay(side: &Gateway, books: &mut dyn Books, trade: &mut Trade) {
    let now = books.now();
    if trade.order.buyer.is_none() {
        trade.order.buyer = Some(format!("2088{}", draw_digits(books, 12)));
    }
    trade.state = State::TradeSuccess;
    trade.paid = Some(now);
    trade.closed = None;
    trade.pays_at_next_query = false;
    keep(books, trade);
    let entry = charge_entry(&trade.order);
    books.book(entry);
    wake(books, trade, now.plus(REFUNDABLE));
    notice::tell(side, books, trade, "paid", None);
}

/// A second payment of an order that is paid: money that should not have come, under a trade number of its own.
pub(super) fn pay_again(side: &Gateway, books: &mut dyn Books, first: &Trade) -> Trade {
    let now = books.now();
    let mut second =
        Trade { trade_no: format!("{}{}", when::number(now), draw_digits(books, 7)), created: now, refunds: Vec::new(), ..first.clone() };
    second.cancelled = false;
    pay(side, books, &mut second);
    second
}

/// An unpaid trade ends.
pub(super) fn close(side: &Gateway, books: &mut dyn Books, trade: &mut Trade) {
    trade.state = State::TradeClosed;
    trade.closed = Some(books.now());
    keep(books, trade);
    notice::tell(side, books, trade, "closed", None);
}

/// Money goes back. The caller has checked that it is there.
pub(super) fn refund(side: &Gateway, books: &mut dyn Books, trade: &mut Trade, out_request_no: &str, amount: i64) {
    let now = books.now();
    trade.refunds.push(Refund { out_request_no: out_request_no.to_owned(), amount, at: now });
    if trade.refunded() >= trade.order.total {
        trade.state = State::TradeClosed;
        trade.closed = Some(now);
    }
    keep(books, trade);
    books.book(Entry {
        account: trade.order.account.clone(),
        kind: EntryKind::Refund,
        channel_ref: out_request_no.to_owned(),
        order_ref: Some(trade.order.out_trade_no.clone()),
        amount: yuan(amount),
    });
    notice::tell(side, books, trade, "refund", Some(out_request_no));
}

/// Closes what has expired and finishes what cannot be refunded any more.
pub(super) fn pass_time(side: &Gateway, books: &mut dyn Books) {
    let now = books.now();
    while let Some(due) = books.first(DUE) {
        if moment(&due) > now {
            return;
        }
        books.remove(DUE, &due);
        let mut parts = due.splitn(3, '/').skip(1);
        let (Some(account), Some(trade_no)) = (parts.next(), parts.next()) else { continue };
        let Some(mut trade) = by_trade_no(books, account, trade_no) else { continue };
        match trade.state {
            State::WaitBuyerPay if trade.order.expires <= now => close(side, books, &mut trade),
            State::TradeSuccess if trade.paid.is_some_and(|paid| paid.plus(REFUNDABLE) <= now) => {
                trade.state = State::TradeFinished;
                keep(books, &trade);
                notice::tell(side, books, &trade, "finished", None);
            }
            State::WaitBuyerPay | State::TradeSuccess | State::TradeFinished | State::TradeClosed => {}
        }
    }
}

/// When something is due next.
pub(super) fn next_wake(books: &dyn Books) -> Option<Timestamp> {
    books.first(DUE).map(|due| moment(&due))
}

fn moment(due: &str) -> Timestamp {
    due.split('/').next().and_then(|text| text.parse().ok()).map_or(Timestamp(i64::MIN), Timestamp)
}

fn wake(books: &mut dyn Books, trade: &Trade, at: Timestamp) {
    // Twenty digits, so that the order of the text is the order of time.
    books.put(DUE, &format!("{:020}/{}/{}", at.0.max(0), trade.order.account, trade.trade_no), Value::Null);
}

fn charge_entry(order: &Order) -> Entry {
    Entry {
        account: order.account.clone(),
        kind: EntryKind::Charge,
        channel_ref: order.out_trade_no.clone(),
        order_ref: None,
        amount: yuan(order.total),
    }
}

/// Fen as money.
pub(super) const fn yuan(fen: i64) -> Money {
    Money::new(fen, Currency::CNY)
}
