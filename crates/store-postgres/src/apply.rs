//! One change of a payment, whole or not at all (I5).
//!
//! In: a [`Change`]. Out: what became of it. One transaction in two round trips: everything at once, then COMMIT or ROLLBACK by what came back. Where the
//! database asks to repeat it, only this transaction is repeated (B036). A fault before the COMMIT was sent means that nothing is there.

use payonce_core::payment::change::Change;
use payonce_core::ports::StoreFault;
use payonce_core::ports::payments::{Applied, Rule};

use crate::PostgresStore;
use crate::fault::{Effect, violated};
use crate::rows::{self, at};
use crate::session::{Failed, Session};
use crate::statement as sql;

mod children;

/// Why the transaction is rolled back.
enum Undo {
    /// This is the answer all the same.
    Answer(Applied),
    /// The order or the id of an insert is taken: which one is looked up behind the rollback.
    Taken,
    /// It failed.
    Failed(Failed),
}

pub(crate) async fn apply_once(store: &PostgresStore, change: &Change) -> Result<Applied, StoreFault> {
    let session = store.session().await?;
    let work = async {
        session.ready(PIPELINE).await?;
        match sent(&session, change).await {
            Ok(()) => session.commit().await.map(|()| Applied::Done),
            Err(undo) => {
                session.roll_back().await;
                match undo {
                    Undo::Answer(applied) => Ok(applied),
                    Undo::Taken => taken(&session, change).await,
                    Undo::Failed(failed) => Err(session.fault(failed, Effect::None)),
                }
            }
        }
    };
    session.within(Effect::None, work).await
}

/// The statements that are under way at once.
const PIPELINE: &[&sql::Statement] = &[
    &sql::PAYMENTS_INSERT,
    &sql::PAYMENTS_MOVE,
    &sql::INBOX_SETTLE,
    &sql::PAYMENTS_PUT_ATTEMPT,
    &sql::PAYMENTS_PUT_CAPTURE,
    &sql::PAYMENTS_PUT_REFUND,
    &sql::PAYMENTS_PUT_SURPLUS,
    &sql::PAYMENTS_PUT_AUDIT,
    &sql::OUTBOX_PUT,
];

/// Sends everything up to the COMMIT in one go, and judges what came back in the order in which it was sent: what follows a failure fails too.
async fn sent(session: &Session, change: &Change) -> Result<(), Undo> {
    let doc = rows::json(&change.payment).map_err(|fault| Undo::Failed(fault.into()))?;
    let (begun, moved, settled, children) =
        tokio::join!(biased; session.begin(), payment(session, change, &doc), settle(session, change), children::put(session, change));
    begun.map_err(Undo::Failed)?;
    if moved.map_err(Undo::Failed)? == 0 {
        return Err(if change.seen.is_none() { Undo::Taken } else { Undo::Answer(Applied::Conflict) });
    }
    if settled.map_err(Undo::Failed)? == Some(0) {
        return Err(Undo::Answer(Applied::Violates(Rule::InboxRow)));
    }
    children.into_iter().try_for_each(put)
}

/// A rule that stands in the way is an answer, not a fault.
fn put(done: Result<u64, Failed>) -> Result<(), Undo> {
    match done {
        Ok(1) => Ok(()),
        Ok(_) => Err(Undo::Failed(StoreFault::Refused("a row of this id belongs to another payment".to_owned()).into())),
        Err(Failed::Sql(error)) => Err(match violated(&error) {
            Some(rule) => Undo::Answer(Applied::Violates(rule)),
            None => Undo::Failed(Failed::Sql(error)),
        }),
        Err(failed @ Failed::Fault(_)) => Err(Undo::Failed(failed)),
    }
}

async fn payment(session: &Session, change: &Change, doc: &str) -> Result<u64, Failed> {
    let payment = &change.payment;
    let (tenant, id, version) = (payment.tenant.as_str(), payment.id.as_str(), rows::number(payment.version)?);
    let (status, currency, amount) = (payment.status.as_str(), payment.currency(), payment.amount.minor);
    let (currency, due_at, updated_at) = (currency.code(), payment.due_at().map(|at| at.0), payment.updated_at.0);
    let Some(seen) = change.seen else {
        let (order, created_at) = (payment.order_id.as_str(), payment.created_at.0);
        return session
            .count(
                &sql::PAYMENTS_INSERT,
                &[&tenant, &id, &order, &version, &status, &currency, &amount, &due_at, &created_at, &updated_at, &doc],
            )
            .await;
    };
    let seen = rows::number(seen)?;
    session.count(&sql::PAYMENTS_MOVE, &[&tenant, &id, &seen, &version, &status, &currency, &amount, &due_at, &updated_at, &doc]).await
}

/// Marks the inbox row, if the change settles one. How many rows it met.
async fn settle(session: &Session, change: &Change) -> Result<Option<u64>, Failed> {
    let Some(mark) = &change.inbox else { return Ok(None) };
    let payment = &change.payment;
    let note = mark.note.as_deref().map(rows::text);
    let params = (payment.tenant.as_str(), mark.id.as_str(), payment.id.as_str());
    session.count(&sql::INBOX_SETTLE, &[&params.0, &params.1, &params.2, &note]).await.map(Some)
}

/// What stood in the way of an insert: the order, or the id.
async fn taken(session: &Session, change: &Change) -> Result<Applied, StoreFault> {
    let payment = &change.payment;
    let params = (payment.tenant.as_str(), payment.order_id.as_str());
    let found = session.rows(&sql::PAYMENTS_ORDER_OWNER, &[&params.0, &params.1]).await;
    let found = found.map_err(|failed| session.fault(failed, Effect::None))?;
    Ok(match found.first().map(|row| rows::payment_id(at(row, 0)?)).transpose()? {
        // The same insert came twice.
        Some(owner) if owner == payment.id => Applied::Conflict,
        Some(owner) => Applied::OrderTaken(owner),
        None => Applied::Conflict,
    })
}
