//! Many tasks on few payments: what was acknowledged, replayed one after the other on the memory store, ends in the same state.

use std::collections::BTreeMap;
use std::sync::Arc;

use payonce_core::attempt::AttemptStatus;
use payonce_core::clock::Fixed;
use payonce_core::event::EventKind;
use payonce_core::id::PaymentId;
use payonce_core::outcome::{Outcome, RefundOutcome, Source};
use payonce_core::payment::change::Change;
use payonce_core::payment::draft::Draft;
use payonce_core::payment::observe::{Observation, observe};
use payonce_core::payment::refunds::{RefundStand, judge, observe_refund, reserve};
use payonce_core::payment::{Payment, SurplusPolicy};
use payonce_core::ports::outbox::Outbox as _;
use payonce_core::ports::payments::{Applied, Payments as _};
use payonce_core::ports::{Store, StoreFault};

use super::payments::assert_chain;
use super::{Fixture, at_once};
use crate::build::{Build, START, authorized, merchant_ref, paid, tenant};
use crate::memory::MemoryStore;

const TASKS: usize = 64;
const STEPS: usize = 12;
const PAYMENTS: usize = 4;

/// A choice that follows from the builder's seed and the order of the calls.
fn pick(build: &Build, of: usize) -> usize {
    u32::from_le_bytes(build.bytes()) as usize % of
}

/// A random step that the rules allow from here. `None` where the drawn one changes nothing.
pub fn random_step(build: &Build, seen: &Payment) -> Option<Change> {
    build.settled_change(seen, None, |draft| {
        edit(build, seen, draft);
        if !draft.is_empty() {
            // Two tasks may decide the same in the same millisecond: this tells which of the two landed.
            draft.note("step", None, serde_json::json!({ "nonce": u64::from_le_bytes(build.bytes()) }));
        }
    })
}

fn edit(build: &Build, seen: &Payment, draft: &mut Draft) {
    match pick(build, 10) {
        0..=5 => {
            let attempt = &seen.attempts[pick(build, seen.attempts.len())];
            let observation = Observation {
                attempt: attempt.id.clone(),
                outcome: random_outcome(build, seen, attempt.n),
                source: Source::Notification,
                action: None,
            };
            observe(draft, &observation, SurplusPolicy::Refund);
        }
        // A switch: only once nothing is live and nothing is paid.
        6 | 7 if seen.live().is_none() && seen.paid_attempt().is_none() && seen.attempts.len() < 4 => {
            let next = build.attempt(&draft.after, "wechat", "wx");
            draft.after.attempts.push(next);
            draft.note("attempt_created", None, serde_json::json!({}));
        }
        8 => {
            let number = format!("r{}", pick(build, 3));
            if judge(seen, &merchant_ref(&number), crate::build::cny(3_000)) == Ok(RefundStand::Free) {
                let refund = build.refund(seen, Some(&number), 3_000);
                reserve(draft, refund);
            }
        }
        _ => {
            let open: Vec<_> = seen.open_refunds().map(|refund| refund.id.clone()).collect();
            if !open.is_empty() {
                let outcome = match pick(build, 4) {
                    0 => RefundOutcome::Succeeded { channel_refund_id: None },
                    1 => RefundOutcome::Failed(build.failure()),
                    2 => RefundOutcome::Unknown("timeout".to_owned()),
                    _ => RefundOutcome::Processing,
                };
                observe_refund(draft, &open[pick(build, open.len())], &outcome, Source::LookUp, false);
            }
        }
    }
}

fn random_outcome(build: &Build, seen: &Payment, n: u32) -> Outcome {
    // Few transactions, so that the same money is told more than once.
    let txn = format!("{}-{n}-{}", seen.order_id, pick(build, 2));
    match pick(build, 8) {
        0 => paid(&txn, seen.amount),
        1 => authorized(&txn, seen.amount),
        2 => Outcome::Declined(build.failure()),
        3 => Outcome::DeclinedOpen(build.failure()),
        4 => Outcome::Closed,
        5 => Outcome::AbsentYet,
        6 => Outcome::Unknown("no answer".to_owned()),
        _ => Outcome::Waiting { action: None, txn: None },
    }
}

