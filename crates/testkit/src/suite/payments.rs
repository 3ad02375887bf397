//! Payments: what is applied is what is loaded, and nothing else is (I5).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use payonce_core::attempt::AttemptStatus;
use payonce_core::id::{MerchantRef, PaymentId, TenantId};
use payonce_core::outcome::{Outcome, RefundOutcome, Source};
use payonce_core::payment::change::{AuditEntry, Change};
use payonce_core::payment::observe::{Observation, observe};
use payonce_core::payment::refunds::{observe_refund, reserve};
use payonce_core::payment::{Payment, PaymentStatus, Review, SurplusPolicy};
use payonce_core::ports::Store;
use payonce_core::ports::payments::{Applied, Filter};
use payonce_core::refund::RefundStatus;

use super::{Fixture, at_once};
use crate::build::{Build, account, authorized, channel, merchant_ref, paid, sealed, tenant};

/// Applies a change that must land, and gives back the payment as it is then.
pub(super) async fn done(store: &Arc<dyn Store>, change: Change) -> Payment {
    assert_eq!(store.apply(&change).await, Ok(Applied::Done));
    change.payment
}

pub(super) async fn load(store: &Arc<dyn Store>, payment: &Payment) -> Payment {
    store.load(&payment.tenant, &payment.id).await.expect("load").expect("the payment is there")
}

/// A payment with children of every kind and every optional member filled, in the changes that lead there.
pub(super) fn full_history(build: &Build, owner: &TenantId, order: &str) -> Vec<Change> {
    let mut changes = vec![build.created_on(owner, order, "stripe", "str")];
    let mut payment = changes[0].payment.clone();
    let mut push = |change: Change| {
        changes.push(change.clone());
        change.payment
    };
    payment = push(build.change(&payment, |draft| {
        let lease = build.send_lease();
        draft.after.attempts[0].send = Some(lease);
        draft.after.attempts[0].manual_capture = true;
        draft.note("sending", None, serde_json::json!({ "n": 1, "text": "é 茶 \u{1}\"", "deep": { "b": [1, null, true], "a": -5 } }));
    }));
    payment = push(build.observed(&payment, Outcome::Declined(build.failure())));
    payment = push(build.change(&payment, |draft| {
        let next = build.attempt(&draft.after, "alipay", "ali");
        draft.after.attempts.push(next);
        draft.note("attempt_created", None, serde_json::json!({}));
    }));
    payment = push(build.change(&payment, |draft| {
        let capture = build.capture(&draft.after, Some("cap 茶-1"), 4_000);
        draft.after.captures.push(capture);
        let only = build.capture(&draft.after, None, 6_000);
        draft.after.captures.push(only);
        draft.after.attempts[1].action = Some(sealed("action"));
        draft.after.attempts[1].looks = 3;
        draft.note("capturing", None, serde_json::json!({}));
    }));
    payment = push(build.paid(&payment, "txn/2026'\"茶"));
    // Money beside the payment, on the attempt that had failed, with its refund.
    let late = Observation {
        attempt: payment.attempts[0].id.clone(),
        outcome: paid("late-txn", payment.amount),
        source: Source::Notification,
        action: None,
    };
    payment = push(build.change(&payment, |draft| observe(draft, &late, SurplusPolicy::Refund)));
    payment = push(build.change(&payment, |draft| {
        let [first, second] = [build.refund(&draft.after, Some("r1"), 3_000), build.refund(&draft.after, Some("r 2"), 2_000)];
        let (first_id, lease) = (first.id.clone(), build.send_lease());
        reserve(draft, first);
        reserve(draft, second);
        draft.after.refunds.last_mut().expect("it was reserved").send = Some(lease);
        observe_refund(draft, &first_id, &RefundOutcome::Failed(build.failure()), Source::Answer, true);
        let second_id = draft.after.refunds.last().expect("it was reserved").id.clone();
        let went = RefundOutcome::Succeeded { channel_refund_id: Some("re_茶".to_owned()) };
        observe_refund(draft, &second_id, &went, Source::Statement, false);
        draft.after.captures[0].status = RefundStatus::Succeeded;
    }));
    push(build.change(&payment, |draft| {
        draft.after.review = Some(Review { code: "unresolved".to_owned(), detail: "nobody knows: 茶".to_owned() });
        draft.after.attempts[1].released = true;
        draft.note("review", Some(Source::Operator), serde_json::json!(null));
    }));
    changes
}

