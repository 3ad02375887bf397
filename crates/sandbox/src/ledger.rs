//! The truth: what was really executed, what arrived, and the rows that the channels' sides keep.

use std::collections::{BTreeMap, VecDeque};

use payonce_channels::books::{Books, Entry, EntryKind, Notice, Recognised};
use payonce_channels::contract::Operation;
use payonce_core::clock::Timestamp;
use payonce_core::money::Money;
use serde::Serialize;
use serde_json::Value;

/// A line of the true ledger.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Which channel.
    pub channel: &'static str,
    /// Whose account.
    pub account: String,
    /// The reference: of a refund or capture its own.
    pub channel_ref: String,
    /// Of a refund or capture, the order that it belongs to.
    pub order_ref: Option<String>,
    /// What.
    pub kind: EntryKind,
    /// In minor units; `null` where no request has named it.
    pub amount: Option<i64>,
    /// ISO 4217.
    pub currency: Option<String>,
    /// When it was last executed, else when it was first heard of. RFC 3339.
    pub at: String,
    /// How often it was really executed.
    pub executed: u64,
    /// How many requests named it.
    pub requests: u64,
}

/// Something that arrived.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Arrival {
    pub(crate) number: u64,
    pub(crate) at: String,
    pub(crate) channel: &'static str,
    /// `null` where it was not authenticated.
    pub(crate) account: Option<String>,
    pub(crate) operation: Option<Operation>,
    pub(crate) channel_ref: Option<String>,
    pub(crate) order_ref: Option<String>,
    pub(crate) method: String,
    pub(crate) path_and_query: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// What the side has read.
    pub(crate) content: Value,
    /// The fault that it met.
    pub(crate) fault: Option<crate::faults::Kind>,
    /// Whether it was executed (a look-up too).
    pub(crate) executed: bool,
    /// The status of the answer; `null` where there was none yet, or none at all.
    pub(crate) status: Option<u16>,
}

/// So many arrivals are kept; older ones are forgotten (their counts in the ledger are not).
const ARRIVALS_KEPT: usize = 50_000;

type Key = (&'static str, String, EntryKind, String);

/// The ledger.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    rows: Vec<Row>,
    places: BTreeMap<Key, usize>,
    arrivals: VecDeque<Arrival>,
    arrived: u64,
}

impl Ledger {
    fn row(&mut self, channel: &'static str, entry: Entry, now: Timestamp) -> Option<&mut Row> {
        let key = (channel, entry.account.clone(), entry.kind, entry.channel_ref.clone());
        let place = *self.places.entry(key).or_insert_with(|| {
            self.rows.push(Row {
                channel,
                account: entry.account,
                channel_ref: entry.channel_ref,
                order_ref: entry.order_ref.clone(),
                kind: entry.kind,
                amount: None,
                currency: None,
                at: now.to_string(),
                executed: 0,
                requests: 0,
            });
            self.rows.len() - 1
        });
        let row = self.rows.get_mut(place)?;
        if row.order_ref.is_none() {
            row.order_ref = entry.order_ref;
        }
        Some(row)
    }

    fn know(&mut self, channel: &'static str, entry: Entry, now: Timestamp) {
        let amount = entry.amount;
        if let Some(row) = self.row(channel, entry, now).filter(|row| row.executed == 0) {
            set_amount(row, amount);
        }
    }

    fn book(&mut self, channel: &'static str, entry: Entry, now: Timestamp) {
        let amount = entry.amount;
        if let Some(row) = self.row(channel, entry, now) {
            set_amount(row, amount);
            row.executed += 1;
            row.at = now.to_string();
        }
    }

    /// Counts a request for the row that it names.
    pub(crate) fn count(&mut self, channel: &'static str, request: &Recognised, now: Timestamp) {
        let kind = request.operation.and_then(EntryKind::of);
        let (Some(kind), Some(channel_ref)) = (kind, request.channel_ref.clone()) else { return };
        let unnamed = Money::zero(payonce_core::money::Currency::CNY);
        let amount = request.amount;
        let entry = Entry {
            account: request.account.clone(),
            kind,
            channel_ref,
            order_ref: request.order_ref.clone(),
            amount: amount.unwrap_or(unnamed),
        };
        if let Some(row) = self.row(channel, entry, now) {
            row.requests += 1;
            if row.amount.is_none()
                && let Some(amount) = amount
            {
                set_amount(row, amount);
            }
        }
    }

    /// Notes that something arrived; the answer is its number.
    pub(crate) fn arrive(&mut self, mut arrival: Arrival) -> u64 {
        self.arrived += 1;
        arrival.number = self.arrived;
        self.arrivals.push_back(arrival);
        if self.arrivals.len() > ARRIVALS_KEPT {
            self.arrivals.pop_front();
        }
        self.arrived
    }

    /// What is noted later about an arrival.
    pub(crate) fn arrival(&mut self, number: u64) -> Option<&mut Arrival> {
        let first = self.arrivals.front()?.number;
        self.arrivals.get_mut(usize::try_from(number.checked_sub(first)?).ok()?)
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(crate) fn arrivals(&self) -> impl Iterator<Item = &Arrival> {
        self.arrivals.iter()
    }
}

fn set_amount(row: &mut Row, amount: Money) {
    row.amount = Some(amount.minor);
    row.currency = Some(amount.currency.to_string());
}

/// The rows of one channel's side.
pub(crate) type Shelf = BTreeMap<&'static str, BTreeMap<String, Value>>;

/// Bytes that follow from a seed.
#[derive(Debug)]
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    fn next(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// The books of a channel while a side works in them.
#[derive(Debug)]
pub(crate) struct Desk<'a> {
    pub(crate) channel: &'static str,
    pub(crate) shelf: &'a mut Shelf,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) chance: &'a mut Chance,
    pub(crate) now: Timestamp,
    pub(crate) base_url: &'a str,
    pub(crate) pays_at_once: bool,
    /// What the side wants told, in order.
    pub(crate) notices: Vec<Notice>,
}

impl Books for Desk<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn base_url(&self) -> &str {
        self.base_url
    }

    fn buyer_pays_at_once(&self) -> bool {
        self.pays_at_once
    }

    fn draw(&mut self, into: &mut [u8]) {
        for chunk in into.chunks_mut(8) {
            let drawn = self.chance.next().to_le_bytes();
            for (to, from) in chunk.iter_mut().zip(drawn) {
                *to = from;
            }
        }
    }

    fn row(&self, table: &'static str, key: &str) -> Option<&Value> {
        self.shelf.get(table).and_then(|rows| rows.get(key))
    }

    fn put(&mut self, table: &'static str, key: &str, row: Value) {
        self.shelf.entry(table).or_default().insert(key.to_owned(), row);
    }

    fn remove(&mut self, table: &'static str, key: &str) {
        if let Some(rows) = self.shelf.get_mut(table) {
            rows.remove(key);
        }
    }

    fn first(&self, table: &'static str) -> Option<String> {
        self.shelf.get(table).and_then(|rows| rows.keys().next().cloned())
    }

    fn know(&mut self, entry: Entry) {
        self.ledger.know(self.channel, entry, self.now);
    }

    fn book(&mut self, entry: Entry) {
        self.ledger.book(self.channel, entry, self.now);
    }

    fn notify(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
}
