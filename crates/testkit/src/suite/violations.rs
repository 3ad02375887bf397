//! The unique rules that the database holds: a change that breaks one leaves nothing, not even its mark in the inbox (I1, I5, I9, B048).

use std::sync::Arc;

use payonce_core::attempt::AttemptStatus;
use payonce_core::event::EventKind;
use payonce_core::id::InboxId;
use payonce_core::outcome::{Outcome, Source};
use payonce_core::payment::change::{Change, InboxMark};
use payonce_core::payment::draft::Draft;
use payonce_core::payment::observe::{Observation, observe};
use payonce_core::payment::refunds::reserve;
use payonce_core::payment::{Payment, SurplusPolicy};
use payonce_core::ports::Store;
use payonce_core::ports::inbox::{InboxRow, InboxStatus};
use payonce_core::ports::payments::{Applied, Rule};

use super::payments::{assert_chain, done, load};
use super::{Fixture, at_once};
use crate::build::{Build, account, channel, notification, paid, sealed, tenant, verified};

/// A waiting row of the inbox.
pub(super) async fn received(store: &Arc<dyn Store>, build: &Build, identity: &str) -> InboxId {
    let id = build.inbox_id();
    let message = verified(&[notification(identity, "ref")]);
    let new = store.receive(&tenant("m1"), &channel("alipay"), &account("ali"), &message, &sealed("raw"), &[id.clone()], build.now()).await;
    assert_eq!(new, Ok(vec![id.clone()]));
    id
}

pub(super) fn mark(id: &InboxId) -> InboxMark {
    InboxMark { id: id.clone(), note: Some("paid: 茶".to_owned()) }
}

async fn inbox_row(store: &Arc<dyn Store>, id: &InboxId) -> InboxRow {
    store.inbox_row(&tenant("m1"), id).await.expect("inbox row").expect("it is there")
}

/// Tries a change that must break `rule`, with a new attempt, refund, event, timeline entry and inbox mark beside what breaks it, and
/// makes sure that all is as before.
async fn refused(store: &Arc<dyn Store>, build: &Build, before: &Payment, rule: Rule, edit: impl FnOnce(&mut Draft)) {
    let inbox = received(store, build, &format!("{rule:?}-{}", build.inbox_id())).await;
    let change = build.settled_change(before, Some(mark(&inbox)), |draft| {
        draft.after.description = Some("changed".to_owned());
        for attempt in &mut draft.after.attempts {
            attempt.looks += 1;
        }
        if !draft.after.attempts.is_empty() {
            let innocent = build.refund(&draft.after, Some("innocent"), 1);
            reserve(draft, innocent);
        }
        draft.tell(EventKind::Review, None, serde_json::Value::Null);
        edit(draft);
    });
    let change = change.expect("a change");
    assert!(!change.events.is_empty() && !change.audit.is_empty());
    let timeline = store.timeline(&before.tenant, &before.id).await.expect("timeline");
    let events = store.events_of(&before.tenant, &before.id).await.expect("events");
    let row = inbox_row(store, &inbox).await;

    assert_eq!(store.apply(&change).await, Ok(Applied::Violates(rule)));

    assert_eq!(load(store, before).await, *before);
    assert_eq!(store.timeline(&before.tenant, &before.id).await, Ok(timeline.clone()));
    assert_chain(before, &timeline);
    assert_eq!(store.events_of(&before.tenant, &before.id).await, Ok(events));
    assert_eq!((row.status, row), (InboxStatus::Waiting, inbox_row(store, &inbox).await));
    for attempt in change.attempts.iter().filter(|row| before.attempt(&row.id).is_none() && rule != Rule::ChannelRef) {
        assert_eq!(store.find_attempt(&before.tenant, &attempt.account, attempt.channel_ref.as_str()).await, Ok(None));
    }
    for refund in change.refunds.iter().filter(|row| before.refund(&row.id).is_none()) {
        assert_eq!(store.find_refund(&before.tenant, &refund.id).await, Ok(None));
    }
    // The way is free for the change without what broke the rule.
    let change = build.settled_change(before, Some(mark(&inbox)), |draft| draft.note("again", None, serde_json::json!({})));
    done(store, change.expect("a change")).await;
}

pub async fn a_second_live_attempt_leaves_nothing<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(70));
    for (n, status) in
        [AttemptStatus::Prepared, AttemptStatus::Pending, AttemptStatus::Unknown, AttemptStatus::Authorized].into_iter().enumerate()
    {
        let mut first = build.created(&tenant("m1"), &format!("O{n}"));
        first.payment.attempts[0].status = status;
        first.attempts = first.payment.attempts.clone();
        let payment = done(&store, first).await;
        for second_status in [AttemptStatus::Prepared, AttemptStatus::Authorized] {
            let payment = load(&store, &payment).await;
            refused(&store, &build, &payment, Rule::OneLiveAttempt, |draft| {
                let mut second = build.attempt(&draft.after, "wechat", "wx");
                second.status = second_status;
                draft.after.attempts.push(second);
            })
            .await;
        }
    }
    // Two of them in one insert.
    let mut both = build.created(&tenant("m1"), "both");
    let second = build.attempt(&both.payment, "wechat", "wx");
    both.payment.attempts.push(second);
    both.attempts = both.payment.attempts.clone();
    assert_eq!(store.apply(&both).await, Ok(Applied::Violates(Rule::OneLiveAttempt)));
    assert_eq!(store.load(&tenant("m1"), &both.payment.id).await, Ok(None));
    assert_eq!(store.load_order(&tenant("m1"), &both.payment.order_id).await, Ok(None));
}

