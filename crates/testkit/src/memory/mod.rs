//! A whole store in memory: the shortest true reading of the ports, and the model that real stores are compared with.
//!
//! One mutex stands for one transaction at a time. The guard's table follows the clock the store was built with; the other families take
//! the moment as a parameter. Clones are handles on the same data, as several nodes have.

mod directory;
mod inbox;
mod outbox;
mod payments;
mod records;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use payonce_core::channel::AccountName;
use payonce_core::clock::Clock;
use payonce_core::id::{InboxId, MerchantRef, PaymentId, TenantId};
use payonce_core::ports::directory::{Account, ApiKey};

use crate::memory_records::MemoryRecords;

/// See the module.
#[derive(Clone)]
pub struct MemoryStore {
    records: Arc<MemoryRecords>,
    tables: Arc<Mutex<Tables>>,
}

/// Everything but the guard's table.
#[derive(Default)]
struct Tables {
    payments: BTreeMap<(TenantId, PaymentId), payments::Row>,
    orders: BTreeMap<(TenantId, MerchantRef), PaymentId>,
    attempt_refs: BTreeMap<(TenantId, AccountName, String), PaymentId>,
    refund_refs: BTreeMap<(TenantId, AccountName, String), PaymentId>,
    surplus_txns: BTreeMap<(TenantId, AccountName, String), PaymentId>,
    inbox: BTreeMap<(TenantId, InboxId), inbox::Row>,
    events: Vec<outbox::Row>,
    api_keys: Vec<ApiKey>,
    accounts: BTreeMap<AccountName, Account>,
}

impl MemoryStore {
    /// An empty store whose leases follow `clock` (for one that a test moves: [`payonce_core::clock::Fixed`]).
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { records: Arc::new(MemoryRecords::new(clock)), tables: Arc::default() }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tables = self.tables();
        write!(f, "MemoryStore({} payments, {} events, {:?})", tables.payments.len(), tables.events.len(), self.records)
    }
}
