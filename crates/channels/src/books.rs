//! A channel's own side: what the sandbox needs of it, and what it may do with the sandbox's books.
//!
//! What comes in: a request as it arrived, a buyer's act, the passing of time. What goes out: answers and notifications, authenticated
//! and signed as the channel does, and entries in the true ledger. A side is pure and synchronous: faults, delays and delivery are the
//! sandbox's business, and all state is kept through [`Books`]. A side never imports its sibling's signing or request code, so that
//! one mistake cannot hide on both sides.

use std::fmt;
use std::time::Duration;

use payonce_core::clock::Timestamp;
use payonce_core::money::Money;
use payonce_core::notification::RawRequest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::contract::Operation;

/// An answer of a channel, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideReply {
    /// HTTP status.
    pub status: u16,
    /// In order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl SideReply {
    /// An answer with a media type.
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: vec![("content-type".to_owned(), content_type.to_owned())], body: body.into() }
    }
}

/// An answer before it is signed. Signing is slow and needs no books, so it happens after they are closed.
#[derive(Clone, Debug, PartialEq)]
pub enum Draft {
    /// The content; [`Side::finish`] puts it into the channel's form and signs it.
    Content(Value),
    /// Nothing left to do.
    Ready(SideReply),
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// As usual.
    Plain,
    /// Correct and correctly signed, but written so that a reader that parses and writes again, or matches braces badly, fails.
    Awkward,
    /// With a signature that does not verify.
    BadSignature,
}

/// A request that the channel has authenticated and understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Recognised {
    /// Whose.
    pub account: String,
    /// What it does; `None` for what has no name among the faults (a page that the buyer opens).
    pub operation: Option<Operation>,
    /// The reference that it names: of a refund the refund's own, else the order's.
    pub channel_ref: Option<String>,
    /// Of a refund or capture, the order that it belongs to.
    pub order_ref: Option<String>,
    /// The amount that it names.
    pub amount: Option<Money>,
    /// What the side has read, for [`Side::execute`].
    pub content: Value,
}

/// What kind of thing the ledger counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// Money taken (or an order that waits for it).
    Charge,
    /// Reserved money taken.
    Capture,
    /// Money given back.
    Refund,
    /// An order ended.
    Close,
}

impl EntryKind {
    /// What a request of this operation is counted as.
    pub const fn of(operation: Operation) -> Option<Self> {
        match operation {
            Operation::Charge => Some(Self::Charge),
            Operation::Capture => Some(Self::Capture),
            Operation::Refund => Some(Self::Refund),
            Operation::Close | Operation::Void => Some(Self::Close),
            Operation::Query | Operation::RefundQuery | Operation::Token | Operation::Certificates => None,
        }
    }
}

/// A line of the true ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Whose.
    pub account: String,
    /// What.
    pub kind: EntryKind,
    /// Under which reference.
    pub channel_ref: String,
    /// Of a refund or capture, the order that it belongs to.
    pub order_ref: Option<String>,
    /// How much.
    pub amount: Money,
}

/// Something that the channel tells the merchant. [`Side::compose`] makes the bytes anew for each delivery.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// Whose.
    pub account: String,
    /// About which order.
    pub order_ref: String,
    /// For people and for choosing: `paid`, `refund`, `closed` …
    pub kind: String,
    /// The channel's id of it, for the list of notifications.
    pub id: String,
    /// Where to.
    pub url: String,
    /// For [`Side::compose`].
    pub content: Value,
}

/// How a notification is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// As the channel does.
    Genuine,
    /// By somebody who has not got the channel's key.
    Forged,
    /// Signed by the channel, then changed.
    Tampered,
    /// Signed by the channel a long time ago.
    Stale,
}

/// A delivery, byte for byte. It is always a POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireNotice {
    /// In order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// What a buyer (or somebody at the channel's console) does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuyerAction {
    /// Pays.
    Pay,
    /// Pays once more, although the order is paid or closed: money that should not have come.
    PayAgain,
    /// Refuses to pay.
    Decline,
    /// Opens the order and leaves.
    Abandon,
    /// Money goes back without our asking.
    RefundAtConsole,
    /// The buyer has the money taken back.
    Dispute,
}

/// Why a buyer cannot do that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuyerFault {
    /// The channel has not heard of the order: what to do about it.
    Unknown(String),
    /// Not in this state: the rule.
    NotNow(String),
    /// This channel has no such thing.
    NotHere(String),
}

/// Why a channel refuses a sound request, in its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Too many requests.
    RateLimited,
    /// The same reference is being worked on.
    InProgress,
    /// Definitely not, for a business reason (no balance).
    Declined,
}

/// An account at the simulated channel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SideAccount {
    /// The channel.
    pub channel: &'static str,
    /// The account's name in the product: unique in the installation.
    pub account: String,
    /// 1 or 2: which of the product's two sandbox tenants it is for.
    pub tenant: u8,
    /// The settings of an account of the product that is pointed at this sandbox.
    pub settings: Value,
    /// Both sides' keys. For tests only: they are public.
    pub keys: Value,
    /// What the channel does on special input: codes and cards that decline, wait, time out.
    pub special: Value,
}

