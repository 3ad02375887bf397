//! Verified notifications.
//!
//! In: what was verified, and what became of it. Out: rows to settle. Marking a row settled is part of a payment's change, not of this file.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use payonce_core::channel::{AccountName, ChannelName};
use payonce_core::clock::Timestamp;
use payonce_core::id::{InboxId, TenantId};
use payonce_core::notification::Verified;
use payonce_core::ports::StoreFault;
use payonce_core::ports::inbox::{Inbox, InboxRow, InboxStatus, InboxVerdict};
use payonce_core::secret::{Sealed, sha256};

use crate::PostgresStore;
use crate::rows::{self, at, bound, json, total};
use crate::statement as sql;

#[async_trait]
impl Inbox for PostgresStore {
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
        let events = verified.events();
        if events.len() != ids.len() {
            return Err(StoreFault::Refused("every event of a notification needs an id".to_owned()));
        }
        let identities: Vec<String> = events.iter().map(|event| identity_column(&event.identity)).collect();
        let docs = events.iter().map(json).collect::<Result<Vec<_>, _>>()?;
        let names: Vec<&str> = ids.iter().map(InboxId::as_str).collect();
        let made = self
            .change(
                &sql::INBOX_RECEIVE,
                &[&tenant.as_str(), &channel.as_str(), &account.as_str(), &now.0, &raw.as_bytes(), &names, &identities, &docs],
            )
            .await?;
        let made: HashSet<&str> = made.iter().map(|row| at(row, 0)).collect::<Result<_, _>>()?;
        Ok(ids.iter().filter(|id| made.contains(id.as_str())).cloned().collect())
    }

    async fn take_waiting(&self, now: Timestamp, hold: Duration, limit: usize) -> Result<Vec<InboxRow>, StoreFault> {
        let taken = self.change(&sql::INBOX_TAKE_WAITING, &[&now.0, &now.plus(hold).0, &bound(limit)]).await?;
        let mut taken: Vec<InboxRow> = taken.iter().map(rows::inbox_row).collect::<Result<_, _>>()?;
        // RETURNING gives no order.
        taken.sort_by(|a, b| (a.received_at, &a.id).cmp(&(b.received_at, &b.id)));
        Ok(taken)
    }

    async fn judge(&self, tenant: &TenantId, id: &InboxId, verdict: &InboxVerdict) -> Result<(), StoreFault> {
        let (next, note) = (verdict.next_try_at.map(|at| at.0), rows::text(&verdict.note));
        self.count(&sql::INBOX_JUDGE, &[&tenant.as_str(), &id.as_str(), &verdict.status.as_str(), &note, &next]).await.map(drop)
    }

    async fn inbox_row(&self, tenant: &TenantId, id: &InboxId) -> Result<Option<InboxRow>, StoreFault> {
        self.rows(&sql::INBOX_ROW, &[&tenant.as_str(), &id.as_str()]).await?.first().map(rows::inbox_row).transpose()
    }

    async fn inbox_list(&self, tenant: &TenantId, status: Option<InboxStatus>, limit: usize) -> Result<Vec<InboxRow>, StoreFault> {
        let status = status.map(InboxStatus::as_str);
        self.rows(&sql::INBOX_LIST, &[&tenant.as_str(), &status, &bound(limit)]).await?.iter().map(rows::inbox_row).collect()
    }

    async fn sweep_inbox(&self, before: Timestamp, limit: usize) -> Result<usize, StoreFault> {
        Ok(total(self.count(&sql::INBOX_SWEEP, &[&before.0, &bound(limit)]).await?))
    }
}

/// A channel's identity as the unique column takes it: itself, or its digest where it is too long for an index or holds U+0000.
fn identity_column(identity: &str) -> String {
    if identity.len() <= 200 && !identity.contains('\0') && !identity.is_empty() {
        return identity.to_owned();
    }
    let hex: String = sha256(identity.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
