//! The outbox and the feed: in order within a payment, each event until it is acknowledged, no position twice or missing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use payonce_core::clock::Timestamp;
use payonce_core::event::{Event, EventKind};
use payonce_core::id::{EventId, PaymentId};
use payonce_core::payment::Payment;
use payonce_core::ports::Store;
use payonce_core::ports::outbox::{Delivered, FeedItem};
use payonce_core::ports::payments::Applied;

use super::payments::{done, load};
use super::{Fixture, at_once};
use crate::build::{Build, START, tenant};

const HOLD: Duration = Duration::from_secs(30);

/// Well after every event of these samples was made.
fn at(seconds: i64) -> Timestamp {
    Timestamp(START.0 + (100_000 + seconds) * 1000)
}

/// Tells so many things of a payment in one change.
async fn tell(store: &Arc<dyn Store>, build: &Build, payment: &Payment, count: usize) -> (Payment, Vec<Event>) {
    let change = build.change(payment, |draft| {
        for n in 0..count {
            draft.tell(EventKind::Surplus, None, serde_json::json!({ "n": n, "text": "é 茶 \u{1}", "big": 9_007_199_254_740_993_i64 }));
        }
    });
    let events = change.events.clone();
    (done(store, change).await, events)
}

async fn stored(store: &Arc<dyn Store>, build: &Build, owner: &str, order: &str) -> Payment {
    done(store, build.created(&tenant(owner), order)).await
}

async fn take(store: &Arc<dyn Store>, now: Timestamp, limit: usize) -> Vec<EventId> {
    store.take_events(now, HOLD, limit).await.expect("take").into_iter().map(|delivery| delivery.event.id).collect()
}

async fn end(store: &Arc<dyn Store>, id: &EventId, how: Delivered) {
    store.delivered(&tenant("m1"), id, &how).await.expect("delivered");
}

pub async fn events_of_a_payment_go_out_one_after_the_other<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(110));
    let payment = stored(&store, &build, "m1", "O1").await;
    let (payment, mut events) = tell(&store, &build, &payment, 2).await;
    let (payment, more) = tell(&store, &build, &payment, 2).await;
    events.extend(more);
    for (n, event) in events.iter().enumerate() {
        let taken = store.take_events(at(0), HOLD, 10).await.expect("take");
        assert_eq!(taken.len(), 1, "only the first that is still to be delivered");
        assert_eq!((&taken[0].event, taken[0].tries, &taken[0].notify_url), (event, 0, &payment.notify_url));
        assert_eq!(take(&fixture.second(), at(0), 10).await, [], "event {n} is held and blocks those behind it");
        end(&store, &event.id, Delivered::Acknowledged).await;
    }
    assert_eq!(take(&store, at(999), 10).await, []);
    let told = store.events_of(&payment.tenant, &payment.id).await.expect("events");
    assert_eq!(told, events.into_iter().map(|event| (event, "acknowledged".to_owned())).collect::<Vec<_>>());
}

pub async fn other_payments_are_not_blocked<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(111));
    let mut firsts = BTreeSet::new();
    for (owner, order) in [("m1", "O1"), ("m1", "O2"), ("m2", "O1")] {
        let payment = stored(&store, &build, owner, order).await;
        firsts.insert(tell(&store, &build, &payment, 3).await.1[0].id.clone());
    }
    assert_eq!(take(&store, at(0), 10).await.into_iter().collect::<BTreeSet<_>>(), firsts);
}

pub async fn a_failed_delivery_comes_again_at_its_time_and_blocks_until_then<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(112));
    let payment = stored(&store, &build, "m1", "O1").await;
    let (_, events) = tell(&store, &build, &payment, 2).await;
    for tries in 0..3u32 {
        // Sooner than the hold would run out: the word on the delivery ends it.
        let now = at(i64::from(tries) * 20);
        let taken = store.take_events(now, HOLD, 10).await.expect("take");
        assert_eq!(taken.iter().map(|row| (&row.event.id, row.tries)).collect::<Vec<_>>(), [(&events[0].id, tries)]);
        end(&store, &events[0].id, Delivered::Again(at(i64::from(tries + 1) * 20))).await;
        assert_eq!(take(&fixture.second(), at(i64::from(tries) * 20 + 19), 10).await, [], "neither it nor the one behind it");
    }
    assert_eq!(store.events_of(&payment.tenant, &payment.id).await.expect("events")[0].1, "waiting");
}

