//! The inbox: each event once, settled once, kept until it is.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use payonce_core::clock::Timestamp;
use payonce_core::id::{InboxId, TenantId};
use payonce_core::money::Money;
use payonce_core::notification::{Facts, Notification, RefundFact};
use payonce_core::ports::Store;
use payonce_core::ports::inbox::{InboxRow, InboxStatus, InboxVerdict};
use payonce_core::secret::Sealed;

use super::payments::done;
use super::violations::mark;
use super::{Fixture, at_once};
use crate::build::{Build, START, account, channel, cny, notification, sealed, tenant, verified};

const HOLD: Duration = Duration::from_secs(30);

fn at(seconds: i64) -> Timestamp {
    Timestamp(START.0 + seconds * 1000)
}

async fn receive_for(
    store: &Arc<dyn Store>,
    owner: &TenantId,
    account_name: &str,
    events: &[Notification],
    ids: &[InboxId],
    now: Timestamp,
) -> Vec<InboxId> {
    let new = store.receive(owner, &channel("alipay"), &account(account_name), &verified(events), &sealed("raw"), ids, now).await;
    new.expect("receive")
}

/// One event for tenant `m1`, account `ali`; its id if it is new.
async fn receive(store: &Arc<dyn Store>, build: &Build, identity: &str, now: Timestamp) -> Option<InboxId> {
    let id = build.inbox_id();
    let new = receive_for(store, &tenant("m1"), "ali", &[notification(identity, "ref")], &[id.clone()], now).await;
    assert!(new.is_empty() || new == [id], "{new:?}");
    new.into_iter().next()
}

async fn row(store: &Arc<dyn Store>, id: &InboxId) -> InboxRow {
    store.inbox_row(&tenant("m1"), id).await.expect("inbox row").expect("it is there")
}

async fn take(store: &Arc<dyn Store>, now: Timestamp, limit: usize) -> Vec<InboxId> {
    store.take_waiting(now, HOLD, limit).await.expect("take").into_iter().map(|row| row.id).collect()
}

fn verdict(status: InboxStatus, next_try_at: Option<Timestamp>) -> InboxVerdict {
    InboxVerdict { status, note: format!("because: 茶 {}", status.as_str()), next_try_at }
}

async fn judge(store: &Arc<dyn Store>, id: &InboxId, status: InboxStatus, next_try_at: Option<Timestamp>) {
    store.judge(&tenant("m1"), id, &verdict(status, next_try_at)).await.expect("judge");
}

pub async fn a_notification_is_received_once<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(90));
    let event = Notification {
        currency_text: Some("XTS".to_owned()),
        facts: Facts::Refund {
            refund_ref: Some("r1".to_owned()),
            channel_refund_id: None,
            amount: Some(cny(3_000)),
            total: Some(Money::new(5_000, payonce_core::Currency::CNY)),
            status: RefundFact::Failed { channel_code: "ABNORMAL".to_owned() },
        },
        ..notification("e/1 茶", "ref\u{1}")
    };
    let [id, other] = [build.inbox_id(), build.inbox_id()];
    let raw = Sealed::from_bytes((0..=255).collect());
    let m1 = tenant("m1");
    let (name, account_name) = (channel("alipay"), account("ali"));
    let message = verified(&[event.clone()]);
    assert_eq!(store.receive(&m1, &name, &account_name, &message, &raw, &[id.clone()], at(1)).await, Ok(vec![id.clone()]));
    let expected = InboxRow {
        id: id.clone(),
        tenant: m1.clone(),
        channel: name.clone(),
        account: account_name.clone(),
        notification: event,
        status: InboxStatus::Waiting,
        payment_id: None,
        note: None,
        received_at: at(1),
        tries: 0,
        raw,
    };
    assert_eq!(row(&fixture.second(), &id).await, expected);
    // The same event again, with another body around it, is known and leaves the row as it is.
    let again = fixture.second().receive(&m1, &name, &account_name, &message, &sealed("other"), &[other.clone()], at(2)).await;
    assert_eq!(again, Ok(Vec::new()));
    assert_eq!(row(&store, &id).await, expected);
    assert_eq!(store.inbox_row(&m1, &other).await, Ok(None));
    assert_eq!(store.inbox_row(&tenant("m2"), &id).await, Ok(None));
}

pub async fn b052_another_event_of_the_order_is_another_row<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(91));
    for identity in ["O1/WAIT_BUYER_PAY", "O1/TRADE_SUCCESS", "O1/trade_success", "O1/TRADE_SUCCESS "] {
        assert!(receive(&store, &build, identity, at(0)).await.is_some(), "{identity:?}");
        assert!(receive(&store, &build, identity, at(1)).await.is_none(), "{identity:?}");
    }
    assert_eq!(take(&store, at(2), 10).await.len(), 4);
}

