//! The sealed store: a whole store like any other, with nothing of a merchant's texts below it.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use payonce_core::clock::Fixed;
use payonce_core::event::EventKind;
use payonce_core::payment::Payment;
use payonce_core::payment::change::Change;
use payonce_core::payment::refunds::reserve;
use payonce_core::ports::outbox::Outbox as _;
use payonce_core::ports::payments::{Applied, Filter, Payments as _};
use payonce_core::ports::{Store, StoreFault};
use payonce_core::secret::Keyring;
use payonce_flows::sealed_store::SealedStore;
use payonce_testkit::build::{Build, START, tenant};
use payonce_testkit::memory::MemoryStore;
use payonce_testkit::suite::Fixture;
use serde_json::json;

const HOLD: Duration = Duration::from_secs(30);
const SECRETS: [&str; 4] = ["4111111111111111", "\"737\"", "sk_live_x", "Bearer"];

struct Fresh {
    below: MemoryStore,
    clock: Arc<Fixed>,
}

impl Fresh {
    fn new() -> Self {
        let clock = Arc::new(Fixed::new(START, 1));
        Self { below: MemoryStore::new(clock.clone()), clock }
    }

    /// The same data, with keys of these bytes.
    fn sealed_by(&self, keys: &[u8]) -> Arc<dyn Store> {
        let keys: Vec<[u8; 32]> = keys.iter().map(|key| [*key; 32]).collect();
        let ring = Arc::new(Keyring::new(&keys).expect("a key"));
        Arc::new(SealedStore::new(Arc::new(self.below.clone()), ring, self.clock.clone()))
    }
}

