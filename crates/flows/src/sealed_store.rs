//! A store whose merchants' own texts are sealed (I12, B091): a card number that somebody writes into `metadata` lies in no table in clear.
//!
//! In: any [`Store`], the key ring, chance. Out: a [`Store`] again, which gives back exactly what it was given. Rows that were written before
//! there was sealing are read as they are. Never: a text in clear handed down, or a text that does not open handed up.

mod letters;
mod plain;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use payonce_core::channel::AccountName;
use payonce_core::clock::{Entropy, Timestamp};
use payonce_core::event::Event;
use payonce_core::id::{EventId, MerchantRef, PaymentId, RefundId, TenantId};
use payonce_core::payment::Payment;
use payonce_core::payment::change::{AuditEntry, Change};
use payonce_core::ports::outbox::{Delivered, Delivery, FeedItem, Outbox};
use payonce_core::ports::payments::{Applied, Filter, Payments};
use payonce_core::ports::{Store, StoreFault};
use payonce_core::secret::Keyring;

/// Seals on the way in and opens on the way out: a payment's `metadata`, `description`, `return_url` and `notify_url`, a refund's `reason`, an
/// event's `data`. What is searched for or constrained stays as it is; so do the guard's records, the inbox and the directory, whose secrets are
/// sealed by those who write them.
///
/// A value that does not open is [`StoreFault::Refused`].
#[derive(Clone)]
pub struct SealedStore {
    inner: Arc<dyn Store>,
    keyring: Arc<Keyring>,
    entropy: Arc<dyn Entropy>,
}

impl SealedStore {
    /// Over a store. The ring's first key seals, all open: a key may leave the ring only when no row is sealed with it.
    pub const fn new(inner: Arc<dyn Store>, keyring: Arc<Keyring>, entropy: Arc<dyn Entropy>) -> Self {
        Self { inner, keyring, entropy }
    }
}

impl fmt::Debug for SealedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealedStore({:?})", self.keyring)
    }
}

#[async_trait]
impl Payments for SealedStore {
    async fn load(&self, tenant: &TenantId, id: &PaymentId) -> Result<Option<Payment>, StoreFault> {
        self.inner.load(tenant, id).await?.map(|payment| self.opened_payment(payment)).transpose()
    }

    async fn load_order(&self, tenant: &TenantId, order: &MerchantRef) -> Result<Option<Payment>, StoreFault> {
        self.inner.load_order(tenant, order).await?.map(|payment| self.opened_payment(payment)).transpose()
    }

    async fn find_attempt(&self, tenant: &TenantId, account: &AccountName, channel_ref: &str) -> Result<Option<PaymentId>, StoreFault> {
        self.inner.find_attempt(tenant, account, channel_ref).await
    }

    async fn find_refund(&self, tenant: &TenantId, id: &RefundId) -> Result<Option<PaymentId>, StoreFault> {
        self.inner.find_refund(tenant, id).await
    }

    async fn list(&self, tenant: &TenantId, filter: &Filter) -> Result<Vec<Payment>, StoreFault> {
        self.inner.list(tenant, filter).await?.into_iter().map(|payment| self.opened_payment(payment)).collect()
    }

    async fn apply(&self, change: &Change) -> Result<Applied, StoreFault> {
        self.inner.apply(&self.sealed_change(change)?).await
    }

    async fn take_due(&self, now: Timestamp, hold: Duration, limit: usize) -> Result<Vec<(TenantId, PaymentId)>, StoreFault> {
        self.inner.take_due(now, hold, limit).await
    }

    async fn let_go(&self, tenant: &TenantId, id: &PaymentId) -> Result<(), StoreFault> {
        self.inner.let_go(tenant, id).await
    }

    async fn timeline(&self, tenant: &TenantId, id: &PaymentId) -> Result<Vec<AuditEntry>, StoreFault> {
        self.inner.timeline(tenant, id).await
    }
}

#[async_trait]
impl Outbox for SealedStore {
    /// One event that does not open is left out and stays held, so that it does not stop the others; a batch in which none opens is refused.
    async fn take_events(&self, now: Timestamp, hold: Duration, limit: usize) -> Result<Vec<Delivery>, StoreFault> {
        let taken = self.inner.take_events(now, hold, limit).await?;
        let mut opened = Vec::with_capacity(taken.len());
        let mut refused = None;
        for delivery in taken {
            let id = delivery.event.id.clone();
            match self.opened_delivery(delivery) {
                Ok(delivery) => opened.push(delivery),
                Err(fault) => {
                    tracing::error!(event = %id, %fault, "an event is not delivered: it does not open");
                    refused = Some(fault);
                }
            }
        }
        refused.filter(|_| opened.is_empty()).map_or(Ok(opened), Err)
    }

    async fn delivered(&self, tenant: &TenantId, id: &EventId, how: &Delivered) -> Result<(), StoreFault> {
        self.inner.delivered(tenant, id, how).await
    }

    async fn position_events(&self, limit: usize) -> Result<usize, StoreFault> {
        self.inner.position_events(limit).await
    }

    async fn feed(&self, tenant: &TenantId, after: Option<&EventId>, limit: usize) -> Result<Option<Vec<FeedItem>>, StoreFault> {
        let Some(items) = self.inner.feed(tenant, after, limit).await? else { return Ok(None) };
        let opened = items.into_iter().map(|item| Ok(FeedItem { event: self.opened_event(item.event)?, ..item }));
        opened.collect::<Result<_, StoreFault>>().map(Some)
    }

    async fn events_of(&self, tenant: &TenantId, payment: &PaymentId) -> Result<Vec<(Event, String)>, StoreFault> {
        let events = self.inner.events_of(tenant, payment).await?;
        events.into_iter().map(|(event, delivery)| Ok((self.opened_event(event)?, delivery))).collect()
    }
}
