//! The inbox in memory.

use std::time::Duration;

use async_trait::async_trait;
use payonce_core::channel::{AccountName, ChannelName};
use payonce_core::clock::Timestamp;
use payonce_core::id::{InboxId, TenantId};
use payonce_core::notification::Verified;
use payonce_core::ports::StoreFault;
use payonce_core::ports::inbox::{Inbox, InboxRow, InboxStatus, InboxVerdict};
use payonce_core::secret::Sealed;

use super::MemoryStore;

/// A row with what the store adds to it.
pub(super) struct Row {
    pub(super) row: InboxRow,
    next_try_at: Option<Timestamp>,
    held_until: Option<Timestamp>,
}

impl Row {
    fn is_waiting(&self, now: Timestamp) -> bool {
        let open = match self.row.status {
            InboxStatus::Waiting | InboxStatus::Unmatched => true,
            InboxStatus::Settled | InboxStatus::Foreign => false,
        };
        open && self.next_try_at.is_some_and(|at| at <= now) && self.held_until.is_none_or(|until| until <= now)
    }
}

#[async_trait]
impl Inbox for MemoryStore {
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
        if ids.len() != verified.events().len() {
            return Err(StoreFault::Refused(format!("{} ids for {} events", ids.len(), verified.events().len())));
        }
        let mut tables = self.tables();
        let mut made = Vec::new();
        for (event, id) in verified.events().iter().zip(ids) {
            let known =
                |row: &Row| row.row.tenant == *tenant && row.row.account == *account && row.row.notification.identity == event.identity;
            if tables.inbox.values().any(known) {
                continue;
            }
            let row = InboxRow {
                id: id.clone(),
                tenant: tenant.clone(),
                channel: channel.clone(),
                account: account.clone(),
                notification: event.clone(),
                status: InboxStatus::Waiting,
                payment_id: None,
                note: None,
                received_at: now,
                tries: 0,
                raw: raw.clone(),
            };
            tables.inbox.insert((tenant.clone(), id.clone()), Row { row, next_try_at: Some(now), held_until: None });
            made.push(id.clone());
        }
        Ok(made)
    }

    async fn take_waiting(&self, now: Timestamp, hold: Duration, limit: usize) -> Result<Vec<InboxRow>, StoreFault> {
        let mut tables = self.tables();
        let mut waiting: Vec<&mut Row> = tables.inbox.values_mut().filter(|row| row.is_waiting(now)).collect();
        waiting.sort_by(|a, b| (a.row.received_at, &a.row.id).cmp(&(b.row.received_at, &b.row.id)));
        let taken = waiting.into_iter().take(limit).map(|row| {
            row.held_until = Some(now.plus(hold));
            row.row.tries += 1;
            row.row.clone()
        });
        Ok(taken.collect())
    }

    async fn judge(&self, tenant: &TenantId, id: &InboxId, verdict: &InboxVerdict) -> Result<(), StoreFault> {
        let mut tables = self.tables();
        if let Some(row) = tables.inbox.get_mut(&(tenant.clone(), id.clone()))
            && row.row.status != InboxStatus::Settled
        {
            row.row.status = verdict.status;
            row.row.note = Some(verdict.note.clone());
            row.next_try_at = verdict.next_try_at;
            row.held_until = None;
        }
        Ok(())
    }

    async fn inbox_row(&self, tenant: &TenantId, id: &InboxId) -> Result<Option<InboxRow>, StoreFault> {
        Ok(self.tables().inbox.get(&(tenant.clone(), id.clone())).map(|row| row.row.clone()))
    }

    async fn inbox_list(&self, tenant: &TenantId, status: Option<InboxStatus>, limit: usize) -> Result<Vec<InboxRow>, StoreFault> {
        let tables = self.tables();
        let fits = |row: &&InboxRow| row.tenant == *tenant && status.is_none_or(|status| row.status == status);
        let mut rows: Vec<InboxRow> = tables.inbox.values().map(|row| &row.row).filter(fits).cloned().collect();
        rows.sort_by(|a, b| (b.received_at, &b.id).cmp(&(a.received_at, &a.id)));
        rows.truncate(limit);
        Ok(rows)
    }

    async fn sweep_inbox(&self, before: Timestamp, limit: usize) -> Result<usize, StoreFault> {
        let mut tables = self.tables();
        let is_over = |row: &InboxRow| match row.status {
            InboxStatus::Settled | InboxStatus::Foreign => row.received_at < before,
            InboxStatus::Waiting | InboxStatus::Unmatched => false,
        };
        let over: Vec<_> = tables.inbox.iter().filter(|(_, row)| is_over(&row.row)).map(|(key, _)| key.clone()).take(limit).collect();
        for key in &over {
            tables.inbox.remove(key);
        }
        Ok(over.len())
    }
}
