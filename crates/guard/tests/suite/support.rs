//! A guard on the memory store, under tokio's own clock: a paused test moves leases, expiry and timers together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use payonce::{Answer, Ending, Guard, Policy, Reply, Request, Route};
use payonce_core::clock::{Clock, Entropy, Timestamp};
use payonce_core::fingerprint::{RequestParts, Rules, canonical};
use payonce_core::id::TenantId;
use payonce_core::key::IdempotencyKey;
use payonce_core::record::{Record, RecordKey};
use payonce_core::secret::Keyring;
use payonce_testkit::memory_records::MemoryRecords;
use tokio::time::Instant;

use crate::faults::Faulty;

/// The store's clock.
#[derive(Debug)]
pub(crate) struct TestClock(Instant);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix(1_800_000_000).plus(self.0.elapsed())
    }
}

pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(TestClock(Instant::now()))
}

pub(crate) fn entropy() -> Arc<dyn Entropy> {
    Arc::new(payonce::system::SystemEntropy::default())
}

pub(crate) fn ring(keys: &[u8]) -> Arc<Keyring> {
    Arc::new(Keyring::new(&keys.iter().map(|key| [*key; 32]).collect::<Vec<_>>()).expect("a key"))
}

/// Two instances of a service on one store, each with its own way to it that can fail.
pub(crate) struct Bench {
    pub(crate) records: Arc<MemoryRecords>,
    pub(crate) faulty: Arc<Faulty>,
    pub(crate) guard: Guard,
    pub(crate) other: Guard,
    pub(crate) runs: Arc<AtomicUsize>,
}

pub(crate) fn bench() -> Bench {
    bench_with(Policy::default())
}

pub(crate) fn bench_with(policy: Policy) -> Bench {
    let records = Arc::new(MemoryRecords::new(clock()));
    let faulty = Faulty::new(records.clone());
    let guard = Guard::start(faulty.clone(), ring(&[1]), entropy(), policy).expect("a guard");
    let other = Guard::start(records.clone(), ring(&[1]), entropy(), policy).expect("a guard");
    Bench { records, faulty, guard, other, runs: Arc::default() }
}

impl Bench {
    /// Work that counts itself and ends so.
    pub(crate) fn ends(&self, ending: Ending) -> impl FnOnce(payonce::Running) -> std::future::Ready<Ending> + Send + 'static {
        let runs = self.runs.clone();
        move |_| {
            runs.fetch_add(1, Ordering::SeqCst);
            std::future::ready(ending)
        }
    }

    /// Work that counts itself, takes so long, and ends with 201.
    pub(crate) fn takes(
        &self,
        time: Duration,
    ) -> impl FnOnce(payonce::Running) -> std::pin::Pin<Box<dyn Future<Output = Ending> + Send>> + Send + 'static {
        let runs = self.runs.clone();
        move |_| {
            Box::pin(async move {
                runs.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(time).await;
                Ending::Keep(created("p1"))
            })
        }
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    pub(crate) fn row(&self, request: &Request) -> Option<Record> {
        self.records.row(&request.key)
    }
}

pub(crate) fn created(id: &str) -> Answer {
    let mut answer = Answer::new(201, "application/json", format!("{{\"id\":\"{id}\"}}"));
    answer.headers.push(("location".to_owned(), format!("/payments/{id}").into_bytes()));
    answer
}

pub(crate) fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).expect("a tenant")
}

pub(crate) fn record_key(key: &str) -> RecordKey {
    RecordKey { tenant: tenant("m1"), scope: "POST /v1/payments".to_owned(), key: IdempotencyKey::parse(key).expect("a key") }
}

/// `PAY k=<key> <body>` by the merchant m1.
pub(crate) fn pay(key: &str, body: &str) -> Request {
    pay_on(key, body, Route::PLAIN)
}

pub(crate) fn pay_on(key: &str, body: &str, route: Route) -> Request {
    let parts =
        RequestParts { method: "POST", path: "/v1/payments", query: None, content_type: Some("application/json"), body: body.as_bytes() };
    Request { key: record_key(key), canonical: canonical(&parts, &Rules::default()).expect("a body"), route }
}

pub(crate) const O1: &str = r#"{"order":"O1","amount":100}"#;
pub(crate) const O2: &str = r#"{"order":"O2","amount":9900}"#;

/// Work that must not run.
pub(crate) fn never(_: payonce::Running) -> std::future::Ready<Ending> {
    panic!("the work ran where it must not")
}

#[track_caller]
pub(crate) fn refused(reply: Reply) -> payonce::Refusal {
    match reply {
        Reply::Refused(refusal) => refusal,
        other @ (Reply::Fresh(_) | Reply::Replayed(_)) => panic!("expected a refusal, got {other:?}"),
    }
}

/// Lets every other task run until all wait.
pub(crate) async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}