pub async fn a_dead_or_feed_only_event_makes_way<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(113));
    let payment = stored(&store, &build, "m1", "O1").await;
    let (payment, events) = tell(&store, &build, &payment, 3).await;
    assert_eq!(take(&store, at(0), 10).await, [events[0].id.clone()]);
    end(&store, &events[0].id, Delivered::Dead("410 for three days".to_owned())).await;
    assert_eq!(take(&store, at(0), 10).await, [events[1].id.clone()]);
    end(&store, &events[1].id, Delivered::FeedOnly).await;
    assert_eq!(take(&store, at(0), 10).await, [events[2].id.clone()]);
    let told = store.events_of(&payment.tenant, &payment.id).await.expect("events");
    assert_eq!(told.iter().map(|(_, standing)| standing.as_str()).collect::<Vec<_>>(), ["dead", "feed_only", "waiting"]);
}

pub async fn an_acknowledged_event_stays_acknowledged<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(114));
    let payment = stored(&store, &build, "m1", "O1").await;
    let (payment, events) = tell(&store, &build, &payment, 1).await;
    take(&store, at(0), 10).await;
    end(&store, &events[0].id, Delivered::Acknowledged).await;
    // A slow node whose hold ran out comes late with another word.
    for late in [Delivered::Again(at(0)), Delivered::Dead("late".to_owned()), Delivered::FeedOnly, Delivered::Acknowledged] {
        end(&fixture.second(), &events[0].id, late).await;
        assert_eq!(store.events_of(&payment.tenant, &payment.id).await.expect("events")[0].1, "acknowledged");
    }
    assert_eq!(take(&store, at(9999), 10).await, []);
    // Another tenant's word on it counts for nothing, and so does a word on what is not there.
    let (payment, events) = tell(&store, &build, &payment, 1).await;
    store.delivered(&tenant("m2"), &events[0].id, &Delivered::Acknowledged).await.expect("delivered");
    assert_eq!(store.events_of(&payment.tenant, &payment.id).await.expect("events")[1].1, "waiting");
    end(&store, &build.event_id(), Delivered::Acknowledged).await;
}

pub async fn a_hold_runs_out_and_the_event_is_delivered_again<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(115));
    let payment = stored(&store, &build, "m1", "O1").await;
    let (_, events) = tell(&store, &build, &payment, 2).await;
    assert_eq!(take(&store, at(0), 10).await, [events[0].id.clone()]);
    assert_eq!(take(&fixture.second(), at(29), 10).await, []);
    assert_eq!(take(&fixture.second(), at(31), 10).await, [events[0].id.clone()], "its node died: the same event, not the next");
}

pub async fn two_handles_share_what_is_to_be_delivered<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(116));
    let mut expected = BTreeMap::new();
    for n in 0..12 {
        let payment = stored(&store, &build, "m1", &format!("O{n}")).await;
        let (payment, events) = tell(&store, &build, &payment, 2).await;
        let (payment, more) = tell(&store, &build, &payment, 1).await;
        expected.insert(payment.id, events.into_iter().chain(more).map(|event| event.id).collect::<Vec<_>>());
    }
    let order = Arc::new(AtomicUsize::new(0));
    let taken = at_once(fixture, 6, move |_, store| {
        let order = order.clone();
        async move {
            let mut taken: Vec<(usize, PaymentId, EventId)> = Vec::new();
            // A worker may find everything held by the others; it looks again until all 36 are through.
            while order.load(Ordering::SeqCst) < 36 {
                for delivery in store.take_events(at(0), HOLD, 4).await.expect("take") {
                    taken.push((order.fetch_add(1, Ordering::SeqCst), delivery.event.payment_id, delivery.event.id.clone()));
                    end(&store, &delivery.event.id, Delivered::Acknowledged).await;
                }
                tokio::task::yield_now().await;
            }
            taken
        }
    })
    .await;
    let mut all: Vec<(usize, PaymentId, EventId)> = taken.into_iter().flatten().collect();
    all.sort();
    let mut per_payment: BTreeMap<PaymentId, Vec<EventId>> = BTreeMap::new();
    for (_, payment, event) in all {
        per_payment.entry(payment).or_default().push(event);
    }
    assert_eq!(per_payment, expected, "each once, and in its payment's order");
}