pub async fn a_new_payment_loads_as_it_was_applied<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(50));
    let payment = done(&store, build.created(&tenant("m1"), "O1")).await;
    assert_eq!(payment.version, 1);
    assert_eq!(load(&fixture.second(), &payment).await, payment);
    assert_eq!(store.load_order(&payment.tenant, &payment.order_id).await, Ok(Some(payment.clone())));
    let mut bare = build.payment(&tenant("m1"), "O2");
    (bare.description, bare.return_url, bare.notify_url) = (None, None, None);
    bare.metadata.clear();
    let mut draft = payonce_core::payment::draft::Draft::new(bare, build.now());
    draft.note("created", None, serde_json::Value::Null);
    let bare = done(&store, draft.finish(None).expect("a change")).await;
    assert_eq!(load(&store, &bare).await, bare, "a payment may have no attempt and no optional member");
    assert_eq!(store.load(&tenant("m1"), &build.payment_id()).await, Ok(None));
    assert_eq!(store.load_order(&tenant("m1"), &merchant_ref("O3")).await, Ok(None));
}

pub async fn a_full_aggregate_loads_as_it_was_applied<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(51));
    let mut payment = None;
    for change in full_history(&build, &tenant("m1"), "订单-1 é") {
        payment = Some(done(&store, change).await);
    }
    let payment = payment.expect("there was a change");
    let loaded = load(&fixture.second(), &payment).await;
    assert_eq!(loaded.attempts, payment.attempts);
    assert_eq!(loaded.captures, payment.captures);
    assert_eq!(loaded.refunds, payment.refunds);
    assert_eq!(loaded.surpluses, payment.surpluses);
    assert_eq!(loaded, payment);
    assert!(payment.attempts.len() == 2 && payment.captures.len() == 2 && payment.refunds.len() == 3 && payment.surpluses.len() == 1);
    assert_eq!(store.load_order(&payment.tenant, &payment.order_id).await, Ok(Some(payment)));
}

pub async fn each_change_loads_as_it_was_applied<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(52));
    for (n, change) in full_history(&build, &tenant("m1"), "O1").into_iter().enumerate() {
        let events = change.events.clone();
        let payment = done(&store, change).await;
        assert_eq!(payment.version, n as u64 + 1);
        assert_eq!(load(&store, &payment).await, payment, "after change {n}");
        let told = store.events_of(&payment.tenant, &payment.id).await.expect("events");
        let of_version: Vec<_> = told.into_iter().map(|(event, _)| event).filter(|event| event.version == payment.version).collect();
        assert_eq!(of_version, events);
    }
}

pub async fn b058_nothing_is_seen_by_another_tenant<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(53));
    let [mine, theirs] = ["m1", "m2"].map(tenant);
    let payment = done(&store, build.created(&mine, "O1")).await;
    let payment = done(&store, build.paid(&payment, "t")).await;
    assert_eq!(store.load(&theirs, &payment.id).await, Ok(None));
    assert_eq!(store.load_order(&theirs, &payment.order_id).await, Ok(None));
    assert_eq!(store.list(&theirs, &Filter { limit: 10, ..Filter::default() }).await, Ok(Vec::new()));
    assert_eq!(store.timeline(&theirs, &payment.id).await, Ok(Vec::new()));
    assert_eq!(store.events_of(&theirs, &payment.id).await, Ok(Vec::new()));
    // A change in the other tenant's name meets nothing.
    let mut crossed = build.change(&payment, |draft| draft.note("x", None, serde_json::json!({})));
    crossed.payment.tenant = theirs.clone();
    assert_eq!(store.apply(&crossed).await, Ok(Applied::Conflict));
    store.let_go(&theirs, &payment.id).await.expect("let go");
    assert_eq!(load(&store, &payment).await, payment);
}

