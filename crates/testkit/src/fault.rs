//! A store that fails on purpose, by a plan that a seed replays.
//!
//! What comes in: any store and a plan. What goes out: the same store, some of whose calls fail before they have an effect (answered
//! `Unavailable`) or after it (answered `Ambiguous`). It never changes what a call does.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use payonce_core::channel::{AccountName, ChannelName};
use payonce_core::clock::{Fixed, Timestamp, random};
use payonce_core::event::Event;
use payonce_core::id::{ApiKeyId, EventId, InboxId, MerchantRef, PaymentId, RefundId, TenantId};
use payonce_core::notification::Verified;
use payonce_core::payment::Payment;
use payonce_core::payment::change::{AuditEntry, Change};
use payonce_core::ports::directory::{Account, ApiKey, Directory};
use payonce_core::ports::inbox::{Inbox, InboxRow, InboxStatus, InboxVerdict};
use payonce_core::ports::outbox::{Delivered, Delivery, FeedItem, Outbox};
use payonce_core::ports::payments::{Applied, Filter, Payments};
use payonce_core::ports::records::{NewClaim, Records, Seen, TakeOver, Write, Written};
use payonce_core::ports::{Store, StoreFault};
use payonce_core::record::{ClaimId, Fence, Record, RecordKey};
use payonce_core::secret::Sealed;

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It works.
    None,
    /// It fails before it has an effect: `Unavailable`.
    Before,
    /// It has its effect, and the answer is lost: `Ambiguous`.
    After,
}

/// How many of a hundred calls fail, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Before they have an effect.
    pub before_percent: u8,
    /// After it.
    pub after_percent: u8,
}

impl Rate {
    /// Nothing fails.
    pub const CALM: Self = Self { before_percent: 0, after_percent: 0 };
}

/// See the module.
#[derive(Debug)]
pub struct Faulty<S> {
    inner: S,
    entropy: Fixed,
    plan: Mutex<Plan>,
}

#[derive(Debug)]
struct Plan {
    rate: Rate,
    script: VecDeque<Fault>,
    injected: usize,
}

impl<S: Store> Faulty<S> {
    /// Fails at this rate; which calls fail follows from the seed.
    pub fn new(inner: S, seed: u64, rate: Rate) -> Self {
        Self { inner, entropy: Fixed::new(Timestamp(0), seed), plan: Mutex::new(Plan { rate, script: VecDeque::new(), injected: 0 }) }
    }

    /// The next calls have these fates, in order; after them the rate counts again.
    pub fn script(&self, fates: impl IntoIterator<Item = Fault>) {
        self.plan().script.extend(fates);
    }

    /// From now on calls fail at this rate.
    pub fn set_rate(&self, rate: Rate) {
        self.plan().rate = rate;
    }

    /// How many calls failed on purpose.
    pub fn injected(&self) -> usize {
        self.plan().injected
    }

    /// The store behind.
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    fn plan(&self) -> std::sync::MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Fault {
        let mut plan = self.plan();
        let fate = plan.script.pop_front().unwrap_or_else(|| {
            let drawn = u32::from_le_bytes(random(&self.entropy)) % 100;
            let before = u32::from(plan.rate.before_percent);
            let after = before + u32::from(plan.rate.after_percent);
            match drawn {
                drawn if drawn < before => Fault::Before,
                drawn if drawn < after => Fault::After,
                _ => Fault::None,
            }
        });
        plan.injected += usize::from(fate != Fault::None);
        fate
    }

    async fn pass<T>(&self, call: impl Future<Output = Result<T, StoreFault>> + Send) -> Result<T, StoreFault> {
        match self.next() {
            Fault::None => call.await,
            Fault::Before => Err(StoreFault::Unavailable("injected".to_owned())),
            Fault::After => {
                call.await?;
                Err(StoreFault::Ambiguous("injected".to_owned()))
            }
        }
    }
}

#[async_trait]
impl<S: Store> Records for Faulty<S> {
    async fn claim(&self, rows: &[NewClaim]) -> Result<Vec<Seen>, StoreFault> {
        self.pass(self.inner.claim(rows)).await
    }
    async fn take_over(&self, row: &TakeOver) -> Result<Option<Fence>, StoreFault> {
        self.pass(self.inner.take_over(row)).await
    }
    async fn park_lapsed(&self, key: &RecordKey, seen_claim: ClaimId, seen_fence: Fence) -> Result<Written, StoreFault> {
        self.pass(self.inner.park_lapsed(key, seen_claim, seen_fence)).await
    }
    async fn write(&self, rows: &[Write]) -> Result<Vec<Written>, StoreFault> {
        self.pass(self.inner.write(rows)).await
    }
    async fn read(&self, keys: &[RecordKey]) -> Result<(Vec<Option<Record>>, Timestamp), StoreFault> {
        self.pass(self.inner.read(keys)).await
    }
    async fn find(&self, tenant: &TenantId, key: Option<&str>, limit: usize) -> Result<Vec<Record>, StoreFault> {
        self.pass(self.inner.find(tenant, key, limit)).await
    }
    async fn remove_stuck(&self, key: &RecordKey) -> Result<Written, StoreFault> {
        self.pass(self.inner.remove_stuck(key)).await
    }
    async fn sweep_records(&self, limit: usize) -> Result<usize, StoreFault> {
        self.pass(self.inner.sweep_records(limit)).await
    }
}

