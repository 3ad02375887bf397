//! Payments in memory. A change is judged whole before any of it is written, so nothing is ever half there.

use std::time::Duration;

use async_trait::async_trait;
use payonce_core::channel::AccountName;
use payonce_core::clock::Timestamp;
use payonce_core::id::{MerchantRef, PaymentId, RefundId, TenantId};
use payonce_core::payment::Payment;
use payonce_core::payment::change::{AuditEntry, Change};
use payonce_core::ports::StoreFault;
use payonce_core::ports::inbox::InboxStatus;
use payonce_core::ports::payments::{Applied, Filter, Payments, Rule};

use super::{MemoryStore, Tables, outbox};

/// A payment with what the store adds to it.
pub(super) struct Row {
    pub(super) payment: Payment,
    timeline: Vec<AuditEntry>,
    held_until: Option<Timestamp>,
}

#[async_trait]
impl Payments for MemoryStore {
    async fn load(&self, tenant: &TenantId, id: &PaymentId) -> Result<Option<Payment>, StoreFault> {
        Ok(self.tables().payments.get(&(tenant.clone(), id.clone())).map(|row| row.payment.clone()))
    }

    async fn load_order(&self, tenant: &TenantId, order: &MerchantRef) -> Result<Option<Payment>, StoreFault> {
        let tables = self.tables();
        let id = tables.orders.get(&(tenant.clone(), order.clone()));
        Ok(id.and_then(|id| tables.payments.get(&(tenant.clone(), id.clone()))).map(|row| row.payment.clone()))
    }

    async fn find_attempt(&self, tenant: &TenantId, account: &AccountName, channel_ref: &str) -> Result<Option<PaymentId>, StoreFault> {
        Ok(self.tables().attempt_refs.get(&(tenant.clone(), account.clone(), channel_ref.to_owned())).cloned())
    }

    async fn find_refund(&self, tenant: &TenantId, id: &RefundId) -> Result<Option<PaymentId>, StoreFault> {
        let tables = self.tables();
        let mut of_tenant = tables.payments.values().filter(|row| row.payment.tenant == *tenant);
        Ok(of_tenant.find(|row| row.payment.refund(id).is_some()).map(|row| row.payment.id.clone()))
    }

    async fn list(&self, tenant: &TenantId, filter: &Filter) -> Result<Vec<Payment>, StoreFault> {
        let fits = |payment: &&Payment| {
            payment.tenant == *tenant
                && filter.order_id.as_ref().is_none_or(|order| payment.order_id == *order)
                && filter.status.is_none_or(|status| payment.status == status)
                && filter.channel.as_ref().is_none_or(|channel| payment.attempts.iter().any(|attempt| attempt.channel == *channel))
                && filter.after.as_ref().is_none_or(|after| payment.id < *after)
        };
        let tables = self.tables();
        let newest_first = tables.payments.values().rev().map(|row| &row.payment);
        Ok(newest_first.filter(fits).take(filter.limit).cloned().collect())
    }

    async fn apply(&self, change: &Change) -> Result<Applied, StoreFault> {
        let mut tables = self.tables();
        let stored = tables.payments.get(&key(change)).map(|row| &row.payment);
        let merged = match (stored, change.seen) {
            (None, None) => match tables.orders.get(&(change.payment.tenant.clone(), change.payment.order_id.clone())) {
                Some(taken) => return Ok(Applied::OrderTaken(taken.clone())),
                None => merged(None, change),
            },
            (Some(stored), Some(seen)) if stored.version == seen => merged(Some(stored), change),
            (None, Some(_)) | (Some(_), Some(_) | None) => return Ok(Applied::Conflict),
        };
        if let Some(rule) = violated(&tables, &merged, change) {
            return Ok(Applied::Violates(rule));
        }
        write(&mut tables, merged, change);
        Ok(Applied::Done)
    }

    async fn take_due(&self, now: Timestamp, hold: Duration, limit: usize) -> Result<Vec<(TenantId, PaymentId)>, StoreFault> {
        let mut tables = self.tables();
        let is_due = |row: &&mut Row| row.payment.due_at().is_some_and(|due| due <= now) && row.held_until.is_none_or(|until| until <= now);
        let mut due: Vec<&mut Row> = tables.payments.values_mut().filter(is_due).collect();
        due.sort_by_key(|row| row.payment.due_at());
        let taken = due.into_iter().take(limit).map(|row| {
            row.held_until = Some(now.plus(hold));
            (row.payment.tenant.clone(), row.payment.id.clone())
        });
        Ok(taken.collect())
    }

    async fn let_go(&self, tenant: &TenantId, id: &PaymentId) -> Result<(), StoreFault> {
        if let Some(row) = self.tables().payments.get_mut(&(tenant.clone(), id.clone())) {
            row.held_until = None;
        }
        Ok(())
    }