impl Fixture for Fresh {
    fn store(&self) -> Arc<dyn Store> {
        self.sealed_by(&[1])
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

payonce_testkit::store_suite!(Fresh::new());

/// A payment, paid and partly given back, with secrets wherever a merchant may write.
fn history(build: &Build, order: &str) -> Vec<Change> {
    let mut created = build.created(&tenant("m1"), order);
    let payment = &mut created.payment;
    payment.description = Some("card 4111111111111111".to_owned());
    payment.return_url = Some("https://shop.example/back?token=sk_live_x".to_owned());
    payment.notify_url = Some("https://shop.example/hook?card=4111111111111111".to_owned());
    payment.metadata = [("cvv", "737"), ("auth", "Bearer sk_live_x")].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let paid = build.paid(&created.payment, "txn-1");
    let refunded = build.change(&paid.payment, |draft| {
        let mut refund = build.refund(&draft.after, Some("r1"), 3_000);
        refund.reason = Some("Bearer sk_live_x".to_owned());
        let id = refund.id.clone();
        reserve(draft, refund);
        draft.tell(EventKind::RefundSucceeded, Some(&id), json!({ "note": "4111111111111111" }));
    });
    // A later change, in which the refund is not among the rows.
    let moved = build.change(&refunded.payment, |draft| draft.note("looked", None, json!({})));
    assert!(moved.refunds.is_empty() && moved.payment.refunds.len() == 1);
    vec![created, paid, refunded, moved]
}

async fn stored(store: &Arc<dyn Store>, changes: &[Change]) -> Payment {
    for change in changes {
        assert_eq!(store.apply(change).await, Ok(Applied::Done));
    }
    changes.last().expect("a change").payment.clone()
}

/// Everything that the store below holds of the payment, and the sealed bytes of it.
async fn dumped(below: &MemoryStore, payment: &Payment) -> (String, Vec<u8>) {
    let row = below.load(&payment.tenant, &payment.id).await.expect("loaded").expect("a payment");
    let events = below.events_of(&payment.tenant, &payment.id).await.expect("events");
    let (taken, feed) = (below.take_events(START.plus(HOLD * 9), HOLD, 9).await, below.feed(&payment.tenant, None, 9).await);
    let timeline = below.timeline(&payment.tenant, &payment.id).await.expect("a timeline");
    let mut texts: Vec<String> = row.metadata.values().cloned().chain(row.notify_url.clone()).collect();
    texts.extend(row.refunds.iter().filter_map(|refund| refund.reason.clone()));
    texts.extend(events.iter().map(|(event, _)| event.data["sealed"].as_str().expect("a sealed text").to_owned()));
    let opened = texts.iter().flat_map(|text| BASE64.decode(text.rsplit(':').next().expect("a part")).expect("Base64")).collect();
    (format!("{row:?} {events:?} {taken:?} {feed:?} {timeline:?} {}", json!([&row, &row.refunds])), opened)
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn b091_what_reaches_the_store_below_holds_nothing_that_a_merchant_wrote() {
    let (fresh, build) = (Fresh::new(), Build::new(1));
    let store = fresh.store();
    let changes = history(&build, "O1");
    let given = stored(&store, &changes).await;
    store.position_events(100).await.expect("numbered");
    let (dump, opened) = dumped(&fresh.below, &given).await;
    assert!(holds(dump.as_bytes(), "O1") && opened.len() > 500, "the search has something to search in");
    for secret in SECRETS {
        assert!(holds(format!("{given:?}").as_bytes(), secret), "{secret} was given");
        assert!(!holds(dump.as_bytes(), secret), "{secret} stands below: {dump}");
        assert!(!holds(&opened, secret), "{secret} is only encoded");
    }
    // What can be read of the row without the key is what it is searched by.
    let row = fresh.below.load(&given.tenant, &given.id).await.expect("loaded").expect("a payment");
    assert_eq!((row.metadata.len(), &row.description, &row.return_url), (1, &None, &None));
    assert_eq!((row.version, row.audit_len, row.audit_head, row.amount), (given.version, given.audit_len, given.audit_head, given.amount));
}

#[tokio::test]
async fn what_was_given_comes_back_through_every_door() {
    let (fresh, build) = (Fresh::new(), Build::new(2));
    let store = fresh.store();
    let changes = history(&build, "O1");
    let given = stored(&store, &changes).await;
    let told: Vec<_> = changes.iter().flat_map(|change| change.events.clone()).collect();
    assert!(told.len() >= 2);
    assert_eq!(store.load(&given.tenant, &given.id).await, Ok(Some(given.clone())));
    assert_eq!(store.load_order(&given.tenant, &given.order_id).await, Ok(Some(given.clone())));
    assert_eq!(store.list(&given.tenant, &Filter { limit: 10, ..Filter::default() }).await, Ok(vec![given.clone()]));
    let events = store.events_of(&given.tenant, &given.id).await.expect("events");
    assert_eq!(events.into_iter().map(|(event, _)| event).collect::<Vec<_>>(), told);
    store.position_events(100).await.expect("numbered");
    let feed = store.feed(&given.tenant, None, 10).await.expect("a feed").expect("a feed");
    assert_eq!(feed.into_iter().map(|item| item.event).collect::<Vec<_>>(), told);
    let taken = store.take_events(START.plus(HOLD * 9), HOLD, 10).await.expect("taken");
    assert_eq!((&taken[0].event, &taken[0].notify_url), (&told[0], &given.notify_url));
}

#[tokio::test]
async fn texts_that_look_sealed_are_texts() {
    let (fresh, build) = (Fresh::new(), Build::new(3));
    let store = fresh.store();
    let mut created = build.created(&tenant("m1"), "O1");
    let forged = "payonce.sealed.v1:AAAA";
    created.payment.metadata = [("sealed".to_owned(), forged.to_owned())].into();
    created.payment.notify_url = Some(forged.to_owned());
    created.payment.description = Some(String::new());
    let given = stored(&store, &[created]).await;
    assert_eq!(store.load(&given.tenant, &given.id).await, Ok(Some(given)));
}

#[tokio::test]
async fn rows_from_before_there_was_sealing_are_read_and_sealed_by_the_next_change() {
    let (fresh, build) = (Fresh::new(), Build::new(4));
    let (store, below): (_, Arc<dyn Store>) = (fresh.store(), Arc::new(fresh.below.clone()));
    let mut changes = history(&build, "O1");
    // A merchant may well have called a member so.
    for change in &mut changes {
        change.payment.metadata = [("sealed".to_owned(), "with wax".to_owned())].into();
    }
    let last = changes.pop().expect("a change");
    let old = stored(&below, &changes).await;
    assert_eq!(store.load(&old.tenant, &old.id).await, Ok(Some(old.clone())));
    let told: Vec<_> = changes.iter().flat_map(|change| change.events.clone()).collect();
    let events = store.events_of(&old.tenant, &old.id).await.expect("events");
    assert_eq!(events.into_iter().map(|(event, _)| event).collect::<Vec<_>>(), told);
    let taken = store.take_events(START.plus(HOLD * 9), HOLD, 10).await.expect("taken");
    assert_eq!((&taken[0].event, &taken[0].notify_url), (&told[0], &old.notify_url));
    let now = stored(&store, &[last]).await;
    let row = below.load(&now.tenant, &now.id).await.expect("loaded").expect("a payment");
    assert_ne!((&row.metadata, &row.notify_url), (&now.metadata, &now.notify_url));
    assert_eq!(store.load(&now.tenant, &now.id).await, Ok(Some(now)));
}

#[tokio::test]
async fn another_ring_is_refused_and_a_rolled_one_opens() {
    let (fresh, build) = (Fresh::new(), Build::new(5));
    let given = stored(&fresh.store(), &history(&build, "O1")).await;
    fresh.store().position_events(100).await.expect("numbered");
    let rolled = fresh.sealed_by(&[2, 1]);
    assert_eq!(rolled.load(&given.tenant, &given.id).await, Ok(Some(given.clone())));
    let other = fresh.sealed_by(&[2]);
    let refused = |fault: StoreFault| match fault {
        StoreFault::Refused(why) => assert!(why.contains("the key ring does not belong to this database"), "{why}"),
        StoreFault::Unavailable(_) | StoreFault::Ambiguous(_) | StoreFault::Retry(_) => panic!("{fault}"),
    };
    refused(other.load(&given.tenant, &given.id).await.expect_err("no key"));
    refused(other.load_order(&given.tenant, &given.order_id).await.expect_err("no key"));
    refused(other.list(&given.tenant, &Filter { limit: 10, ..Filter::default() }).await.expect_err("no key"));
    refused(other.events_of(&given.tenant, &given.id).await.expect_err("no key"));
    refused(other.feed(&given.tenant, None, 10).await.expect_err("no key"));
    refused(other.take_events(START.plus(HOLD * 9), HOLD, 10).await.expect_err("no key"));
}

#[tokio::test]
async fn a_text_moved_to_another_row_does_not_open_and_stops_no_other_event() {
    let (fresh, build) = (Fresh::new(), Build::new(6));
    let (store, below): (_, Arc<dyn Store>) = (fresh.store(), Arc::new(fresh.below.clone()));
    let mine = stored(&store, &history(&build, "O1")).await;
    let theirs = below.load(&mine.tenant, &mine.id).await.expect("loaded").expect("a payment");
    // Below the seal, the second payment gets the first one's texts.
    let mut moved = history(&build, "O2");
    moved.truncate(2);
    for change in &mut moved {
        change.payment.metadata.clone_from(&theirs.metadata);
        change.payment.notify_url.clone_from(&theirs.notify_url);
    }
    let robbed = stored(&below, &moved).await;
    let fault = store.load(&robbed.tenant, &robbed.id).await.expect_err("moved");
    assert!(matches!(&fault, StoreFault::Refused(why) if why.contains("moved from another row")), "{fault}");
    let at = START.plus(HOLD * 9);
    let taken = store.take_events(at, HOLD, 10).await.expect("taken");
    assert_eq!(taken.iter().map(|delivery| &delivery.event.payment_id).collect::<Vec<_>>(), [&mine.id]);
    assert_eq!(store.take_events(at, HOLD, 10).await, Ok(Vec::new()), "the other one stays held");
}
