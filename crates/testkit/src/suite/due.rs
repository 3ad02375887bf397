//! What is due: shared between nodes, held while one of them works on it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use payonce_core::clock::Timestamp;
use payonce_core::id::{PaymentId, TenantId};
use payonce_core::outcome::Outcome;
use payonce_core::payment::Payment;
use payonce_core::payment::change::Change;
use payonce_core::ports::Store;
use payonce_core::ports::payments::Applied;

use super::payments::done;
use super::{Fixture, at_once};
use crate::build::{Build, START, tenant};

const HOLD: Duration = Duration::from_secs(30);
/// The moment around which the samples are due.
const NOON: Timestamp = Timestamp(START.0 + 3_600_000);

trait Seconds {
    fn secs(self, by: i64) -> Timestamp;
}

impl Seconds for Timestamp {
    fn secs(self, by: i64) -> Timestamp {
        Timestamp(self.0 + by * 1000)
    }
}

fn due_at(build: &Build, owner: &TenantId, order: &str, at: Option<Timestamp>) -> Change {
    let mut change = build.created(owner, order);
    change.payment.attempts[0].due_at = at;
    change.attempts = change.payment.attempts.clone();
    change
}

async fn stored(store: &Arc<dyn Store>, build: &Build, order: &str, at: Option<Timestamp>) -> Payment {
    done(store, due_at(build, &tenant("m1"), order, at)).await
}

async fn take(store: &Arc<dyn Store>, now: Timestamp, limit: usize) -> Vec<PaymentId> {
    store.take_due(now, HOLD, limit).await.expect("take due").into_iter().map(|(_, id)| id).collect()
}

pub async fn due_payments_are_taken_earliest_first_and_held<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(80));
    let late = stored(&store, &build, "late", Some(NOON.secs(-1))).await;
    let early = stored(&store, &build, "early", Some(NOON.secs(-100))).await;
    let middle = done(&store, due_at(&build, &tenant("m2"), "middle", Some(NOON.secs(-50)))).await;
    let exact = stored(&store, &build, "exact", Some(NOON)).await;
    let taken = store.take_due(NOON, HOLD, 2).await.expect("take due");
    assert_eq!(taken.iter().cloned().collect::<BTreeSet<_>>(), BTreeSet::from([(tenant("m1"), early.id), (tenant("m2"), middle.id)]));
    let next = take(&fixture.second(), NOON, 10).await;
    assert_eq!(next.into_iter().collect::<BTreeSet<_>>(), BTreeSet::from([late.id, exact.id]), "the others are held");
    assert_eq!(take(&store, NOON.secs(29), 10).await, []);
}

pub async fn a_hold_runs_out<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(81));
    let payment = stored(&store, &build, "O1", Some(NOON)).await;
    assert_eq!(take(&store, NOON, 10).await, [payment.id.clone()]);
    assert_eq!(take(&fixture.second(), NOON.secs(29), 10).await, []);
    assert_eq!(take(&fixture.second(), NOON.secs(31), 10).await, [payment.id.clone()], "its node died");
    assert_eq!(take(&store, NOON.secs(32), 10).await, [], "the new hold counts");
}

pub async fn a_payment_that_was_let_go_is_due_again<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(82));
    let payment = stored(&store, &build, "O1", Some(NOON)).await;
    let other = stored(&store, &build, "O2", Some(NOON)).await;
    assert_eq!(take(&store, NOON, 10).await.len(), 2);
    store.let_go(&payment.tenant, &payment.id).await.expect("let go");
    assert_eq!(take(&fixture.second(), NOON, 10).await, [payment.id.clone()]);
    // A change of a held payment, by a notification say, does not take it from its node.
    done(&store, build.observed(&other, Outcome::Waiting { action: None, txn: None })).await;
    assert_eq!(take(&store, NOON, 10).await, []);
    store.let_go(&other.tenant, &other.id).await.expect("let go");
    assert_eq!(take(&store, NOON, 10).await, [other.id]);
}

pub async fn what_is_not_due_is_not_taken<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(83));
    stored(&store, &build, "never", None).await;
    let future = stored(&store, &build, "future", Some(Timestamp(NOON.0 + 1))).await;
    assert_eq!(take(&store, NOON, 10).await, []);
    assert_eq!(take(&store, Timestamp(NOON.0 + 1), 10).await, [future.id]);
    assert_eq!(take(&store, NOON.secs(100), 0).await, []);
}

pub async fn a_change_moves_the_due_time<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(84));
    let payment = stored(&store, &build, "O1", Some(NOON)).await;
    let change = build.change(&payment, |draft| draft.after.attempts[0].due_at = Some(NOON.secs(60)));
    let payment = done(&store, change).await;
    assert_eq!(take(&store, NOON.secs(59), 10).await, []);
    // A refund that is due earlier counts as well as the attempt.
    let change = build.change(&payment, |draft| {
        let mut refund = build.refund(&draft.after, Some("r1"), 1);
        refund.due_at = Some(NOON.secs(10));
        draft.after.refunds.push(refund);
    });
    let payment = done(&store, change).await;
    assert_eq!(take(&store, NOON.secs(9), 10).await, []);
    assert_eq!(take(&store, NOON.secs(10), 10).await, [payment.id.clone()]);
    store.let_go(&payment.tenant, &payment.id).await.expect("let go");
    let change = build.change(&payment, |draft| {
        draft.after.attempts[0].due_at = None;
        draft.after.refunds[0].due_at = None;
    });
    done(&store, change).await;
    assert_eq!(take(&store, NOON.secs(9999), 10).await, []);
}

pub async fn two_handles_share_what_is_due<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(85));
    let mut due = BTreeSet::new();
    for n in 0..60 {
        let owner = tenant(["m1", "m2", "m3"][n % 3]);
        let change = due_at(&build, &owner, &format!("O{n}"), Some(NOON.secs(-(n as i64 % 7))));
        assert_eq!(store.apply(&change).await, Ok(Applied::Done));
        due.insert(change.payment.id);
    }
    let taken = at_once(fixture, 8, |_, store| async move {
        let mut taken = Vec::new();
        loop {
            let some = take(&store, NOON, 5).await;
            if some.is_empty() {
                return taken;
            }
            assert!(some.len() <= 5);
            taken.extend(some);
        }
    })
    .await;
    let all: Vec<PaymentId> = taken.into_iter().flatten().collect();
    assert_eq!(all.len(), 60, "each is taken once");
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), due);
}
