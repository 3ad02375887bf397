//! Verified notifications.
//!
//! In: what was verified, and what became of it. Out: rows to settle. Marking a row settled is part of a payment's change, not of this file.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use payonce_core::channel::{AccountName, ChannelName};
use payonce_core::clock::Timestamp;
use payonce_core::id::{InboxId, TenantId};
use payonce_core::notification::{Notification, Verified};
use payonce_core::ports::StoreFault;
use payonce_core::ports::inbox::{Inbox, InboxRow, InboxStatus, InboxVerdict};
use payonce_core::secret::{Sealed, sha256};

use crate::PostgresStore;
use crate::fault::{Effect, repeating};
use crate::rows::{self, bound, json, total};
use crate::session::{Failed, Params, Session};
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
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<Received<'_>> =
            events.iter().zip(ids).map(|(event, id)| Received::of(event, id)).collect::<Result<_, StoreFault>>()?;
        let envelope = Envelope { tenant, channel, account, raw, now };
        let mut made: HashSet<&InboxId> = repeating(|| receive_once(self, &envelope, &rows)).await?;
        // Two rows that bring the same id cannot both be new.
        Ok(ids.iter().filter(|id| made.remove(id)).cloned().collect())
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

/// What the events of a notification have in common.
struct Envelope<'a> {
    tenant: &'a TenantId,
    channel: &'a ChannelName,
    account: &'a AccountName,
    raw: &'a Sealed,
    now: Timestamp,
}

/// One event.
struct Received<'a> {
    id: &'a InboxId,
    identity: String,
    doc: String,
}

impl<'a> Received<'a> {
    fn of(event: &Notification, id: &'a InboxId) -> Result<Self, StoreFault> {
        Ok(Self { id, identity: identity_column(&event.identity), doc: json(event)? })
    }

    /// Whether it is new.
    async fn put(&self, session: &Session, envelope: &Envelope<'_>) -> Result<bool, Failed> {
        let Envelope { tenant, channel, account, raw, now } = envelope;
        let (tenant, channel, account) = (tenant.as_str(), channel.as_str(), account.as_str());
        let (id, raw) = (self.id.as_str(), raw.as_bytes());
        let params: Params<'_> = &[&tenant, &id, &channel, &account, &self.identity, &now.0, &self.doc, &raw];
        Ok(!session.rows(&sql::INBOX_RECEIVE, params).await?.is_empty())
    }
}

/// One event is one statement that commits by itself; several share a transaction.
async fn receive_once<'a>(
    store: &PostgresStore,
    envelope: &Envelope<'_>,
    rows: &[Received<'a>],
) -> Result<HashSet<&'a InboxId>, StoreFault> {
    let session = store.session().await?;
    if let [only] = rows {
        let work = async { only.put(&session, envelope).await.map_err(|failed| session.fault(failed, Effect::Commits)) };
        let new = session.within(Effect::Commits, work).await?;
        return Ok(new.then_some(only.id).into_iter().collect());
    }
    let work = async {
        let put = async {
            session.begin().await?;
            let mut new = HashSet::new();
            for row in rows {
                if row.put(&session, envelope).await? {
                    new.insert(row.id);
                }
            }
            Ok(new)
        };
        match put.await {
            Ok(new) => session.commit().await.map(|()| new),
            Err(failed) => {
                let fault = session.fault(failed, Effect::None);
                session.roll_back().await;
                Err(fault)
            }
        }
    };
    session.within(Effect::None, work).await
}

/// A channel's identity as the unique column takes it: itself, or its digest where it is too long for an index or holds U+0000.
fn identity_column(identity: &str) -> String {
    if identity.len() <= 200 && !identity.contains('\0') && !identity.is_empty() {
        return identity.to_owned();
    }
    let hex: String = sha256(identity.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
