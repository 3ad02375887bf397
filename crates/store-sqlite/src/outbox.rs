//! Events waiting to be published, and the merchant's feed.
//!
//! In: calls of the port. Out: deliveries in each payment's order, and positions without gaps. Rows are written by a payment's change.

use std::time::Duration;

use async_trait::async_trait;
use payonce_core::clock::Timestamp;
use payonce_core::event::Event;
use payonce_core::id::{EventId, PaymentId, TenantId};
use payonce_core::ports::StoreFault;
use payonce_core::ports::outbox::{Delivered, Delivery, FeedItem, Outbox};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::fault::Fault;
use crate::records::bound;
use crate::statements as sql;

#[async_trait]
impl Outbox for SqliteStore {
    async fn take_events(&self, now: Timestamp, hold: Duration, limit: usize) -> Result<Vec<Delivery>, StoreFault> {
        self.write(move |connection| {
            let mut statement = connection.prepare_cached(sql::OUTBOX_TAKE)?;
            let taken = statement.query_and_then(params![now.0, now.plus(hold).0, bound(limit)], |row| {
                let delivery = Delivery { event: event(row, 4)?, tries: row.get(2)?, notify_url: row.get(3)? };
                Ok::<_, Fault>(((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?), delivery))
            })?;
            let mut taken = taken.collect::<Result<Vec<_>, Fault>>()?;
            // RETURNING gives no order.
            taken.sort_by_key(|(due, _)| *due);
            Ok(taken.into_iter().map(|(_, delivery)| delivery).collect())
        })
        .await
    }

    async fn delivered(&self, tenant: &TenantId, id: &EventId, how: &Delivered) -> Result<(), StoreFault> {
        let (tenant, id, how) = (tenant.clone(), id.clone(), how.clone());
        self.write(move |connection| {
            let (state, next, note) = match &how {
                Delivered::Acknowledged => ("acknowledged", None, None),
                Delivered::Again(at) => ("waiting", Some(at.0), None),
                Delivered::Dead(why) => ("dead", None, Some(why.as_str())),
                Delivered::FeedOnly => ("feed_only", None, None),
            };
            connection.prepare_cached(sql::OUTBOX_DELIVERED)?.execute(params![tenant.as_str(), id.as_str(), state, next, note])?;
            Ok(())
        })
        .await
    }

    async fn position_events(&self, limit: usize) -> Result<usize, StoreFault> {
        self.write(move |connection| {
            let mut statement = connection.prepare_cached(sql::OUTBOX_UNNUMBERED)?;
            let tenants = statement.query_map([bound(limit)], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
            let mut count = 0;
            for tenant in tenants {
                count += number(connection, &tenant, limit.saturating_sub(count))?;
            }
            Ok(count)
        })
        .await
    }

    async fn feed(&self, tenant: &TenantId, after: Option<&EventId>, limit: usize) -> Result<Option<Vec<FeedItem>>, StoreFault> {
        let (tenant, after) = (tenant.clone(), after.cloned());
        self.read(move |connection| {
            let start = match after {
                None => Some(0),
                Some(after) => {
                    let params = [tenant.as_str(), after.as_str()];
                    let place: Option<Option<i64>> =
                        connection.prepare_cached(sql::OUTBOX_PLACE)?.query_row(params, |row| row.get(0)).optional()?;
                    let Some(place) = place else { return Ok(None) };
                    place
                }
            };
            // An event that has no place yet is behind everything that has one.
            let Some(start) = start else { return Ok(Some(Vec::new())) };
            let mut statement = connection.prepare_cached(sql::OUTBOX_FEED)?;
            let items = statement.query_and_then(params![tenant.as_str(), start, bound(limit)], |row| {
                Ok::<_, Fault>(FeedItem { position: row.get(0)?, event: event(row, 2)?, delivery: row.get(1)? })
            })?;
            Ok(Some(items.collect::<Result<_, _>>()?))
        })
        .await
    }

    async fn events_of(&self, tenant: &TenantId, payment: &PaymentId) -> Result<Vec<(Event, String)>, StoreFault> {
        let (tenant, payment) = (tenant.clone(), payment.clone());
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(sql::OUTBOX_OF_PAYMENT)?;
            let events = statement.query_and_then([tenant.as_str(), payment.as_str()], |row| Ok((event(row, 0)?, row.get(1)?)))?;
            events.collect()
        })
        .await
    }
}

/// Numbers one tenant's events.
fn number(connection: &Connection, tenant: &str, limit: usize) -> Result<usize, Fault> {
    connection.prepare_cached(sql::OUTBOX_MAKE_HEAD)?.execute([tenant])?;
    let last: i64 = connection.prepare_cached(sql::OUTBOX_LOCK_HEAD)?.query_row([tenant], |row| row.get(0))?;
    let count = connection.prepare_cached(sql::OUTBOX_NUMBER)?.execute(params![tenant, last, bound(limit)])?;
    connection.prepare_cached(sql::OUTBOX_RAISE_HEAD)?.execute(params![tenant, bound(count)])?;
    Ok(count)
}

fn event(row: &Row<'_>, column: usize) -> Result<Event, Fault> {
    Ok(serde_json::from_str(row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?)?)
}
