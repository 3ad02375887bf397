//! What belongs to a payment: a row each, all under way at once.
//!
//! In: a [`Change`]. Out: for each row, in order, how many rows its statement changed. It judges nothing.

use futures_util::future::{BoxFuture, join_all};
use payonce_core::attempt::Attempt;
use payonce_core::event::Event;
use payonce_core::payment::change::{AuditEntry, Change};
use payonce_core::payment::{Capture, Surplus};
use payonce_core::refund::Refund;

use crate::rows::{json, number};
use crate::session::{Failed, Session};
use crate::statement as sql;

type Sent<'a> = BoxFuture<'a, Result<u64, Failed>>;

/// So many rows are under way at once; the driver's helper keeps the order in which they are sent up to this number.
const AT_ONCE: usize = 30;

/// Sends the children, events and timeline entries of a change.
pub(super) async fn put(session: &Session, change: &Change) -> Vec<Result<u64, Failed>> {
    let to = Target { session, change, tenant: change.payment.tenant.as_str(), payment: change.payment.id.as_str() };
    // Those that are no longer live go first, so that a switch never shows the index of I1 two live ones.
    let mut attempts: Vec<&Attempt> = change.attempts.iter().collect();
    attempts.sort_by_key(|attempt| attempt.is_live());
    let mut all: Vec<Sent<'_>> = Vec::new();
    all.extend(attempts.into_iter().map(|row| -> Sent<'_> { Box::pin(to.attempt(row)) }));
    all.extend(change.captures.iter().map(|row| -> Sent<'_> { Box::pin(to.capture(row)) }));
    all.extend(change.refunds.iter().map(|row| -> Sent<'_> { Box::pin(to.refund(row)) }));
    all.extend(change.surpluses.iter().map(|row| -> Sent<'_> { Box::pin(to.surplus(row)) }));
    all.extend(change.events.iter().map(|row| -> Sent<'_> { Box::pin(to.event(row)) }));
    all.extend(change.audit.iter().map(|row| -> Sent<'_> { Box::pin(to.entry(row)) }));
    let mut done = Vec::with_capacity(all.len());
    let mut waiting = all.into_iter();
    loop {
        let some: Vec<Sent<'_>> = waiting.by_ref().take(AT_ONCE).collect();
        if some.is_empty() {
            return done;
        }
        done.extend(join_all(some).await);
    }
}

/// The payment that the rows belong to.
struct Target<'a> {
    session: &'a Session,
    change: &'a Change,
    tenant: &'a str,
    payment: &'a str,
}

/// Which one of the payment's it is, from 1: children come back in this order.
fn place<T>(all: &[T], is: impl Fn(&T) -> bool) -> i64 {
    i64::try_from(all.iter().position(is).unwrap_or(all.len())).unwrap_or(i64::MAX - 1) + 1
}

impl Target<'_> {
    async fn attempt(&self, row: &Attempt) -> Result<u64, Failed> {
        let n = place(&self.change.payment.attempts, |one| one.id == row.id);
        let (id, channel, account, channel_ref) = (row.id.as_str(), row.channel.as_str(), row.account.as_str(), row.channel_ref.as_str());
        let (status, live, doc) = (row.status.as_str(), row.is_live(), json(row)?);
        self.session
            .count(
                &sql::PAYMENTS_PUT_ATTEMPT,
                &[&self.tenant, &id, &self.payment, &n, &channel, &account, &channel_ref, &status, &live, &doc],
            )
            .await
    }

    async fn capture(&self, row: &Capture) -> Result<u64, Failed> {
        let n = place(&self.change.payment.captures, |one| one.id == row.id);
        let (id, status, amount, doc) = (row.id.as_str(), row.status.as_str(), row.amount.minor, json(row)?);
        self.session.count(&sql::PAYMENTS_PUT_CAPTURE, &[&self.tenant, &id, &self.payment, &n, &status, &amount, &doc]).await
    }

    async fn refund(&self, row: &Refund) -> Result<u64, Failed> {
        let n = place(&self.change.payment.refunds, |one| one.id == row.id);
        let refund_id = row.refund_id.as_ref().map(|id| id.as_str());
        let (id, account, channel_ref) = (row.id.as_str(), row.account.as_str(), row.channel_ref.as_str());
        let (status, amount, doc) = (row.status.as_str(), row.amount.minor, json(row)?);
        self.session
            .count(
                &sql::PAYMENTS_PUT_REFUND,
                &[&self.tenant, &id, &self.payment, &n, &refund_id, &account, &channel_ref, &status, &amount, &doc],
            )
            .await
    }

    async fn surplus(&self, row: &Surplus) -> Result<u64, Failed> {
        let n = place(&self.change.payment.surpluses, |one| one.id == row.id);
        let (id, account, txn) = (row.id.as_str(), row.account.as_str(), row.channel_txn.as_str());
        let (amount, doc) = (row.amount.minor, json(row)?);
        self.session.count(&sql::PAYMENTS_PUT_SURPLUS, &[&self.tenant, &id, &self.payment, &n, &account, &txn, &amount, &doc]).await
    }

    async fn event(&self, row: &Event) -> Result<u64, Failed> {
        let (id, version, n, at) = (row.id.as_str(), number(row.version)?, i64::from(row.n), row.created_at.0);
        let (notify_url, doc) = (&self.change.payment.notify_url, json(row)?);
        self.session.count(&sql::OUTBOX_PUT, &[&self.tenant, &id, &self.payment, &version, &n, &at, notify_url, &doc]).await
    }

    async fn entry(&self, row: &AuditEntry) -> Result<u64, Failed> {
        let (n, doc) = (number(row.n)?, json(row)?);
        self.session.count(&sql::PAYMENTS_PUT_AUDIT, &[&self.tenant, &self.payment, &n, &doc]).await
    }
}