pub async fn a_second_live_attempt_is_free_once_the_first_is_released<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(71));
    let payment = done(&store, build.created(&tenant("m1"), "O1")).await;
    let change = build.change(&payment, |draft| {
        draft.after.attempts[0].released = true;
        let second = build.attempt(&draft.after, "wechat", "wx");
        draft.after.attempts.push(second);
    });
    let payment = done(&store, change).await;
    assert_eq!(load(&store, &payment).await, payment);
    refused(&store, &build, &payment, Rule::OneLiveAttempt, |draft| draft.after.attempts[0].released = false).await;
    // The end of one and the start of the next are one change.
    let payment = load(&store, &payment).await;
    let change = build.change(&payment, |draft| {
        draft.after.attempts[1].status = AttemptStatus::Closed;
        let third = build.attempt(&draft.after, "stripe", "str");
        draft.after.attempts.push(third);
    });
    let payment = done(&store, change).await;
    assert_eq!(load(&store, &payment).await, payment);
}

pub async fn a_used_channel_reference_leaves_nothing<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(72));
    let other = done(&store, build.created(&tenant("m1"), "O1")).await;
    let payment = done(&store, build.created(&tenant("m1"), "O2")).await;
    let payment = done(&store, build.observed(&payment, Outcome::Closed)).await;
    // Of another payment, and of an attempt of its own.
    for used in [other.attempts[0].channel_ref.clone(), payment.attempts[0].channel_ref.clone()] {
        let payment = load(&store, &payment).await;
        refused(&store, &build, &payment, Rule::ChannelRef, |draft| {
            let mut second = build.attempt(&draft.after, "alipay", "ali");
            second.channel_ref = used;
            draft.after.attempts.push(second);
        })
        .await;
    }
    let mut insert = build.created(&tenant("m1"), "O3");
    insert.payment.attempts[0].channel_ref = other.attempts[0].channel_ref.clone();
    insert.attempts = insert.payment.attempts.clone();
    assert_eq!(store.apply(&insert).await, Ok(Applied::Violates(Rule::ChannelRef)));
    assert_eq!(store.load(&tenant("m1"), &insert.payment.id).await, Ok(None));
    assert_eq!(store.find_attempt(&tenant("m1"), &account("ali"), other.attempts[0].channel_ref.as_str()).await, Ok(Some(other.id)));
}

pub async fn a_used_refund_reference_leaves_nothing<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(73));
    let mut payments = Vec::new();
    for order in ["O1", "O2"] {
        let payment = done(&store, build.created(&tenant("m1"), order)).await;
        let payment = done(&store, build.paid(&payment, order)).await;
        let change = build.change(&payment, |draft| {
            let refund = build.refund(&draft.after, Some("r1"), 100);
            reserve(draft, refund);
        });
        payments.push(done(&store, change).await);
    }
    for used in [payments[0].refunds[0].channel_ref.clone(), payments[1].refunds[0].channel_ref.clone()] {
        let payment = load(&store, &payments[1]).await;
        refused(&store, &build, &payment, Rule::ChannelRef, |draft| {
            let mut refund = build.refund(&draft.after, Some("r2"), 100);
            refund.channel_ref = used;
            reserve(draft, refund);
        })
        .await;
    }
}

pub async fn a_used_refund_number_leaves_nothing<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(74));
    let payment = done(&store, build.created(&tenant("m1"), "O1")).await;
    let payment = done(&store, build.paid(&payment, "t")).await;
    let change = build.change(&payment, |draft| {
        for number in [Some("r1"), Some("R1"), Some("r1 "), None, None] {
            let refund = build.refund(&draft.after, number, 100);
            reserve(draft, refund);
        }
    });
    let payment = done(&store, change).await;
    assert_eq!(load(&store, &payment).await, payment, "numbers are byte-exact, and refunds without one are many");
    refused(&store, &build, &payment, Rule::RefundId, |draft| {
        let refund = build.refund(&draft.after, Some("r1"), 200);
        reserve(draft, refund);
    })
    .await;
}

/// The insert of a payment, its end without money, and the change that books late money as a surplus.
async fn late_money(store: &Arc<dyn Store>, build: &Build, order: &str, txn: &str) -> (Payment, Change) {
    let payment = done(store, build.created(&tenant("m1"), order)).await;
    let payment = done(store, build.observed(&payment, Outcome::Closed)).await;
    let seen = Observation {
        attempt: payment.attempts[0].id.clone(),
        outcome: paid(txn, payment.amount),
        source: Source::Notification,
        action: None,
    };
    let change = build.change(&payment, |draft| observe(draft, &seen, SurplusPolicy::Hold));
    assert_eq!(change.surpluses.len(), 1);
    (payment, change)
}