pub async fn a_batch_of_events_is_received_whole<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(92));
    receive(&store, &build, "e2", at(0)).await.expect("new");
    let events = ["e1", "e2", "e3", "e1"].map(|identity| notification(identity, "ref"));
    let ids = [(); 4].map(|()| build.inbox_id());
    let new = receive_for(&store, &tenant("m1"), "ali", &events, &ids, at(1)).await;
    assert_eq!(new, [ids[0].clone(), ids[2].clone()], "of the known ones and of a second of the same identity there is none");
    assert_eq!(row(&store, &ids[2]).await.notification, events[2]);
    assert_eq!(receive_for(&store, &tenant("m1"), "ali", &[], &[], at(1)).await, []);
}

pub async fn b025_identities_are_apart_by_account<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(93));
    for (owner, account_name) in [("m1", "ali"), ("m1", "ali-2"), ("m2", "ali-3")] {
        let id = build.inbox_id();
        let new = receive_for(&store, &tenant(owner), account_name, &[notification("e1", "ref")], &[id.clone()], at(0)).await;
        assert_eq!(new, [id]);
    }
}

pub async fn b046_one_of_50_copies_is_new<F: Fixture>(fixture: &F) {
    let build = Arc::new(Build::new(94));
    let new = at_once(fixture, 50, move |_, store| {
        let build = build.clone();
        async move { receive(&store, &build, "e1", at(0)).await }
    })
    .await;
    let new: Vec<InboxId> = new.into_iter().flatten().collect();
    assert_eq!(new.len(), 1, "{new:?}");
    assert_eq!(take(&fixture.store(), at(1), 100).await, new);
}

pub async fn waiting_rows_are_taken_oldest_first_and_held<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(95));
    let mut ids = Vec::new();
    for (identity, second) in [("b", 20), ("a", 10), ("d", 40), ("c", 30)] {
        ids.push(receive(&store, &build, identity, at(second)).await.expect("new"));
    }
    let taken = store.take_waiting(at(50), HOLD, 2).await.expect("take");
    assert_eq!(taken.iter().map(|row| &row.id).collect::<Vec<_>>(), [&ids[1], &ids[0]]);
    assert_eq!(taken[0].notification, notification("a", "ref"));
    assert_eq!((taken[0].status, taken[0].raw.clone()), (InboxStatus::Waiting, sealed("raw")));
    assert_eq!(take(&fixture.second(), at(50), 10).await, [ids[3].clone(), ids[2].clone()], "the first two are held");
    assert_eq!(take(&store, at(79), 10).await, []);
}

pub async fn two_handles_share_what_waits<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(96));
    let mut ids = BTreeSet::new();
    for n in 0..60 {
        ids.insert(receive(&store, &build, &format!("e{n}"), at(n % 5)).await.expect("new"));
    }
    let taken = at_once(fixture, 8, |_, store| async move {
        let mut taken = Vec::new();
        loop {
            let some = take(&store, at(10), 7).await;
            if some.is_empty() {
                return taken;
            }
            taken.extend(some);
        }
    })
    .await;
    let all: Vec<InboxId> = taken.into_iter().flatten().collect();
    assert_eq!((all.len(), all.into_iter().collect::<BTreeSet<_>>()), (60, ids), "each is taken once");
}

pub async fn b005_a_row_whose_worker_died_is_taken_again<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(97));
    let id = receive(&store, &build, "e1", at(0)).await.expect("new");
    assert_eq!(take(&store, at(0), 10).await, [id.clone()]);
    assert_eq!(take(&fixture.second(), at(29), 10).await, []);
    assert!(receive(&store, &build, "e1", at(29)).await.is_none(), "a redelivery is acknowledged, and settled by the sweep");
    assert_eq!(take(&fixture.second(), at(31), 10).await, [id]);
}

pub async fn a_judged_row_waits_until_its_time<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(98));
    let id = receive(&store, &build, "e1", at(0)).await.expect("new");
    let first = store.take_waiting(at(0), HOLD, 10).await.expect("take");
    judge(&store, &id, InboxStatus::Waiting, Some(at(20))).await;
    assert_eq!(row(&store, &id).await.note, Some(verdict(InboxStatus::Waiting, None).note));
    assert_eq!(take(&store, at(19), 10).await, [], "its time has not come");
    let second = store.take_waiting(at(20), HOLD, 10).await.expect("take");
    assert_eq!(second.len(), 1, "the verdict ends the hold");
    assert_eq!(second[0].tries, first[0].tries + 1, "tries are counted");
    judge(&store, &id, InboxStatus::Foreign, None).await;
    assert_eq!(row(&store, &id).await.status, InboxStatus::Foreign);
    assert_eq!(take(&store, at(999_999), 10).await, [], "ended");
    // An operator's retry brings it back.
    judge(&store, &id, InboxStatus::Waiting, Some(at(200))).await;
    assert_eq!(take(&store, at(200), 10).await, [id.clone()]);
    // Another tenant judges nothing.
    store.judge(&tenant("m2"), &id, &verdict(InboxStatus::Foreign, None)).await.expect("judge");
    assert_eq!(row(&store, &id).await.status, InboxStatus::Waiting);
}