pub async fn a_stale_change_conflicts_and_writes_nothing<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(54));
    let first = done(&store, build.created(&tenant("m1"), "O1")).await;
    let winner = build.observed(&first, Outcome::Waiting { action: None, txn: Some("t1".to_owned()) });
    let loser = build.paid(&first, "t2");
    let ahead = {
        let mut change = loser.clone();
        change.seen = Some(2);
        change
    };
    assert_eq!(store.apply(&ahead).await, Ok(Applied::Conflict), "a version that is still to come");
    let second = done(&store, winner).await;
    assert_eq!(store.apply(&loser).await, Ok(Applied::Conflict));
    assert_eq!(fixture.second().apply(&loser).await, Ok(Applied::Conflict));
    assert_eq!(load(&store, &second).await, second);
    assert_eq!(store.events_of(&second.tenant, &second.id).await, Ok(Vec::new()));
    assert_eq!(store.timeline(&second.tenant, &second.id).await.expect("timeline").len() as u64, second.audit_len);
}

pub async fn an_order_is_taken_once_and_numbers_are_byte_exact<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(55));
    let first = done(&store, build.created(&tenant("m1"), "A1")).await;
    let mut again = build.created(&tenant("m1"), "A1");
    again.payment.attempts[0].account = account("other");
    again.attempts = again.payment.attempts.clone();
    assert_eq!(store.apply(&again).await, Ok(Applied::OrderTaken(first.id.clone())));
    assert_eq!(store.load(&again.payment.tenant, &again.payment.id).await, Ok(None));
    assert_eq!(store.timeline(&again.payment.tenant, &again.payment.id).await, Ok(Vec::new()));
    assert_eq!(store.find_attempt(&tenant("m1"), &account("other"), again.attempts[0].channel_ref.as_str()).await, Ok(None));
    // B027: letter case, padding and Unicode forms make other numbers.
    for order in ["a1", "A1 ", " A1", "Ａ1", "\u{e9}", "e\u{301}", "O'1; --", "%"] {
        let payment = done(&store, build.created(&tenant("m1"), order)).await;
        assert_eq!(store.load_order(&tenant("m1"), &merchant_ref(order)).await, Ok(Some(payment)), "{order:?}");
    }
    assert_eq!(store.load_order(&tenant("m1"), &merchant_ref("A1")).await.map(|row| row.map(|row| row.id)), Ok(Some(first.id)));
}

pub async fn an_id_is_used_once<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(56));
    let first = done(&store, build.created(&tenant("m1"), "O1")).await;
    let mut other = build.payment(&tenant("m1"), "O2");
    other.id = first.id.clone();
    let mut draft = payonce_core::payment::draft::Draft::new(other, build.now());
    draft.note("created", None, serde_json::json!({}));
    assert_eq!(store.apply(&draft.finish(None).expect("a change")).await, Ok(Applied::Conflict));
    assert_eq!(load(&store, &first).await, first);
    assert_eq!(store.load_order(&tenant("m1"), &merchant_ref("O2")).await, Ok(None));
}

pub async fn a_change_of_what_is_not_there_conflicts<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(57));
    let never_stored = build.created(&tenant("m1"), "O1").payment;
    assert_eq!(store.apply(&build.paid(&never_stored, "t")).await, Ok(Applied::Conflict));
    assert_eq!(store.load(&tenant("m1"), &never_stored.id).await, Ok(None));
    assert_eq!(store.events_of(&tenant("m1"), &never_stored.id).await, Ok(Vec::new()));
    assert_eq!(store.timeline(&tenant("m1"), &never_stored.id).await, Ok(Vec::new()));
    assert_eq!(store.let_go(&tenant("m1"), &never_stored.id).await, Ok(()));
}

pub async fn b001_one_of_64_inserts_the_order<F: Fixture>(fixture: &F) {
    let build = Build::new(58);
    let changes: Arc<Vec<Change>> = Arc::new((0..64).map(|_| build.created(&tenant("m1"), "O1")).collect());
    let tried = changes.clone();
    let applied = at_once(fixture, 64, move |n, store| {
        let tried = tried.clone();
        async move { store.apply(&tried[n]).await.expect("apply") }
    })
    .await;
    let winners: Vec<usize> = (0..64).filter(|n| applied[*n] == Applied::Done).collect();
    assert_eq!(winners.len(), 1, "{winners:?}");
    let winner = &changes[winners[0]].payment;
    assert!(applied.iter().all(|applied| *applied == Applied::Done || *applied == Applied::OrderTaken(winner.id.clone())), "{applied:?}");
    assert_eq!(load(&fixture.store(), winner).await, *winner);
}

