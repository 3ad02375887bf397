//! The children of a payment as columns: one statement per kind, whatever their number.
//!
//! In: a [`Change`]. Out: the arrays of one `unnest`. A kind without rows is not sent.

use payonce_core::payment::change::Change;
use payonce_core::ports::StoreFault;

use crate::rows::{json, number};
use crate::session::{Failed, Session};
use crate::statement as sql;

/// Which one of the payment's it is, from 1: children come back in this order.
fn place(position: Option<usize>, count: usize) -> i64 {
    i64::try_from(position.unwrap_or(count)).unwrap_or(i64::MAX - 1) + 1
}

#[derive(Default)]
pub(super) struct Attempts<'a> {
    ids: Vec<&'a str>,
    ns: Vec<i64>,
    channels: Vec<&'a str>,
    accounts: Vec<&'a str>,
    refs: Vec<&'a str>,
    statuses: Vec<&'a str>,
    live: Vec<bool>,
    docs: Vec<String>,
}

impl<'a> Attempts<'a> {
    pub(super) fn of(change: &'a Change) -> Result<Self, StoreFault> {
        let all = &change.payment.attempts;
        let mut columns = Self::default();
        for row in &change.attempts {
            columns.ids.push(row.id.as_str());
            columns.ns.push(place(all.iter().position(|one| one.id == row.id), all.len()));
            columns.channels.push(row.channel.as_str());
            columns.accounts.push(row.account.as_str());
            columns.refs.push(row.channel_ref.as_str());
            columns.statuses.push(row.status.as_str());
            columns.live.push(row.is_live());
            columns.docs.push(json(row)?);
        }
        Ok(columns)
    }

    pub(super) async fn put(&self, session: &Session, tenant: &str, id: &str) -> Result<u64, Failed> {
        if self.ids.is_empty() {
            return Ok(0);
        }
        session
            .count(
                &sql::PAYMENTS_PUT_ATTEMPT,
                &[&tenant, &id, &self.ids, &self.ns, &self.channels, &self.accounts, &self.refs, &self.statuses, &self.live, &self.docs],
            )
            .await
    }
}

#[derive(Default)]
pub(super) struct Captures<'a> {
    ids: Vec<&'a str>,
    ns: Vec<i64>,
    statuses: Vec<&'a str>,
    amounts: Vec<i64>,
    docs: Vec<String>,
}

impl<'a> Captures<'a> {
    pub(super) fn of(change: &'a Change) -> Result<Self, StoreFault> {
        let all = &change.payment.captures;
        let mut columns = Self::default();
        for row in &change.captures {
            columns.ids.push(row.id.as_str());
            columns.ns.push(place(all.iter().position(|one| one.id == row.id), all.len()));
            columns.statuses.push(row.status.as_str());
            columns.amounts.push(row.amount.minor);
            columns.docs.push(json(row)?);
        }
        Ok(columns)
    }

    pub(super) async fn put(&self, session: &Session, tenant: &str, id: &str) -> Result<u64, Failed> {
        if self.ids.is_empty() {
            return Ok(0);
        }
        session.count(&sql::PAYMENTS_PUT_CAPTURE, &[&tenant, &id, &self.ids, &self.ns, &self.statuses, &self.amounts, &self.docs]).await
    }
}

#[derive(Default)]
pub(super) struct Refunds<'a> {
    ids: Vec<&'a str>,
    ns: Vec<i64>,
    numbers: Vec<Option<&'a str>>,
    accounts: Vec<&'a str>,
    refs: Vec<&'a str>,
    statuses: Vec<&'a str>,
    amounts: Vec<i64>,
    docs: Vec<String>,
}