pub async fn a_settled_row_stays_settled<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(99));
    let judged = receive(&store, &build, "e1", at(0)).await.expect("new");
    judge(&store, &judged, InboxStatus::Settled, None).await;
    let marked = receive(&store, &build, "e2", at(0)).await.expect("new");
    let payment = done(&store, build.created(&tenant("m1"), "O1")).await;
    let settle = build.settled_change(&payment, Some(mark(&marked)), |draft| draft.note("settled", None, serde_json::json!({})));
    done(&store, settle.expect("a change")).await;
    for id in [&judged, &marked] {
        let settled = row(&store, id).await;
        assert_eq!(settled.status, InboxStatus::Settled);
        for status in [InboxStatus::Waiting, InboxStatus::Unmatched, InboxStatus::Foreign] {
            judge(&store, id, status, Some(at(0))).await;
            assert_eq!(row(&store, id).await, settled);
        }
    }
    assert_eq!(take(&store, at(999_999), 10).await, []);
}

pub async fn b043_an_unmatched_row_is_kept_and_tried_again<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(100));
    let id = receive(&store, &build, "e1", at(0)).await.expect("new");
    assert_eq!(take(&store, at(0), 10).await, [id.clone()]);
    judge(&store, &id, InboxStatus::Unmatched, Some(at(60))).await;
    assert_eq!(row(&store, &id).await.status, InboxStatus::Unmatched);
    assert_eq!(take(&store, at(59), 10).await, []);
    let taken = fixture.second().take_waiting(at(60), HOLD, 10).await.expect("take");
    assert_eq!(taken.iter().map(|row| (&row.id, row.status)).collect::<Vec<_>>(), [(&id, InboxStatus::Unmatched)]);
    // The payment has come to be: the row is settled with its effect.
    let payment = done(&store, build.created(&tenant("m1"), "O1")).await;
    let settle = build.settled_change(&payment, Some(mark(&id)), |draft| draft.note("settled", None, serde_json::json!({})));
    done(&store, settle.expect("a change")).await;
    assert_eq!(row(&store, &id).await.status, InboxStatus::Settled);
    assert_eq!(take(&store, at(999_999), 10).await, []);
}

pub async fn a_sweep_keeps_what_is_still_to_be_settled<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(101));
    let mut ids = Vec::new();
    for (n, status) in [InboxStatus::Waiting, InboxStatus::Unmatched, InboxStatus::Settled, InboxStatus::Foreign].into_iter().enumerate() {
        for copy in 0..2 {
            let id = receive(&store, &build, &format!("e{n}/{copy}"), at(0)).await.expect("new");
            judge(&store, &id, status, None).await;
            ids.push((id, status));
        }
    }
    let young = receive(&store, &build, "young", at(100)).await.expect("new");
    judge(&store, &young, InboxStatus::Settled, None).await;
    assert_eq!(store.sweep_inbox(at(0), 10).await, Ok(0), "what came in at the moment itself is kept");
    assert_eq!(store.sweep_inbox(at(100), 3).await, Ok(3));
    assert_eq!(store.sweep_inbox(at(100), 3).await, Ok(1));
    assert_eq!(store.sweep_inbox(at(100), 3).await, Ok(0));
    for (id, status) in ids {
        let kept = matches!(status, InboxStatus::Waiting | InboxStatus::Unmatched);
        assert_eq!(store.inbox_row(&tenant("m1"), &id).await.expect("inbox row").is_some(), kept, "{status:?}");
    }
    assert_eq!(row(&store, &young).await.status, InboxStatus::Settled);
}

pub async fn rows_are_listed_by_tenant_newest_first<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(102));
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(receive(&store, &build, &format!("e{n}"), at(n)).await.expect("new"));
    }
    let theirs = build.inbox_id();
    receive_for(&store, &tenant("m2"), "theirs", &[notification("e1", "ref")], &[theirs.clone()], at(9)).await;
    judge(&store, &ids[1], InboxStatus::Foreign, None).await;
    judge(&store, &ids[3], InboxStatus::Foreign, None).await;
    ids.reverse();
    let list = async |owner: &str, status, limit| {
        let rows = store.inbox_list(&tenant(owner), status, limit).await.expect("list");
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(list("m1", None, 10).await, ids);
    assert_eq!(list("m1", None, 2).await, ids[..2]);
    assert_eq!(list("m1", Some(InboxStatus::Foreign), 10).await, [ids[1].clone(), ids[3].clone()]);
    assert_eq!(list("m1", Some(InboxStatus::Settled), 10).await, []);
    assert_eq!(list("m2", None, 10).await, [theirs]);
}