pub async fn a_booked_surplus_leaves_nothing<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(75));
    let (_, first) = late_money(&store, &build, "O1", "late").await;
    done(&store, first.clone()).await;
    let (payment, second) = late_money(&store, &build, "O2", "late").await;
    refused(&store, &build, &payment, Rule::SurplusTxn, |draft| draft.after.surpluses = second.payment.surpluses.clone()).await;
    // Another transaction, and the same one in other letters, are other money.
    for (order, txn) in [("O3", "late2"), ("O4", "LATE")] {
        let (_, change) = late_money(&store, &build, order, txn).await;
        done(&store, change).await;
    }
}

pub async fn b048_mark_and_effect_commit_together<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(76));
    let payment = done(&store, build.created(&tenant("m1"), "O1")).await;
    let inbox = received(&store, &build, "e1").await;
    // The first try loses against somebody else's change: nothing of it is there, and the row still waits.
    let slow =
        build.settled_change(&payment, Some(mark(&inbox)), |draft| draft.note("slow", None, serde_json::json!({}))).expect("a change");
    let payment = done(&store, build.observed(&payment, Outcome::AbsentYet)).await;
    assert_eq!(store.apply(&slow).await, Ok(Applied::Conflict));
    assert_eq!(inbox_row(&store, &inbox).await.status, InboxStatus::Waiting);
    // The second lands whole.
    let seen = Observation {
        attempt: payment.attempts[0].id.clone(),
        outcome: paid("t", payment.amount),
        source: Source::Notification,
        action: None,
    };
    let settle =
        |payment: &Payment| build.settled_change(payment, Some(mark(&inbox)), |draft| observe(draft, &seen, SurplusPolicy::Refund));
    let payment = done(&store, settle(&payment).expect("a change")).await;
    let row = inbox_row(&fixture.second(), &inbox).await;
    assert_eq!((row.status, &row.payment_id, &row.note), (InboxStatus::Settled, &Some(payment.id.clone()), &mark(&inbox).note));
    // Settled once: the same row never carries a second effect.
    let again = settle(&payment).expect("a mark alone is a change");
    assert_eq!(store.apply(&again).await, Ok(Applied::Violates(Rule::InboxRow)));
    refused(&store, &build, &payment, Rule::RefundId, |draft| {
        let clash = build.refund(&draft.after, Some("innocent"), 1);
        reserve(draft, clash);
    })
    .await;
    let told = store.events_of(&payment.tenant, &payment.id).await.expect("events");
    assert_eq!(told.iter().filter(|(event, _)| event.kind == EventKind::Paid).count(), 1);
    assert_eq!(inbox_row(&store, &inbox).await, row);
}

pub async fn b046_one_of_many_settles_an_inbox_row<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(77));
    let inbox = received(&store, &build, "e1").await;
    // The row is tried against many payments at once: only one of them may have it.
    let mut changes = Vec::new();
    for n in 0..16 {
        let payment = done(&store, build.created(&tenant("m1"), &format!("O{n}"))).await;
        let settle = build.settled_change(&payment, Some(mark(&inbox)), |draft| draft.note("settled", None, serde_json::json!({})));
        changes.push(settle.expect("a change"));
    }
    let changes = Arc::new(changes);
    let tried = changes.clone();
    let applied = at_once(fixture, 16, move |n, store| {
        let tried = tried.clone();
        async move { store.apply(&tried[n]).await.expect("apply") }
    })
    .await;
    let winners: Vec<usize> = (0..16).filter(|n| applied[*n] == Applied::Done).collect();
    assert_eq!(winners.len(), 1, "{winners:?}");
    assert!(applied.iter().all(|applied| matches!(applied, Applied::Done | Applied::Violates(Rule::InboxRow))), "{applied:?}");
    assert_eq!(inbox_row(&store, &inbox).await.payment_id, Some(changes[winners[0]].payment.id.clone()));
    for (n, change) in changes.iter().enumerate() {
        assert_eq!(load(&store, &change.payment).await.version, if n == winners[0] { 2 } else { 1 });
    }
}

pub async fn b076_one_of_16_payments_books_a_surplus<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(78));
    let mut changes = Vec::new();
    for n in 0..16 {
        changes.push(late_money(&store, &build, &format!("O{n}"), "late").await.1);
    }
    let changes = Arc::new(changes);
    let tried = changes.clone();
    let applied = at_once(fixture, 16, move |n, store| {
        let tried = tried.clone();
        async move { store.apply(&tried[n]).await.expect("apply") }
    })
    .await;
    assert_eq!(applied.iter().filter(|applied| **applied == Applied::Done).count(), 1, "{applied:?}");
    assert!(applied.iter().all(|applied| matches!(applied, Applied::Done | Applied::Violates(Rule::SurplusTxn))), "{applied:?}");
    for (change, applied) in changes.iter().zip(&applied) {
        let stored = load(&store, &change.payment).await;
        assert_eq!(stored.surpluses.len(), usize::from(*applied == Applied::Done));
    }
}
