//! The outbox and the feed in memory.

use std::time::Duration;

use async_trait::async_trait;
use payonce_core::clock::Timestamp;
use payonce_core::event::Event;
use payonce_core::id::{EventId, PaymentId, TenantId};
use payonce_core::ports::StoreFault;
use payonce_core::ports::outbox::{Delivered, Delivery, FeedItem, Outbox};

use super::MemoryStore;

/// How a delivery stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Waiting,
    Acknowledged,
    Dead,
    FeedOnly,
}

impl Standing {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Acknowledged => "acknowledged",
            Self::Dead => "dead",
            Self::FeedOnly => "feed_only",
        }
    }
}

/// An event with what the store adds to it.
pub(super) struct Row {
    event: Event,
    notify_url: Option<String>,
    standing: Standing,
    tries: u32,
    next_try_at: Timestamp,
    held_until: Option<Timestamp>,
    position: Option<i64>,
}

impl Row {
    pub(super) const fn new(event: Event, notify_url: Option<String>) -> Self {
        let next_try_at = event.created_at;
        Self { event, notify_url, standing: Standing::Waiting, tries: 0, next_try_at, held_until: None, position: None }
    }

    /// Its place within its payment.
    const fn place(&self) -> (u64, u32) {
        (self.event.version, self.event.n)
    }

    fn is_of(&self, tenant: &TenantId, payment: &PaymentId) -> bool {
        self.event.tenant == *tenant && self.event.payment_id == *payment
    }
}

#[async_trait]
impl Outbox for MemoryStore {
    async fn take_events(&self, now: Timestamp, hold: Duration, limit: usize) -> Result<Vec<Delivery>, StoreFault> {
        let mut tables = self.tables();
        let events = &tables.events;
        let is_first = |row: &Row| {
            let earlier = |other: &&Row| {
                other.is_of(&row.event.tenant, &row.event.payment_id) && other.place() < row.place() && other.standing == Standing::Waiting
            };
            !events.iter().any(|other| earlier(&other))
        };
        let is_ready = |row: &Row| {
            row.standing == Standing::Waiting && row.next_try_at <= now && row.held_until.is_none_or(|until| until <= now) && is_first(row)
        };
        let ready: Vec<usize> = (0..events.len()).filter(|i| is_ready(&events[*i])).take(limit).collect();
        let taken = ready.into_iter().map(|i| {
            let row = &mut tables.events[i];
            row.held_until = Some(now.plus(hold));
            Delivery { event: row.event.clone(), tries: row.tries, notify_url: row.notify_url.clone() }
        });
        Ok(taken.collect())
    }

    async fn delivered(&self, tenant: &TenantId, id: &EventId, how: &Delivered) -> Result<(), StoreFault> {
        let mut tables = self.tables();
        let Some(row) = tables.events.iter_mut().find(|row| row.event.tenant == *tenant && row.event.id == *id) else { return Ok(()) };
        if row.standing == Standing::Acknowledged {
            return Ok(());
        }
        row.tries += 1;
        row.held_until = None;
        match how {
            Delivered::Acknowledged => row.standing = Standing::Acknowledged,
            Delivered::Again(at) => row.next_try_at = *at,
            Delivered::Dead(_) => row.standing = Standing::Dead,
            Delivered::FeedOnly => row.standing = Standing::FeedOnly,
        }
        Ok(())
    }

    async fn position_events(&self, limit: usize) -> Result<usize, StoreFault> {
        let mut tables = self.tables();
        let mut without: Vec<usize> = (0..tables.events.len()).filter(|i| tables.events[*i].position.is_none()).collect();
        // Stable: payments keep the order in which their events were written, and within one the version decides.
        without.sort_by_key(|i| tables.events[*i].place());
        without.truncate(limit);
        for i in &without {
            let tenant = tables.events[*i].event.tenant.clone();
            let last = tables.events.iter().filter(|row| row.event.tenant == tenant).filter_map(|row| row.position).max();
            tables.events[*i].position = Some(last.unwrap_or(0) + 1);
        }
        Ok(without.len())
    }

    async fn feed(&self, tenant: &TenantId, after: Option<&EventId>, limit: usize) -> Result<Option<Vec<FeedItem>>, StoreFault> {
        let tables = self.tables();
        let of_tenant = || tables.events.iter().filter(|row| row.event.tenant == *tenant);
        let from = match after {
            None => 0,
            Some(id) => match of_tenant().find(|row| row.event.id == *id) {
                // A position that is still to come lies behind all that are given.
                Some(row) => row.position.unwrap_or(i64::MAX),
                None => return Ok(None),
            },
        };
        let item = |row: &Row| {
            let position = row.position.filter(|position| *position > from)?;
            Some(FeedItem { position, event: row.event.clone(), delivery: row.standing.as_str().to_owned() })
        };
        let mut items: Vec<FeedItem> = of_tenant().filter_map(item).collect();
        items.sort_by_key(|item| item.position);
        items.truncate(limit);
        Ok(Some(items))
    }

    async fn events_of(&self, tenant: &TenantId, payment: &PaymentId) -> Result<Vec<(Event, String)>, StoreFault> {
        let tables = self.tables();
        let mut rows: Vec<&Row> = tables.events.iter().filter(|row| row.is_of(tenant, payment)).collect();
        rows.sort_by_key(|row| row.place());
        Ok(rows.into_iter().map(|row| (row.event.clone(), row.standing.as_str().to_owned())).collect())
    }
}