pub async fn one_of_64_changes_a_version<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(59));
    let first = done(&store, build.created(&tenant("m1"), "O1")).await;
    let changes: Arc<Vec<Change>> = Arc::new((0..64).map(|n| build.paid(&first, &format!("t{n}"))).collect());
    let tried = changes.clone();
    let applied = at_once(fixture, 64, move |n, store| {
        let tried = tried.clone();
        async move { store.apply(&tried[n]).await.expect("apply") }
    })
    .await;
    let winners: Vec<usize> = (0..64).filter(|n| applied[*n] == Applied::Done).collect();
    assert_eq!(winners.len(), 1, "{winners:?}");
    assert!(applied.iter().all(|applied| matches!(applied, Applied::Done | Applied::Conflict)), "{applied:?}");
    let winner = &changes[winners[0]];
    assert_eq!(load(&store, &first).await, winner.payment);
    let told = store.events_of(&first.tenant, &first.id).await.expect("events");
    assert_eq!(told.into_iter().map(|(event, _)| event).collect::<Vec<_>>(), winner.events);
}

pub async fn b025_references_and_numbers_are_free_in_other_places<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(60));
    let first = done(&store, build.created(&tenant("m1"), "O1")).await;
    let reference = &first.attempts[0].channel_ref;
    // The same order, reference, transaction and refund number, of another tenant; and the reference at another account.
    for (owner, order, account_name) in [("m2", "O1", "ali"), ("m1", "O2", "ali-2")] {
        let mut change = build.created_on(&tenant(owner), order, "alipay", account_name);
        change.payment.attempts[0].channel_ref = reference.clone();
        change.attempts = change.payment.attempts.clone();
        let payment = done(&store, change).await;
        assert_eq!(load(&store, &payment).await, payment);
        let found = store.find_attempt(&payment.tenant, &account(account_name), reference.as_str()).await;
        assert_eq!(found, Ok(Some(payment.id.clone())));
    }
    assert_eq!(store.find_attempt(&tenant("m1"), &account("ali"), reference.as_str()).await, Ok(Some(first.id)));
    for (owner, order) in [("m3", "O1"), ("m3", "O2"), ("m4", "O1")] {
        let payment = done(&store, build.created(&tenant(owner), order)).await;
        let payment = done(&store, build.paid(&payment, "same-txn")).await;
        let change = build.change(&payment, |draft| {
            let refund = build.refund(&draft.after, Some("r1"), 1);
            reserve(draft, refund);
        });
        let payment = done(&store, change).await;
        assert_eq!(load(&store, &payment).await, payment, "a refund number is the payment's own");
    }
}

pub async fn attempts_and_refunds_are_found_by_their_tenant_only<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(61));
    let mut payment = None;
    for change in full_history(&build, &tenant("m1"), "O1") {
        payment = Some(done(&store, change).await);
    }
    let payment = payment.expect("there was a change");
    done(&store, build.created(&tenant("m2"), "O1")).await;
    for attempt in &payment.attempts {
        let text = attempt.channel_ref.as_str();
        assert_eq!(store.find_attempt(&tenant("m1"), &attempt.account, text).await, Ok(Some(payment.id.clone())));
        assert_eq!(store.find_attempt(&tenant("m2"), &attempt.account, text).await, Ok(None));
        assert_eq!(store.find_attempt(&tenant("m1"), &account("none"), text).await, Ok(None));
        assert_eq!(store.find_attempt(&tenant("m1"), &attempt.account, &text.to_ascii_uppercase()).await, Ok(None));
    }
    for refund in &payment.refunds {
        assert_eq!(store.find_refund(&tenant("m1"), &refund.id).await, Ok(Some(payment.id.clone())));
        assert_eq!(store.find_refund(&tenant("m2"), &refund.id).await, Ok(None));
    }
}

/// Each entry follows the one before and hashes to what it says (the chain of the whole payment).
pub(super) fn assert_chain(payment: &Payment, timeline: &[AuditEntry]) {
    let mut prev = [0; 32];
    for (entry, n) in timeline.iter().zip(1..) {
        assert_eq!((entry.n, entry.prev), (n, prev));
        assert_eq!(entry.hash, entry.expected_hash(&payment.id), "entry {n} was altered: {entry:?}");
        prev = entry.hash;
    }
    assert_eq!((timeline.len() as u64, prev), (payment.audit_len, payment.audit_head));
}