/// Where a side keeps its truth. Calls between [`Side::execute`]'s start and end are one step: nobody else sees the middle.
pub trait Books {
    /// By the channels' clock.
    fn now(&self) -> Timestamp;
    /// Where the sandbox answers: `http://127.0.0.1:9090`.
    fn base_url(&self) -> &str;
    /// Whether buyers pay as soon as they can.
    fn buyer_pays_at_once(&self) -> bool;
    /// Random bytes that follow from the sandbox's seed.
    fn draw(&mut self, into: &mut [u8]);
    /// A row that was put, if there is one.
    fn row(&self, table: &'static str, key: &str) -> Option<&Value>;
    /// Puts a row in its place.
    fn put(&mut self, table: &'static str, key: &str, row: Value);
    /// Takes a row away.
    fn remove(&mut self, table: &'static str, key: &str);
    /// The first key of a table, in byte order.
    fn first(&self, table: &'static str) -> Option<String>;
    /// The order or refund is known; nothing was executed.
    fn know(&mut self, entry: Entry);
    /// It was executed, once more.
    fn book(&mut self, entry: Entry);
    /// To be told to the merchant.
    fn notify(&mut self, notice: Notice);
}

/// Reads a row of a type. A row of another shape counts as none.
pub fn read<T: DeserializeOwned>(books: &dyn Books, table: &'static str, key: &str) -> Option<T> {
    books.row(table, key).and_then(|row| T::deserialize(row).ok())
}

/// Puts a row of a type.
pub fn write<T: Serialize>(books: &mut dyn Books, table: &'static str, key: &str, row: &T) {
    // The rows are plain structs with text keys, which always have a JSON form.
    books.put(table, key, serde_json::to_value(row).unwrap_or(Value::Null));
}

/// A number of `digits` random decimal digits (at most 18).
pub fn draw_digits(books: &mut dyn Books, digits: u32) -> String {
    let mut bytes = [0u8; 8];
    books.draw(&mut bytes);
    let width = usize::try_from(digits.min(18)).unwrap_or(18);
    let number = u64::from_le_bytes(bytes) % 10u64.pow(digits.min(18));
    format!("{number:0width$}")
}

/// A channel's own side.
pub trait Side: Send + Sync + fmt::Debug {
    /// Its public name, which is also the first segment of its paths.
    fn channel(&self) -> &'static str;

    /// The test accounts of a sandbox at `base_url`.
    fn accounts(&self, base_url: &str) -> Vec<SideAccount>;

    /// Authenticates a request as the channel does and says what it asks for; or the channel's refusal.
    fn recognise(&self, request: &RawRequest) -> Result<Recognised, SideReply>;

    /// Completes the references of a request that names an order by the channel's own id only.
    fn resolve(&self, books: &dyn Books, request: &mut Recognised) {
        let _ = (books, request);
    }

    /// Does what is asked.
    fn execute(&self, books: &mut dyn Books, request: &Recognised) -> Draft;

    /// Puts an answer into the channel's form and signs it as the channel does.
    fn finish(&self, request: &Recognised, draft: Draft, how: Finish) -> SideReply;

    /// Whether the channel signs its answers: without that a bad signature cannot be shown.
    fn signs_answers(&self) -> bool;

    /// Refuses a sound request in the channel's words, without executing it.
    fn refuse(&self, request: &Recognised, why: Refused) -> Draft;

    /// The channel's broken server: an answer of class 5xx. `executed` has the answer that is lost by it, where it was executed.
    fn fail(&self, books: &mut dyn Books, request: &Recognised, executed: Option<&Draft>) -> Draft {
        let _ = (books, request, executed);
        Draft::Ready(SideReply::new(500, "text/html;charset=utf-8", "<html><body>Internal Server Error</body></html>"))
    }

    /// What the buyer does. `amount` is in the order's minor units. The answer tells the new state.
    fn buyer(
        &self,
        books: &mut dyn Books,
        account: Option<&str>,
        channel_ref: &str,
        action: BuyerAction,
        amount: Option<i64>,
    ) -> Result<Value, BuyerFault>;

    /// Does what the passing of time does: expiry of orders, and so on.
    fn tick(&self, books: &mut dyn Books);

    /// When [`Side::tick`] has something to do next.
    fn wakes_at(&self, books: &dyn Books) -> Option<Timestamp>;

    /// The notice that an order is paid, whether or not it is: the material of forgers. `None` for an order nobody has heard of, or
    /// that gave no address.
    fn pretend_paid(&self, books: &mut dyn Books, account: Option<&str>, channel_ref: &str) -> Option<Notice>;

    /// The bytes of a notification.
    fn compose(&self, notice: &Notice, now: Timestamp, how: Variant) -> WireNotice;

    /// Whether the merchant's answer to a notification acknowledges it.
    fn acknowledged(&self, status: u16, body: &[u8]) -> bool;

    /// The gaps between deliveries of a notification that is not acknowledged.
    fn redelivery(&self) -> &'static [Duration];
}

/// The channels that have a side.
pub fn sides() -> Result<Vec<Box<dyn Side>>, String> {
    Ok(vec![Box::new(crate::alipay::sandbox::Gateway::new()?)])
}