impl<'a> Refunds<'a> {
    pub(super) fn of(change: &'a Change) -> Result<Self, StoreFault> {
        let all = &change.payment.refunds;
        let mut columns = Self::default();
        for row in &change.refunds {
            columns.ids.push(row.id.as_str());
            columns.ns.push(place(all.iter().position(|one| one.id == row.id), all.len()));
            columns.numbers.push(row.refund_id.as_ref().map(|id| id.as_str()));
            columns.accounts.push(row.account.as_str());
            columns.refs.push(row.channel_ref.as_str());
            columns.statuses.push(row.status.as_str());
            columns.amounts.push(row.amount.minor);
            columns.docs.push(json(row)?);
        }
        Ok(columns)
    }

    pub(super) async fn put(&self, session: &Session, tenant: &str, id: &str) -> Result<u64, Failed> {
        if self.ids.is_empty() {
            return Ok(0);
        }
        session
            .count(
                &sql::PAYMENTS_PUT_REFUND,
                &[&tenant, &id, &self.ids, &self.ns, &self.numbers, &self.accounts, &self.refs, &self.statuses, &self.amounts, &self.docs],
            )
            .await
    }
}

#[derive(Default)]
pub(super) struct Surpluses<'a> {
    ids: Vec<&'a str>,
    ns: Vec<i64>,
    accounts: Vec<&'a str>,
    txns: Vec<&'a str>,
    amounts: Vec<i64>,
    docs: Vec<String>,
}

impl<'a> Surpluses<'a> {
    pub(super) fn of(change: &'a Change) -> Result<Self, StoreFault> {
        let all = &change.payment.surpluses;
        let mut columns = Self::default();
        for row in &change.surpluses {
            columns.ids.push(row.id.as_str());
            columns.ns.push(place(all.iter().position(|one| one.id == row.id), all.len()));
            columns.accounts.push(row.account.as_str());
            columns.txns.push(row.channel_txn.as_str());
            columns.amounts.push(row.amount.minor);
            columns.docs.push(json(row)?);
        }
        Ok(columns)
    }

    pub(super) async fn put(&self, session: &Session, tenant: &str, id: &str) -> Result<u64, Failed> {
        if self.ids.is_empty() {
            return Ok(0);
        }
        session
            .count(&sql::PAYMENTS_PUT_SURPLUS, &[&tenant, &id, &self.ids, &self.ns, &self.accounts, &self.txns, &self.amounts, &self.docs])
            .await
    }
}

#[derive(Default)]
pub(super) struct Events<'a> {
    payment: &'a str,
    ids: Vec<&'a str>,
    versions: Vec<i64>,
    ns: Vec<i64>,
    times: Vec<i64>,
    docs: Vec<String>,
}

impl<'a> Events<'a> {
    pub(super) fn of(change: &'a Change) -> Result<Self, StoreFault> {
        let mut columns = Self { payment: change.payment.id.as_str(), ..Self::default() };
        for event in &change.events {
            columns.ids.push(event.id.as_str());
            columns.versions.push(number(event.version)?);
            columns.ns.push(i64::from(event.n));
            columns.times.push(event.created_at.0);
            columns.docs.push(json(event)?);
        }
        Ok(columns)
    }

    pub(super) async fn put(&self, session: &Session, tenant: &str, notify_url: Option<&str>) -> Result<u64, Failed> {
        if self.ids.is_empty() {
            return Ok(0);
        }
        session
            .count(&sql::OUTBOX_PUT, &[&tenant, &self.payment, &notify_url, &self.ids, &self.versions, &self.ns, &self.times, &self.docs])
            .await
    }
}

#[derive(Default)]
pub(super) struct Entries {
    ns: Vec<i64>,
    docs: Vec<String>,
}

impl Entries {
    pub(super) fn of(change: &Change) -> Result<Self, StoreFault> {
        let mut columns = Self::default();
        for entry in &change.audit {
            columns.ns.push(number(entry.n)?);
            columns.docs.push(json(entry)?);
        }
        Ok(columns)
    }

    pub(super) async fn put(&self, session: &Session, tenant: &str, id: &str) -> Result<u64, Failed> {
        if self.ns.is_empty() {
            return Ok(0);
        }
        session.count(&sql::PAYMENTS_PUT_AUDIT, &[&tenant, &id, &self.ns, &self.docs]).await
    }
}