pub async fn the_timeline_is_an_unbroken_chain<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(62));
    let mut written = Vec::new();
    let mut payment = None;
    for change in full_history(&build, &tenant("m1"), "O1") {
        written.extend(change.audit.clone());
        payment = Some(done(&store, change).await);
    }
    let payment = payment.expect("there was a change");
    let timeline = fixture.second().timeline(&payment.tenant, &payment.id).await.expect("timeline");
    assert_eq!(timeline, written);
    assert_chain(&payment, &timeline);
    assert_eq!(store.timeline(&payment.tenant, &build.payment_id()).await, Ok(Vec::new()));
}

async fn ids(store: &Arc<dyn Store>, filter: Filter) -> Vec<PaymentId> {
    let rows = store.list(&tenant("m1"), &filter).await.expect("list");
    rows.into_iter().map(|row| row.id).collect()
}

pub async fn a_list_filters_by_all_that_is_given<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(63));
    let m1 = tenant("m1");
    let pending = done(&store, build.created_on(&m1, "O1", "alipay", "ali")).await;
    let declined = done(&store, build.created_on(&m1, "O2", "wechat", "wx")).await;
    let declined = done(&store, build.observed(&declined, Outcome::Declined(build.failure()))).await;
    let switched = done(&store, build.created_on(&m1, "O3", "wechat", "wx")).await;
    let switched = done(&store, build.observed(&switched, Outcome::Closed)).await;
    let change = build.change(&switched, |draft| {
        let next = build.attempt(&draft.after, "alipay", "ali");
        draft.after.attempts.push(next);
    });
    let switched = done(&store, change).await;
    let switched = done(&store, build.observed(&switched, authorized("a", switched.amount))).await;
    assert_eq!(switched.attempts[1].status, AttemptStatus::Authorized);
    done(&store, build.created_on(&tenant("m2"), "O1", "alipay", "ali")).await;
    let all = || Filter { limit: 100, ..Filter::default() };
    let rows = store.list(&m1, &all()).await.expect("list");
    assert_eq!(rows, [switched.clone(), declined.clone(), pending.clone()], "whole aggregates, newest first");
    let by_status = |status| ids(&store, Filter { status: Some(status), ..all() });
    assert_eq!(by_status(PaymentStatus::Pending).await, [pending.id.clone()]);
    assert_eq!(by_status(PaymentStatus::Failed).await, [declined.id.clone()]);
    assert_eq!(by_status(PaymentStatus::Authorized).await, [switched.id.clone()]);
    assert_eq!(by_status(PaymentStatus::Paid).await, []);
    let by_channel = |name: &str| ids(&store, Filter { channel: Some(channel(name)), ..all() });
    assert_eq!(by_channel("wechat").await, [switched.id.clone(), declined.id.clone()]);
    assert_eq!(by_channel("alipay").await, [switched.id.clone(), pending.id.clone()]);
    assert_eq!(by_channel("stripe").await, []);
    let by_order = |order: MerchantRef| ids(&store, Filter { order_id: Some(order), ..all() });
    assert_eq!(by_order(merchant_ref("O2")).await, [declined.id.clone()]);
    assert_eq!(by_order(merchant_ref("o2")).await, []);
    let both = Filter { channel: Some(channel("wechat")), status: Some(PaymentStatus::Authorized), ..all() };
    assert_eq!(ids(&store, both.clone()).await, [switched.id.clone()]);
    assert_eq!(ids(&store, Filter { order_id: Some(merchant_ref("O1")), ..both }).await, []);
    assert_eq!(ids(&store, Filter { after: Some(switched.id), channel: Some(channel("wechat")), ..all() }).await, [declined.id]);
}

pub async fn a_list_pages_from_the_newest<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(64));
    let mut made = Vec::new();
    for n in 0..11 {
        made.push(done(&store, build.created(&tenant("m1"), &format!("O{n}"))).await.id);
        done(&store, build.created(&tenant("m2"), &format!("O{n}"))).await;
    }
    made.reverse();
    let mut read: Vec<PaymentId> = Vec::new();
    loop {
        let page = ids(&store, Filter { after: read.last().cloned(), limit: 4, ..Filter::default() }).await;
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 4);
        read.extend(page);
    }
    assert_eq!(read, made);
    assert_eq!(read.iter().collect::<BTreeSet<_>>().len(), 11);
    build.advance(Duration::from_secs(1));
    assert_eq!(ids(&store, Filter { after: Some(build.payment_id()), limit: 100, ..Filter::default() }).await, made);
}
