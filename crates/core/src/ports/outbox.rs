//! Events waiting to be published, and the merchant's feed. Rows are written by [`super::payments::Payments::apply`].

use std::time::Duration;

use async_trait::async_trait;

use super::StoreFault;
use crate::clock::Timestamp;
use crate::event::Event;
use crate::id::{EventId, PaymentId, TenantId};

/// An event that is to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The event.
    pub event: Event,
    /// How often it was tried before.
    pub tries: u32,
    /// Where the payment wants it; else the tenant's address counts.
    pub notify_url: Option<String>,
}

/// How a delivery ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// Acknowledged.
    Acknowledged,
    /// To be tried again then.
    Again(Timestamp),
    /// Given up: dead-lettered, still in the feed.
    Dead(String),
    /// There is nowhere to send it: only the feed has it.
    FeedOnly,
}

/// An event in the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedItem {
    /// Its position in the tenant's feed, from 1, without gaps.
    pub position: i64,
    /// The event.
    pub event: Event,
    /// `waiting`, `acknowledged`, `dead`, `feed_only`.
    pub delivery: String,
}

/// Events.
#[async_trait]
pub trait Outbox: Send + Sync + 'static {
    /// Takes at most `limit` events whose time has come, that no node holds, and whose payment has no earlier event that is still to be delivered
    /// (by version, then `n`), and holds them for `hold`.
    async fn take_events(&self, now: Timestamp, hold: Duration, limit: usize) -> Result<Vec<Delivery>, StoreFault>;

    /// Ends or postpones a delivery. An acknowledged one stays acknowledged. Counts the try.
    async fn delivered(&self, tenant: &TenantId, id: &EventId, how: &Delivered) -> Result<(), StoreFault>;

    /// Gives events without one their position in their tenant's feed, in the order of their payments' versions. Serialised per tenant by a row
    /// lock or lease; events that commit later get later positions, so a reader of the feed never misses one. How many got one.
    async fn position_events(&self, limit: usize) -> Result<usize, StoreFault>;

    /// The feed after an event (from the start without one), at most `limit`. `None` where the tenant has no such event.
    async fn feed(&self, tenant: &TenantId, after: Option<&EventId>, limit: usize) -> Result<Option<Vec<FeedItem>>, StoreFault>;

    /// All events of a payment, in order, with how their delivery stands.
    async fn events_of(&self, tenant: &TenantId, payment: &PaymentId) -> Result<Vec<(Event, String)>, StoreFault>;
}