    async fn timeline(&self, tenant: &TenantId, id: &PaymentId) -> Result<Vec<AuditEntry>, StoreFault> {
        Ok(self.tables().payments.get(&(tenant.clone(), id.clone())).map(|row| row.timeline.clone()).unwrap_or_default())
    }
}

fn key(change: &Change) -> (TenantId, PaymentId) {
    (change.payment.tenant.clone(), change.payment.id.clone())
}

/// The payment's own row from the change, its children from what was stored and the rows of the change: what a table would hold.
fn merged(stored: Option<&Payment>, change: &Change) -> Payment {
    let children = stored.cloned();
    let mut next = change.payment.clone();
    let (attempts, captures, refunds, surpluses) = match children {
        Some(payment) => (payment.attempts, payment.captures, payment.refunds, payment.surpluses),
        None => (Vec::new(), Vec::new(), Vec::new(), Vec::new()),
    };
    next.attempts = upserted(attempts, &change.attempts, |a, b| a.id == b.id);
    next.captures = upserted(captures, &change.captures, |a, b| a.id == b.id);
    next.refunds = upserted(refunds, &change.refunds, |a, b| a.id == b.id);
    next.surpluses = upserted(surpluses, &change.surpluses, |a, b| a.id == b.id);
    next
}

fn upserted<T: Clone>(mut rows: Vec<T>, changed: &[T], same: impl Fn(&T, &T) -> bool) -> Vec<T> {
    for row in changed {
        match rows.iter_mut().find(|stored| same(stored, row)) {
            Some(stored) => *stored = row.clone(),
            None => rows.push(row.clone()),
        }
    }
    rows
}

fn violated(tables: &Tables, next: &Payment, change: &Change) -> Option<Rule> {
    let tenant = &next.tenant;
    // A reference or transaction may stand in one payment only, and there in one row only.
    let elsewhere = |index: &std::collections::BTreeMap<(TenantId, AccountName, String), PaymentId>, account: &AccountName, text: &str| {
        index.get(&(tenant.clone(), account.clone(), text.to_owned())).is_some_and(|owner| *owner != next.id)
    };
    if next.attempts.iter().filter(|attempt| attempt.is_live()).count() > 1 {
        return Some(Rule::OneLiveAttempt);
    }
    let attempt_refs = || next.attempts.iter().map(|row| (&row.account, row.channel_ref.as_str()));
    let refund_refs = || next.refunds.iter().map(|row| (&row.account, row.channel_ref.as_str()));
    if twice(attempt_refs()) || attempt_refs().any(|(account, text)| elsewhere(&tables.attempt_refs, account, text)) {
        return Some(Rule::ChannelRef);
    }
    if twice(refund_refs()) || refund_refs().any(|(account, text)| elsewhere(&tables.refund_refs, account, text)) {
        return Some(Rule::ChannelRef);
    }
    if twice(next.refunds.iter().filter_map(|row| row.refund_id.as_ref())) {
        return Some(Rule::RefundId);
    }
    let txns = || next.surpluses.iter().map(|row| (&row.account, row.channel_txn.as_str()));
    if twice(txns()) || txns().any(|(account, text)| elsewhere(&tables.surplus_txns, account, text)) {
        return Some(Rule::SurplusTxn);
    }
    let mark = change.inbox.as_ref()?;
    let open = tables.inbox.get(&(tenant.clone(), mark.id.clone())).is_some_and(|row| row.row.status != InboxStatus::Settled);
    (!open).then_some(Rule::InboxRow)
}

fn twice<T: Ord>(rows: impl Iterator<Item = T>) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    !rows.into_iter().all(|row| seen.insert(row))
}

fn write(tables: &mut Tables, payment: Payment, change: &Change) {
    let (tenant, id) = key(change);
    tables.orders.insert((tenant.clone(), payment.order_id.clone()), id.clone());
    for row in &change.attempts {
        tables.attempt_refs.insert((tenant.clone(), row.account.clone(), row.channel_ref.as_str().to_owned()), id.clone());
    }
    for row in &change.refunds {
        tables.refund_refs.insert((tenant.clone(), row.account.clone(), row.channel_ref.as_str().to_owned()), id.clone());
    }
    for row in &change.surpluses {
        tables.surplus_txns.insert((tenant.clone(), row.account.clone(), row.channel_txn.clone()), id.clone());
    }
    tables.events.extend(change.events.iter().map(|event| outbox::Row::new(event.clone(), payment.notify_url.clone())));
    if let Some(mark) = &change.inbox
        && let Some(row) = tables.inbox.get_mut(&(tenant.clone(), mark.id.clone()))
    {
        row.row.status = InboxStatus::Settled;
        row.row.payment_id = Some(id.clone());
        row.row.note.clone_from(&mark.note);
    }
    let row =
        tables.payments.entry((tenant, id)).or_insert_with(|| Row { payment: payment.clone(), timeline: Vec::new(), held_until: None });
    row.payment = payment;
    row.timeline.extend(change.audit.iter().cloned());
}
