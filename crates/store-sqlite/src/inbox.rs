//! Verified notifications.
//!
//! In: what was verified, and what became of it. Out: rows to settle. Marking a row settled is part of a payment's change, not of this file.

use std::time::Duration;

use async_trait::async_trait;
use payonce_core::channel::{AccountName, ChannelName};
use payonce_core::clock::Timestamp;
use payonce_core::id::{InboxId, TenantId};
use payonce_core::notification::Verified;
use payonce_core::ports::StoreFault;
use payonce_core::ports::inbox::{Inbox, InboxRow, InboxStatus, InboxVerdict};
use payonce_core::secret::{Sealed, sha256};
use rusqlite::params;

use crate::SqliteStore;
use crate::fault::{Fault, Undo};
use crate::records::bound;
use crate::rows;
use crate::statements as sql;

#[async_trait]
impl Inbox for SqliteStore {
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
        let docs = events.iter().map(|event| Ok((identity_column(&event.identity), serde_json::to_string(event)?)));
        let docs: Result<Vec<(String, String)>, Fault> = docs.collect();
        let docs = docs.map_err(|fault| fault.0)?;
        let (tenant, channel, account) = (tenant.clone(), channel.clone(), account.clone());
        let (raw, ids) = (raw.clone(), ids.to_vec());
        self.write(move |connection| {
            let mut statement = connection.prepare_cached(sql::INBOX_RECEIVE)?;
            let mut new = Vec::new();
            for ((identity, doc), id) in docs.iter().zip(ids) {
                let names = (tenant.as_str(), channel.as_str(), account.as_str());
                if statement.exists(params![names.0, id.as_str(), names.1, names.2, identity, now.0, doc, raw.as_bytes()])? {
                    new.push(id);
                }
            }
            Ok(new)
        })
        .await
    }

    async fn take_waiting(&self, now: Timestamp, hold: Duration, limit: usize) -> Result<Vec<InboxRow>, StoreFault> {
        self.write(move |connection| {
            let mut statement = connection.prepare_cached(sql::INBOX_TAKE_WAITING)?;
            let taken = statement.query_and_then(params![now.0, now.plus(hold).0, bound(limit)], rows::inbox_row)?;
            let mut taken = taken.collect::<Result<Vec<_>, Fault>>()?;
            // RETURNING gives no order.
            taken.sort_by(|a, b| (a.received_at, &a.id).cmp(&(b.received_at, &b.id)));
            Ok(taken)
        })
        .await
    }

    async fn judge(&self, tenant: &TenantId, id: &InboxId, verdict: &InboxVerdict) -> Result<(), StoreFault> {
        let (tenant, id, verdict) = (tenant.clone(), id.clone(), verdict.clone());
        self.write(move |connection| {
            let next = verdict.next_try_at.map(|at| at.0);
            let params = params![tenant.as_str(), id.as_str(), verdict.status.as_str(), verdict.note, next];
            connection.prepare_cached(sql::INBOX_JUDGE)?.execute(params)?;
            Ok(())
        })
        .await
    }

    async fn inbox_row(&self, tenant: &TenantId, id: &InboxId) -> Result<Option<InboxRow>, StoreFault> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(sql::INBOX_ROW)?;
            let mut found = statement.query_and_then([tenant.as_str(), id.as_str()], rows::inbox_row)?;
            found.next().transpose()
        })
        .await
    }

    async fn inbox_list(&self, tenant: &TenantId, status: Option<InboxStatus>, limit: usize) -> Result<Vec<InboxRow>, StoreFault> {
        let tenant = tenant.clone();
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(sql::INBOX_LIST)?;
            let status = status.map(InboxStatus::as_str);
            statement.query_and_then(params![tenant.as_str(), status, bound(limit)], rows::inbox_row)?.collect()
        })
        .await
    }

    async fn sweep_inbox(&self, before: Timestamp, limit: usize) -> Result<usize, StoreFault> {
        self.write(move |connection| {
            let swept: rusqlite::Result<usize> = connection.prepare_cached(sql::INBOX_SWEEP)?.execute(params![before.0, bound(limit)]);
            swept.map_err(Undo::from)
        })
        .await
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
