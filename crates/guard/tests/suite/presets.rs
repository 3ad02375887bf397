//! The dialects: where the key stands, which status says what, what is kept.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, Response};
use payonce::Answer;
use payonce::http::{GuardLayer, GuardedBody, Preset};
use tower::{Layer as _, ServiceExt as _};

use crate::support::*;

/// A service that answers with the statuses of a list, one after another, and then with the last.
struct Desk {
    layer: GuardLayer,
    statuses: Arc<Vec<u16>>,
    runs: Arc<AtomicUsize>,
    _bench: Bench,
}

fn desk(preset: Preset, statuses: &[u16]) -> Desk {
    let bench = bench();
    let layer = GuardLayer::new(bench.guard.clone()).preset(preset);
    Desk { layer, statuses: Arc::new(statuses.to_vec()), runs: Arc::default(), _bench: bench }
}

impl Desk {
    async fn send(&self, header: Option<(&str, &str)>, body: &str) -> (u16, HeaderMap, String) {
        let (statuses, runs) = (self.statuses.clone(), self.runs.clone());
        let inner = tower::service_fn(move |_: Request<GuardedBody<Body>>| {
            let run = runs.fetch_add(1, Ordering::SeqCst);
            let status = statuses.get(run).or(statuses.last()).copied().unwrap();
            async move { Ok::<_, Infallible>(Response::builder().status(status).body(Body::from(format!("run {run}"))).unwrap()) }
        });
        let mut request = Request::post("/v1/capture").header("content-type", "application/json");
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let response = self.layer.layer(inner).oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let body: Bytes = axum::body::to_bytes(Body::new(body), 10_000).await.unwrap();
        (parts.status.as_u16(), parts.headers, String::from_utf8_lossy(&body).into_owned())
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn stripe_answers_400_for_another_request_and_lets_requests_without_a_key_pass() {
    let desk = desk(Preset::stripe(), &[200]);
    let key = Some(("idempotency-key", "K1"));
    desk.send(key, O1).await;
    let (status, headers, body) = desk.send(key, O1).await;
    assert_eq!((status, &headers["idempotent-replayed"], body.as_str()), (200, &"true".parse().unwrap(), "run 0"));
    let (status, _, body) = desk.send(key, O2).await;
    assert!(status == 400 && body.contains(r#""type":"idempotency_error""#), "{status} {body}");
    for _ in 0..2 {
        assert_eq!(desk.send(None, O1).await.0, 200);
    }
    assert_eq!(desk.runs(), 3);
}

fn google(id: &str, time: &str, amount: u32) -> String {
    format!(
        r#"{{"requestHeader":{{"requestId":"{id}","requestTimestamp":{{"epochMillis":"{time}"}}}},"paymentIntegratorAccountId":"acct","amount":{amount}}}"#
    )
}

#[tokio::test]
async fn google_finds_its_key_in_the_body_ignores_the_time_and_answers_412() {
    let desk = desk(Preset::google(), &[200]);
    assert_eq!(desk.send(None, &google("r1", "1", 5)).await.2, "run 0");
    let (status, headers, body) = desk.send(None, &google("r1", "2", 5)).await;
    assert_eq!((status, body.as_str(), headers.contains_key("idempotency-replayed")), (200, "run 0", false));
    let (status, _, body) = desk.send(None, &google("r1", "1", 6)).await;
    assert!(status == 412 && body.contains("IDEMPOTENCY_VIOLATION"), "{status} {body}");
    assert_eq!(desk.send(None, &google("r1", "1", 5).replace("acct", "other")).await.2, "run 1", "the id counts within its account");
    assert_eq!(desk.send(None, r#"{"requestHeader":{}}"#).await.0, 400);
    assert_eq!(desk.send(None, &google(&"r".repeat(101), "1", 5)).await.0, 400);
    assert_eq!(desk.runs(), 2);
}

#[tokio::test]
async fn google_never_keeps_what_is_not_2xx() {
    let desk = desk(Preset::google(), &[400, 404, 200]);
    let statuses = [
        desk.send(None, &google("r1", "1", 5)).await.0,
        desk.send(None, &google("r1", "2", 5)).await.0,
        desk.send(None, &google("r1", "3", 5)).await.0,
        desk.send(None, &google("r1", "4", 5)).await.0,
    ];
    assert_eq!((statuses, desk.runs()), ([400, 404, 200, 200], 3));
}

#[tokio::test]
async fn open_banking_repeats_answer_201_with_the_present_state() {
    let mut desk = desk(Preset::open_banking(), &[201]);
    let key = Some(("x-idempotency-key", "K1"));
    assert_eq!(desk.send(Some(("idempotency-key", "K1")), O1).await.0, 400, "its own header, and required");
    assert_eq!(desk.send(Some(("x-idempotency-key", "k".repeat(41).as_str())), O1).await.0, 400, "at most 40 characters");
    desk.send(key, O1).await;
    assert_eq!(desk.send(key, O1).await.2, "run 0");
    desk.layer = desk.layer.clone().on_replay(|answer: Answer| async move { Answer { body: Bytes::from_static(b"settled"), ..answer } });
    let (status, headers, body) = desk.send(key, O1).await;
    assert_eq!((status, body.as_str(), headers.contains_key("idempotency-replayed")), (201, "settled", false));
    assert_eq!((desk.send(key, O2).await.0, desk.runs()), (400, 1));
}
