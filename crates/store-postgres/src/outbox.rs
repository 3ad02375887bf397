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

use crate::PostgresStore;
use crate::fault::{Effect, repeating};
use crate::rows::{self, at, bound, doc, total};
use crate::session::{Failed, Session};
use crate::statement as sql;

#[async_trait]
impl Outbox for PostgresStore {
    async fn take_events(&self, now: Timestamp, hold: Duration, limit: usize) -> Result<Vec<Delivery>, StoreFault> {
        let taken = self.change(&sql::OUTBOX_TAKE, &[&now.0, &now.plus(hold).0, &bound(limit)]).await?;
        let mut taken: Vec<((i64, i64), Delivery)> = taken
            .iter()
            .map(|row| {
                let tries = u32::try_from(at::<i64>(row, 2)?).unwrap_or(u32::MAX);
                Ok(((at(row, 0)?, at(row, 1)?), Delivery { event: doc(row, 4)?, tries, notify_url: at(row, 3)? }))
            })
            .collect::<Result<_, StoreFault>>()?;
        // RETURNING gives no order.
        taken.sort_by_key(|(due, _)| *due);
        Ok(taken.into_iter().map(|(_, delivery)| delivery).collect())
    }

    async fn delivered(&self, tenant: &TenantId, id: &EventId, how: &Delivered) -> Result<(), StoreFault> {
        let (state, next, note) = match how {
            Delivered::Acknowledged => ("acknowledged", None, None),
            Delivered::Again(at) => ("waiting", Some(at.0), None),
            Delivered::Dead(why) => ("dead", None, Some(rows::text(why))),
            Delivered::FeedOnly => ("feed_only", None, None),
        };
        self.count(&sql::OUTBOX_DELIVERED, &[&tenant.as_str(), &id.as_str(), &state, &next, &note]).await.map(drop)
    }

    async fn position_events(&self, limit: usize) -> Result<usize, StoreFault> {
        let tenants = self.rows(&sql::OUTBOX_UNNUMBERED, &[&bound(limit)]).await?;
        let mut count = 0;
        for row in &tenants {
            if count >= limit {
                break;
            }
            let tenant: &str = at(row, 0)?;
            count += repeating(|| number_once(self, tenant, limit - count)).await?;
        }
        Ok(count)
    }

    async fn feed(&self, tenant: &TenantId, after: Option<&EventId>, limit: usize) -> Result<Option<Vec<FeedItem>>, StoreFault> {
        let start = match after {
            None => Some(0),
            Some(after) => {
                let place = self.rows(&sql::OUTBOX_PLACE, &[&tenant.as_str(), &after.as_str()]).await?;
                let Some(place) = place.first() else { return Ok(None) };
                at::<Option<i64>>(place, 0)?
            }
        };
        // An event that has no place yet is behind everything that has one.
        let Some(start) = start else { return Ok(Some(Vec::new())) };
        let found = self.rows(&sql::OUTBOX_FEED, &[&tenant.as_str(), &start, &bound(limit)]).await?;
        let items = found.iter().map(|row| Ok(FeedItem { position: at(row, 0)?, event: doc(row, 2)?, delivery: at(row, 1)? }));
        items.collect::<Result<_, StoreFault>>().map(Some)
    }

    async fn events_of(&self, tenant: &TenantId, payment: &PaymentId) -> Result<Vec<(Event, String)>, StoreFault> {
        let found = self.rows(&sql::OUTBOX_OF_PAYMENT, &[&tenant.as_str(), &payment.as_str()]).await?;
        found.iter().map(|row| Ok((doc(row, 0)?, at(row, 1)?))).collect()
    }
}

/// Numbers one tenant's events in a transaction that holds the tenant's head.
async fn number_once(store: &PostgresStore, tenant: &str, limit: usize) -> Result<usize, StoreFault> {
    let session = store.session().await?;
    let work = async {
        match numbered(&session, tenant, limit).await {
            Ok(count) => session.commit().await.map(|()| total(count)),
            Err(failed) => {
                let fault = session.fault(failed, Effect::None);
                session.roll_back().await;
                Err(fault)
            }
        }
    };
    session.within(Effect::None, work).await
}

async fn numbered(session: &Session, tenant: &str, limit: usize) -> Result<u64, Failed> {
    session.ready(&[&sql::OUTBOX_MAKE_HEAD, &sql::OUTBOX_LOCK_HEAD]).await?;
    let heads: [&(dyn tokio_postgres::types::ToSql + Sync); 1] = [&tenant];
    let (begun, made, locked) = tokio::join!(
        biased;
        session.begin(),
        session.count(&sql::OUTBOX_MAKE_HEAD, &heads),
        session.rows(&sql::OUTBOX_LOCK_HEAD, &heads),
    );
    begun?;
    made?;
    let locked = locked?;
    let last: i64 = locked.first().map_or(Ok(0), |row| at(row, 0))?;
    let count = session.count(&sql::OUTBOX_NUMBER, &[&tenant, &last, &bound(limit)]).await?;
    session.count(&sql::OUTBOX_RAISE_HEAD, &[&tenant, &bound(total(count))]).await?;
    Ok(count)
}