/// Steps on one payment until one is acknowledged or the drawn one changes nothing; what landed.
async fn step(store: &Arc<dyn Store>, build: &Build, id: &PaymentId) -> Option<Change> {
    let m1 = tenant("m1");
    loop {
        let seen = sure(|| store.load(&m1, id)).await.expect("the payment is there");
        let change = random_step(build, &seen)?;
        match store.apply(&change).await {
            Ok(Applied::Done) => return Some(change),
            Ok(Applied::Conflict) | Err(StoreFault::Retry(_) | StoreFault::Unavailable(_)) => tokio::task::yield_now().await,
            // Nobody knows whether it landed: the hash of its last timeline entry tells, as long as it is in the timeline.
            Err(StoreFault::Ambiguous(_)) => {
                let timeline = sure(|| store.timeline(&m1, id)).await;
                let last = change.audit.last()?;
                if timeline.iter().any(|entry| entry.hash == last.hash) {
                    return Some(change);
                }
            }
            Ok(other @ (Applied::OrderTaken(_) | Applied::Violates(_))) => panic!("no step breaks a rule: {other:?} {change:?}"),
            Err(fault @ StoreFault::Refused(_)) => panic!("{fault}"),
        }
    }
}

/// Reads until the store answers: reads may always be repeated.
async fn sure<T, R>(mut read: impl FnMut() -> R) -> T
where
    R: Future<Output = Result<T, StoreFault>>,
{
    loop {
        match read().await {
            Ok(value) => return value,
            Err(StoreFault::Refused(why)) => panic!("{why}"),
            Err(StoreFault::Unavailable(_) | StoreFault::Ambiguous(_) | StoreFault::Retry(_)) => tokio::task::yield_now().await,
        }
    }
}

pub async fn acknowledged_changes_replay_to_the_same_end<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Arc::new(Build::new(130)));
    let m1 = tenant("m1");
    let mut acknowledged: BTreeMap<PaymentId, Vec<Change>> = BTreeMap::new();
    for n in 0..PAYMENTS {
        let change = build.created(&m1, &format!("O{n}"));
        sure(|| store.apply(&change)).await;
        acknowledged.insert(change.payment.id.clone(), vec![change]);
    }
    let ids: Arc<Vec<PaymentId>> = Arc::new(acknowledged.keys().cloned().collect());
    let landed = at_once(fixture, TASKS, move |n, store| {
        // Each task draws from a builder of its own: ids never clash, and a run is a set of 64 replayable walks.
        let (ids, build) = (ids.clone(), Build::new(0x5eed_0000 + n as u64 * 7919));
        async move {
            let mut landed = Vec::new();
            for _ in 0..STEPS {
                landed.extend(step(&store, &build, &ids[pick(&build, PAYMENTS)]).await);
            }
            landed
        }
    })
    .await;
    for change in landed.into_iter().flatten() {
        acknowledged.get_mut(&change.payment.id).expect("known").push(change);
    }
    let model = MemoryStore::new(Arc::new(Fixed::new(START, 0)));
    for (id, mut changes) in acknowledged {
        changes.sort_by_key(|change| change.payment.version);
        let versions: Vec<u64> = changes.iter().map(|change| change.payment.version).collect();
        assert_eq!(versions, (1..=changes.len() as u64).collect::<Vec<_>>(), "every version was acknowledged to one task");
        for change in &changes {
            assert_eq!(model.apply(change).await, Ok(Applied::Done));
        }
        let stored = sure(|| store.load(&m1, &id)).await.expect("the payment is there");
        assert_eq!(Some(&stored), model.load(&m1, &id).await.expect("load").as_ref());
        let timeline = sure(|| store.timeline(&m1, &id)).await;
        assert_eq!(timeline, model.timeline(&m1, &id).await.expect("timeline"));
        assert_chain(&stored, &timeline);
        let events = sure(|| store.events_of(&m1, &id)).await;
        assert_eq!(events, model.events_of(&m1, &id).await.expect("events"));
        assert!(stored.attempts.iter().filter(|attempt| attempt.is_live()).count() <= 1);
        assert!(stored.attempts.iter().filter(|attempt| attempt.status == AttemptStatus::Succeeded).count() <= 1);
        let told_paid = events.iter().filter(|(event, _)| event.kind == EventKind::Paid).count();
        assert_eq!(told_paid, usize::from(stored.paid_attempt().is_some()), "the merchant is told once, and only of money that is there");
    }
}