/// The whole feed of a tenant, page by page.
async fn read_feed(store: &Arc<dyn Store>, owner: &str, page: usize) -> Vec<FeedItem> {
    let mut items: Vec<FeedItem> = Vec::new();
    loop {
        let after = items.last().map(|item| item.event.id.clone());
        let next = store.feed(&tenant(owner), after.as_ref(), page).await.expect("feed").expect("the event is the tenant's");
        if next.is_empty() {
            return items;
        }
        assert!(next.len() <= page);
        items.extend(next);
    }
}

async fn position_all(store: &Arc<dyn Store>) {
    while store.position_events(16).await.expect("position") > 0 {}
}

/// Positions 1, 2, 3 …, and each payment's events in the order of its versions.
fn assert_in_order(items: &[FeedItem]) {
    let positions: Vec<i64> = items.iter().map(|item| item.position).collect();
    assert_eq!(positions, (1..=items.len() as i64).collect::<Vec<_>>(), "no gap, none twice");
    let mut last: BTreeMap<&PaymentId, (u64, u32)> = BTreeMap::new();
    for item in items {
        let place = (item.event.version, item.event.n);
        let before = last.insert(&item.event.payment_id, place);
        assert!(before < Some(place), "{} came after {before:?}", item.event.id);
    }
}

pub async fn a_feed_has_positions_without_gaps<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(117));
    assert_eq!(store.position_events(10).await, Ok(0));
    assert_eq!(store.feed(&tenant("m1"), None, 10).await, Ok(Some(Vec::new())));
    let [mut a, mut b] = [stored(&store, &build, "m1", "A").await, stored(&store, &build, "m1", "B").await];
    let mut all = Vec::new();
    for _ in 0..3 {
        let (next, events) = tell(&store, &build, &a, 2).await;
        (a, all) = (next, [all, events].concat());
        let (next, events) = tell(&store, &build, &b, 1).await;
        (b, all) = (next, [all, events].concat());
    }
    assert_eq!(store.feed(&tenant("m1"), None, 10).await, Ok(Some(Vec::new())), "an event without a position is not in the feed yet");
    assert_eq!(store.position_events(4).await, Ok(4), "bounded");
    assert_in_order(&read_feed(&store, "m1", 100).await);
    assert_eq!(store.position_events(100).await, Ok(5));
    assert_eq!(store.position_events(100).await, Ok(0));
    let items = read_feed(&fixture.second(), "m1", 100).await;
    assert_eq!(items.len(), 9);
    assert_in_order(&items);
    let by_id: BTreeMap<&EventId, &Event> = all.iter().map(|event| (&event.id, event)).collect();
    assert!(items.iter().all(|item| by_id.get(&item.event.id) == Some(&&item.event) && item.delivery == "waiting"));
    // Later events come behind all of these.
    tell(&store, &build, &a, 1).await;
    position_all(&store).await;
    let later = read_feed(&store, "m1", 100).await;
    assert_eq!(later[..9], items[..]);
    assert_in_order(&later);
}