#[async_trait]
impl<S: Store> Payments for Faulty<S> {
    async fn load(&self, tenant: &TenantId, id: &PaymentId) -> Result<Option<Payment>, StoreFault> {
        self.pass(self.inner.load(tenant, id)).await
    }
    async fn load_order(&self, tenant: &TenantId, order: &MerchantRef) -> Result<Option<Payment>, StoreFault> {
        self.pass(self.inner.load_order(tenant, order)).await
    }
    async fn find_attempt(&self, tenant: &TenantId, account: &AccountName, channel_ref: &str) -> Result<Option<PaymentId>, StoreFault> {
        self.pass(self.inner.find_attempt(tenant, account, channel_ref)).await
    }
    async fn find_refund(&self, tenant: &TenantId, id: &RefundId) -> Result<Option<PaymentId>, StoreFault> {
        self.pass(self.inner.find_refund(tenant, id)).await
    }
    async fn list(&self, tenant: &TenantId, filter: &Filter) -> Result<Vec<Payment>, StoreFault> {
        self.pass(self.inner.list(tenant, filter)).await
    }
    async fn apply(&self, change: &Change) -> Result<Applied, StoreFault> {
        self.pass(self.inner.apply(change)).await
    }
    async fn take_due(&self, now: Timestamp, hold: Duration, limit: usize) -> Result<Vec<(TenantId, PaymentId)>, StoreFault> {
        self.pass(self.inner.take_due(now, hold, limit)).await
    }
    async fn let_go(&self, tenant: &TenantId, id: &PaymentId) -> Result<(), StoreFault> {
        self.pass(self.inner.let_go(tenant, id)).await
    }
    async fn timeline(&self, tenant: &TenantId, id: &PaymentId) -> Result<Vec<AuditEntry>, StoreFault> {
        self.pass(self.inner.timeline(tenant, id)).await
    }
}

#[async_trait]
impl<S: Store> Inbox for Faulty<S> {
    async fn receive(
        &self,
        tenant: &TenantId,
        channel: &ChannelName,
        account: &AccountName,
        verified: &Verified,
        raw: &Sealed,
        ids: &[InboxId],
        now: Timestamp,
    ) -> Result<Vec<InboxId>, StoreFault> {
        self.pass(self.inner.receive(tenant, channel, account, verified, raw, ids, now)).await
    }
    async fn take_waiting(&self, now: Timestamp, hold: Duration, limit: usize) -> Result<Vec<InboxRow>, StoreFault> {
        self.pass(self.inner.take_waiting(now, hold, limit)).await
    }
    async fn judge(&self, tenant: &TenantId, id: &InboxId, verdict: &InboxVerdict) -> Result<(), StoreFault> {
        self.pass(self.inner.judge(tenant, id, verdict)).await
    }
    async fn inbox_row(&self, tenant: &TenantId, id: &InboxId) -> Result<Option<InboxRow>, StoreFault> {
        self.pass(self.inner.inbox_row(tenant, id)).await
    }
    async fn inbox_list(&self, tenant: &TenantId, status: Option<InboxStatus>, limit: usize) -> Result<Vec<InboxRow>, StoreFault> {
        self.pass(self.inner.inbox_list(tenant, status, limit)).await
    }
    async fn sweep_inbox(&self, before: Timestamp, limit: usize) -> Result<usize, StoreFault> {
        self.pass(self.inner.sweep_inbox(before, limit)).await
    }
}

#[async_trait]
impl<S: Store> Outbox for Faulty<S> {
    async fn take_events(&self, now: Timestamp, hold: Duration, limit: usize) -> Result<Vec<Delivery>, StoreFault> {
        self.pass(self.inner.take_events(now, hold, limit)).await
    }
    async fn delivered(&self, tenant: &TenantId, id: &EventId, how: &Delivered) -> Result<(), StoreFault> {
        self.pass(self.inner.delivered(tenant, id, how)).await
    }
    async fn position_events(&self, limit: usize) -> Result<usize, StoreFault> {
        self.pass(self.inner.position_events(limit)).await
    }
    async fn feed(&self, tenant: &TenantId, after: Option<&EventId>, limit: usize) -> Result<Option<Vec<FeedItem>>, StoreFault> {
        self.pass(self.inner.feed(tenant, after, limit)).await
    }
    async fn events_of(&self, tenant: &TenantId, payment: &PaymentId) -> Result<Vec<(Event, String)>, StoreFault> {
        self.pass(self.inner.events_of(tenant, payment)).await
    }
}

#[async_trait]
impl<S: Store> Directory for Faulty<S> {
    async fn ping(&self) -> Result<(), StoreFault> {
        self.pass(self.inner.ping()).await
    }
    async fn put_api_key(&self, key: &ApiKey) -> Result<(), StoreFault> {
        self.pass(self.inner.put_api_key(key)).await
    }
    async fn api_key(&self, hash: &[u8; 32]) -> Result<Option<ApiKey>, StoreFault> {
        self.pass(self.inner.api_key(hash)).await
    }
    async fn api_keys(&self, tenant: Option<&TenantId>) -> Result<Vec<ApiKey>, StoreFault> {
        self.pass(self.inner.api_keys(tenant)).await
    }
    async fn revoke_api_key(&self, id: &ApiKeyId, at: Timestamp) -> Result<bool, StoreFault> {
        self.pass(self.inner.revoke_api_key(id, at)).await
    }
    async fn put_account(&self, account: &Account) -> Result<bool, StoreFault> {
        self.pass(self.inner.put_account(account)).await
    }
    async fn account(&self, name: &AccountName) -> Result<Option<Account>, StoreFault> {
        self.pass(self.inner.account(name)).await
    }
    async fn accounts(&self) -> Result<Vec<Account>, StoreFault> {
        self.pass(self.inner.accounts()).await
    }
}
