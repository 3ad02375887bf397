//! One change of a payment, whole or not at all (I5).
//!
//! In: a [`Change`]. Out: what became of it; everything but `Done` leaves nothing behind, because the writer undoes its savepoint.

use payonce_core::attempt::Attempt;
use payonce_core::id::PaymentId;
use payonce_core::payment::change::Change;
use payonce_core::ports::StoreFault;
use payonce_core::ports::payments::{Applied, Rule};
use rusqlite::{Connection, OptionalExtension, ToSql, params};

use crate::fault::{Fault, Undo, violated};
use crate::rows;
use crate::statements as sql;

type Step = Result<(), Undo<Applied>>;

pub(crate) fn apply(connection: &Connection, change: &Change) -> Result<Applied, Undo<Applied>> {
    payment(connection, change)?;
    inbox(connection, change)?;
    children(connection, change)?;
    told(connection, change)?;
    Ok(Applied::Done)
}

fn payment(connection: &Connection, change: &Change) -> Step {
    let payment = &change.payment;
    let (tenant, id, version) = (payment.tenant.as_str(), payment.id.as_str(), number(payment.version)?);
    let (status, currency) = (payment.status.as_str(), payment.currency());
    let (due_at, doc) = (payment.due_at().map(|at| at.0), serde_json::to_string(payment)?);
    let Some(seen) = change.seen else {
        let order = payment.order_id.as_str();
        let params = params![
            tenant,
            id,
            order,
            version,
            status,
            currency.code(),
            payment.amount.minor,
            due_at,
            payment.created_at.0,
            payment.updated_at.0,
            doc,
        ];
        if connection.prepare_cached(sql::PAYMENTS_INSERT)?.execute(params)? == 1 {
            return Ok(());
        }
        return Err(Undo::Answer(taken(connection, tenant, order, &payment.id)?));
    };
    let params =
        params![tenant, id, number(seen)?, version, status, currency.code(), payment.amount.minor, due_at, payment.updated_at.0, doc];
    match connection.prepare_cached(sql::PAYMENTS_MOVE)?.execute(params)? {
        0 => Err(Undo::Answer(Applied::Conflict)),
        _ => Ok(()),
    }
}

/// What stood in the way of an insert: the order, or the id.
fn taken(connection: &Connection, tenant: &str, order: &str, id: &PaymentId) -> Result<Applied, Fault> {
    let owner: Option<String> =
        connection.prepare_cached(sql::PAYMENTS_ORDER_OWNER)?.query_row([tenant, order], |row| row.get(0)).optional()?;
    Ok(match owner.map(|owner| rows::payment_id(&owner)).transpose()? {
        // The same insert came twice.
        Some(owner) if &owner == id => Applied::Conflict,
        Some(owner) => Applied::OrderTaken(owner),
        None => Applied::Conflict,
    })
}

fn inbox(connection: &Connection, change: &Change) -> Step {
    let Some(mark) = &change.inbox else { return Ok(()) };
    let payment = &change.payment;
    let params = params![payment.tenant.as_str(), mark.id.as_str(), payment.id.as_str(), mark.note];
    match connection.prepare_cached(sql::INBOX_SETTLE)?.execute(params)? {
        0 => Err(Undo::Answer(Applied::Violates(Rule::InboxRow))),
        _ => Ok(()),
    }
}

fn children(connection: &Connection, change: &Change) -> Step {
    let payment = &change.payment;
    let (tenant, id) = (payment.tenant.as_str(), payment.id.as_str());
    // Those that are no longer live go first, so that a switch never shows the index of I1 two live ones.
    let mut attempts: Vec<&Attempt> = change.attempts.iter().collect();
    attempts.sort_by_key(|attempt| attempt.is_live());
    for attempt in attempts {
        let n = place(payment.attempts.iter().position(|one| one.id == attempt.id), payment.attempts.len());
        let (channel, account, channel_ref) = (attempt.channel.as_str(), attempt.account.as_str(), attempt.channel_ref.as_str());
        let (status, live, doc) = (attempt.status.as_str(), attempt.is_live(), serde_json::to_string(attempt)?);
        put(
            connection,
            sql::PAYMENTS_PUT_ATTEMPT,
            params![tenant, attempt.id.as_str(), id, n, channel, account, channel_ref, status, live, doc],
        )?;
    }
    for capture in &change.captures {
        let n = place(payment.captures.iter().position(|one| one.id == capture.id), payment.captures.len());
        let (status, amount, doc) = (capture.status.as_str(), capture.amount.minor, serde_json::to_string(capture)?);
        put(connection, sql::PAYMENTS_PUT_CAPTURE, params![tenant, capture.id.as_str(), id, n, status, amount, doc])?;
    }
    for refund in &change.refunds {
        let n = place(payment.refunds.iter().position(|one| one.id == refund.id), payment.refunds.len());
        let refund_id = refund.refund_id.as_ref().map(|id| id.as_str());
        let (account, channel_ref) = (refund.account.as_str(), refund.channel_ref.as_str());
        let (status, amount, doc) = (refund.status.as_str(), refund.amount.minor, serde_json::to_string(refund)?);
        put(
            connection,
            sql::PAYMENTS_PUT_REFUND,
            params![tenant, refund.id.as_str(), id, n, refund_id, account, channel_ref, status, amount, doc],
        )?;
    }
    for surplus in &change.surpluses {
        let n = place(payment.surpluses.iter().position(|one| one.id == surplus.id), payment.surpluses.len());
        let (account, txn) = (surplus.account.as_str(), surplus.channel_txn.as_str());
        let (amount, doc) = (surplus.amount.minor, serde_json::to_string(surplus)?);
        put(connection, sql::PAYMENTS_PUT_SURPLUS, params![tenant, surplus.id.as_str(), id, n, account, txn, amount, doc])?;
    }
    Ok(())
}

fn told(connection: &Connection, change: &Change) -> Step {
    let payment = &change.payment;
    let (tenant, id) = (payment.tenant.as_str(), payment.id.as_str());
    for event in &change.events {
        let doc = serde_json::to_string(event)?;
        let (version, at) = (number(event.version)?, event.created_at.0);
        let params = params![tenant, event.id.as_str(), id, version, event.n, at, payment.notify_url, doc];
        connection.prepare_cached(sql::OUTBOX_PUT)?.execute(params)?;
    }
    for entry in &change.audit {
        let params = params![tenant, id, number(entry.n)?, serde_json::to_string(entry)?];
        connection.prepare_cached(sql::PAYMENTS_PUT_AUDIT)?.execute(params)?;
    }
    Ok(())
}

/// Writes a child. The rule that stands in the way is an answer, not a fault.
fn put(connection: &Connection, statement: &str, params: &[&dyn ToSql]) -> Step {
    match connection.prepare_cached(statement)?.execute(params) {
        Ok(1) => Ok(()),
        Ok(_) => Err(Fault(StoreFault::Refused("a row of this id belongs to another payment".to_owned())).into()),
        Err(error) => Err(match violated(&error) {
            Some(rule) => Undo::Answer(Applied::Violates(rule)),
            None => error.into(),
        }),
    }
}

/// Which one of the payment's it is, from 1: children come back in this order.
fn place(position: Option<usize>, count: usize) -> i64 {
    i64::try_from(position.unwrap_or(count)).unwrap_or(i64::MAX - 1) + 1
}

fn number(value: u64) -> Result<i64, Fault> {
    i64::try_from(value).map_err(|_| Fault(StoreFault::Refused("a version or number is out of range".to_owned())))
}