pub async fn a_feed_is_read_page_by_page<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(118));
    for n in 0..10 {
        let payment = stored(&store, &build, "m1", &format!("O{n}")).await;
        tell(&store, &build, &payment, 2).await;
    }
    position_all(&store).await;
    let whole = read_feed(&store, "m1", 100).await;
    assert_eq!(whole.len(), 20);
    for page in [1, 3, 7, 20] {
        assert_eq!(read_feed(&store, "m1", page).await, whole, "pages of {page}");
    }
    assert_eq!(store.feed(&tenant("m1"), Some(&build.event_id()), 10).await, Ok(None), "an event that nobody has");
    let first = &whole[0].event;
    end(&store, &first.id, Delivered::Acknowledged).await;
    assert_eq!(read_feed(&store, "m1", 100).await[0].delivery, "acknowledged");
}

pub async fn feeds_are_apart_by_tenant<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(119));
    for n in 0..6 {
        let payment = stored(&store, &build, ["m1", "m2"][n % 2], &format!("O{n}")).await;
        tell(&store, &build, &payment, 2).await;
    }
    position_all(&store).await;
    for owner in ["m1", "m2"] {
        let items = read_feed(&store, owner, 100).await;
        assert_eq!(items.len(), 6);
        assert_in_order(&items);
        assert!(items.iter().all(|item| item.event.tenant == tenant(owner)));
    }
    let theirs = read_feed(&store, "m2", 1).await[0].event.id.clone();
    assert_eq!(store.feed(&tenant("m1"), Some(&theirs), 10).await, Ok(None), "the event of another tenant is none of mine");
}

pub async fn b042_a_reader_of_the_feed_misses_nothing_while_64_write<F: Fixture>(fixture: &F) {
    const WRITERS: usize = 64;
    const ROUNDS: usize = 4;
    let (store, build) = (fixture.store(), Arc::new(Build::new(120)));
    let mut payments = Vec::new();
    for n in 0..8 {
        payments.push(stored(&store, &build, "m1", &format!("O{n}")).await);
    }
    let payments = Arc::new(payments);
    let running = Arc::new(AtomicUsize::new(WRITERS));
    // The last three tasks position and read, the others write.
    let read = at_once(fixture, WRITERS + 3, move |n, store| {
        let (build, payments, running) = (build.clone(), payments.clone(), running.clone());
        async move {
            let mut read: Vec<FeedItem> = Vec::new();
            if n < WRITERS {
                for _ in 0..ROUNDS {
                    add_event(&store, &build, &payments[n % payments.len()]).await;
                }
                running.fetch_sub(1, Ordering::SeqCst);
                return read;
            }
            loop {
                let last_round = running.load(Ordering::SeqCst) == 0;
                if n == WRITERS + 2 || last_round {
                    let after = read.last().map(|item| item.event.id.clone());
                    read.extend(store.feed(&tenant("m1"), after.as_ref(), 9).await.expect("feed").expect("it is the tenant's"));
                }
                let given = if n == WRITERS + 2 && !last_round { 0 } else { store.position_events(5).await.expect("position") };
                if last_round && given == 0 {
                    return read;
                }
                tokio::task::yield_now().await;
            }
        }
    })
    .await;
    position_all(&store).await;
    let whole = read_feed(&store, "m1", 1000).await;
    assert_eq!(whole.len(), WRITERS * ROUNDS);
    assert_in_order(&whole);
    let strip = |items: &[FeedItem]| items.iter().map(|item| (item.position, item.event.id.clone())).collect::<Vec<_>>();
    let reader = &read[WRITERS + 2];
    assert_eq!(strip(reader), strip(&whole[..reader.len()]), "what was read while it grew is the beginning of the whole");
}

/// Tells one thing of the payment, however often somebody else is faster.
async fn add_event(store: &Arc<dyn Store>, build: &Build, payment: &Payment) {
    loop {
        let seen = load(store, payment).await;
        let change = build.change(&seen, |draft| draft.tell(EventKind::Surplus, None, serde_json::json!({})));
        match store.apply(&change).await.expect("apply") {
            Applied::Done => return,
            Applied::Conflict => tokio::task::yield_now().await,
            Applied::OrderTaken(_) | Applied::Violates(_) => panic!("nothing is unique about an event"),
        }
    }
}
