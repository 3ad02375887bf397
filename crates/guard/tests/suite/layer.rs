//! The tower layer around an axum router, request by request.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, Response, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use futures_util::stream;
use payonce::http::{GuardLayer, MayHaveHappened, NothingHappened};
use payonce::{Policy, Refusal, Route, Running};
use payonce_core::ports::records::Records as _;
use payonce_core::record::RecordState;
use tower::{Layer as _, Service as _, ServiceExt as _};

use crate::support::*;

/// A shop whose every handler counts itself.
struct Shop {
    bench: Bench,
    app: Router,
}

fn shop() -> Shop {
    shop_with(Policy::default(), |layer| layer)
}

fn shop_with(policy: Policy, with: impl FnOnce(GuardLayer) -> GuardLayer) -> Shop {
    let bench = bench_with(policy);
    let layer = with(GuardLayer::new(bench.guard.clone()));
    let runs = bench.runs.clone();
    let app = Router::new()
        .route("/pay", post(pay))
        .route("/x/{id}", any(|| async { (StatusCode::OK, "x") }))
        .route("/read", get(|| async { "read" }))
        .route("/status/{code}", post(status))
        .route("/text", post(|| async { "success" }))
        .route("/json", post(|| async { ([(header::CONTENT_TYPE, "application/json")], ODD_JSON) }))
        .route("/refuses", post(refuses))
        .route("/panics", post(panics))
        .route("/unknown", post(|| async { (StatusCode::ACCEPTED, Extension(MayHaveHappened), "{}") }))
        .route("/echo", post(|body: Bytes| async move { body }))
        .route("/size/{bytes}", post(|path: axum::extract::Path<usize>| async move { sized(path.0) }))
        .route("/slow", post(slow))
        .route("/breaks", post(|| async { Body::from_stream(stream::iter([Ok("half"), Err(std::io::Error::other("cut"))])) }))
        .layer(axum::middleware::from_fn(move |request: axum::extract::Request, next: axum::middleware::Next| {
            runs.fetch_add(1, Ordering::SeqCst);
            next.run(request)
        }))
        .layer(layer);
    Shop { bench, app }
}

const ODD_JSON: &str = "{\"z\":\"10.00\", \"a\":\"😀\",\n\"note\":\"\\u0000\"}";

async fn pay(Extension(running): Extension<Running>) -> impl IntoResponse {
    assert!(!running.resumed);
    let headers = [
        ("location", "/payments/p1"),
        ("etag", "\"v1\""),
        ("set-cookie", "session=first"),
        ("date", "Tue, 01 Dec 2026 00:00:00 GMT"),
        ("x-request-id", "first"),
        ("x-ratelimit-remaining", "9"),
        ("www-authenticate", "Basic"),
        ("connection", "close"),
        ("content-type", "application/json"),
    ];
    (StatusCode::CREATED, headers, "{\"id\":\"p1\"}")
}

async fn status(code: axum::extract::Path<u16>) -> impl IntoResponse {
    let status = StatusCode::from_u16(code.0).unwrap();
    if status == StatusCode::NO_CONTENT {
        (status, "").into_response()
    } else {
        (status, format!("{{\"status\":{}}}", code.0)).into_response()
    }
}

async fn refuses(body: Bytes) -> impl IntoResponse {
    if body.starts_with(b"{\"amount\":-5") {
        return (StatusCode::BAD_REQUEST, Extension(NothingHappened), "bad amount").into_response();
    }
    StatusCode::CREATED.into_response()
}

fn sized(bytes: usize) -> impl IntoResponse {
    let chunks = bytes.div_ceil(1000);
    let chunk = move |n: usize| Ok::<_, Infallible>(vec![b'x'; if n + 1 == chunks { bytes - n * 1000 } else { 1000 }]);
    ([(header::LOCATION, "/batches/7")], Body::from_stream(stream::iter((0..chunks).map(chunk))))
}

async fn panics() -> StatusCode {
    panic!("on purpose")
}

async fn slow() -> impl IntoResponse {
    tokio::time::sleep(Duration::from_secs(2)).await;
    (StatusCode::CREATED, "{\"id\":\"p1\"}")
}

#[derive(Debug)]
struct Seen {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
    refusal: Option<Refusal>,
}

impl Seen {
    fn replayed(&self) -> bool {
        self.headers.get("idempotency-replayed").is_some_and(|value| value == "true")
    }

    fn code(&self) -> String {
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let body = String::from_utf8_lossy(&self.body).into_owned();
        body.split("\"code\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a code").to_owned()
    }
}

fn request(path: &str, key: &str, body: impl Into<Body>) -> Request<Body> {
    let request = Request::post(path).header("idempotency-key", key).header("content-type", "application/json");
    request.body(body.into()).unwrap()
}

impl Shop {
    async fn send(&self, request: Request<Body>) -> Seen {
        let response = self.app.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        Seen { status: parts.status.as_u16(), headers: parts.headers, body, refusal: parts.extensions.get().copied() }
    }

    async fn post(&self, path: &str, key: &str, body: &str) -> Seen {
        self.send(request(path, key, body.to_owned())).await
    }

    fn runs(&self) -> usize {
        self.bench.runs()
    }
}

#[tokio::test]
async fn b014_a_replay_keeps_location_and_etag_and_drops_what_belongs_to_one_exchange() {
    let shop = shop();
    let first = shop.post("/pay", "K1", O1).await;
    assert_eq!((first.status, first.replayed()), (201, false));
    assert_eq!(first.headers["set-cookie"], "session=first", "the first answer is the handler's own, whole");
    let again = shop.post("/pay", "K1", O1).await;
    assert_eq!((again.status, again.replayed(), &again.body), (201, true, &first.body));
    for kept in ["location", "etag", "content-type"] {
        assert_eq!(again.headers[kept], first.headers[kept]);
    }
    for dropped in ["set-cookie", "date", "x-request-id", "x-ratelimit-remaining", "www-authenticate", "connection"] {
        assert!(!again.headers.contains_key(dropped), "{dropped}");
    }
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn b015_every_status_replays_as_itself_and_204_stays_empty() {
    let shop = shop();
    for code in [200, 201, 202, 204, 303, 402, 404, 422] {
        let path = format!("/status/{code}");
        let (first, again) = (shop.post(&path, "K1", O1).await, shop.post(&path, "K1", O1).await);
        assert_eq!((first.status, again.status, again.replayed()), (code, code, true));
        assert_eq!(first.body, again.body);
        assert_eq!(first.headers.get("content-type"), again.headers.get("content-type"));
        assert_eq!(first.body.is_empty() && !first.headers.contains_key("content-type"), code == 204);
    }
    assert_eq!(shop.runs(), 8);
}

#[tokio::test]
async fn b016_plain_text_and_odd_json_replay_byte_for_byte() {
    let shop = shop();
    for (path, expected) in [("/json", ODD_JSON), ("/text", "success")] {
        let (first, again) = (shop.post(path, "K1", O1).await, shop.post(path, "K1", O1).await);
        assert_eq!((first.body.as_ref(), again.body.as_ref(), again.replayed()), (expected.as_bytes(), expected.as_bytes(), true));
        assert_eq!(first.headers["content-type"], again.headers["content-type"]);
    }
}

#[tokio::test]
async fn b009_headers_that_vary_by_nature_do_not_count() {
    let shop = shop();
    shop.post("/pay", "K1", O1).await;
    let mut noisy = request("/pay", "\"K1\"", O1);
    for (name, value) in
        [("x-request-id", "2"), ("traceparent", "00-1"), ("authorization", "Bearer new"), ("accept-encoding", "br"), ("user-agent", "z")]
    {
        noisy.headers_mut().insert(name, value.parse().unwrap());
    }
    let again = shop.send(noisy).await;
    assert_eq!((again.status, again.replayed()), (201, true));
    let other = shop.post("/pay", "K1", r#"{"order":"O1","amount":100,"request_time":"10:00"}"#).await;
    assert_eq!((other.status, other.code().as_str()), (422, "idempotency_key_reused"));
}

#[tokio::test]
async fn b010_another_body_is_refused_and_tells_nothing_of_the_first() {
    let shop = shop();
    shop.post("/pay", "K1", O1).await;
    let other = shop.post("/pay", "K1", O2).await;
    assert_eq!((other.status, other.refusal), (422, Some(Refusal::Mismatch)));
    assert!(!String::from_utf8_lossy(&other.body).contains("p1"));
    assert!(!other.headers.contains_key("location"));
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn b013_duplicate_members_are_refused_before_a_key_is_claimed() {
    let shop = shop();
    for body in [r#"{"order":"O1","amount":1,"amount":99900}"#, r#"{"order":"O1","amount":99900,"amount":1}"#] {
        let seen = shop.post("/pay", "K1", body).await;
        assert_eq!((seen.status, seen.code().as_str()), (400, "json_duplicate_member"));
    }
    assert_eq!((shop.runs(), shop.bench.records.len()), (0, 0));
    assert_eq!(shop.post("/pay", "K1", r#"{"order":"O1","amount":99900}"#).await.status, 201);
}

#[tokio::test]
async fn b017_a_marked_refusal_does_not_burn_the_key() {
    let shop = shop();
    assert_eq!(shop.post("/refuses", "K1", r#"{"amount":-5}"#).await.status, 400);
    let second = shop.post("/refuses", "K1", r#"{"amount":500}"#).await;
    assert_eq!((second.status, second.replayed()), (201, false));
}

#[tokio::test]
async fn b026_one_key_on_two_endpoints_is_two_keys() {
    let shop = shop_with(Policy::default(), |layer| layer.methods([Method::POST, Method::PUT]));
    let put = |path: &str| Request::put(path).header("idempotency-key", "K1").body(Body::empty()).unwrap();
    assert_eq!(shop.post("/pay", "K1", O1).await.status, 201);
    assert_eq!(shop.post("/text", "K1", O1).await.body, "success");
    assert!(!shop.send(put("/x/1")).await.replayed());
    assert!(!shop.send(put("/x/2")).await.replayed());
    assert!(shop.send(put("/x/1")).await.replayed());
    assert_eq!(shop.runs(), 4);
}

#[tokio::test]
async fn b028_missing_blank_and_repeated_keys() {
    let shop = shop();
    let without = || Request::post("/pay").body(Body::from(O1)).unwrap();
    let seen = shop.send(without()).await;
    assert_eq!((seen.status, seen.code().as_str()), (400, "idempotency_key_missing"));
    for key in ["", "   ", "\"\"", "a,b", "\"open"] {
        let seen = shop.post("/pay", key, O1).await;
        assert_eq!((seen.status, seen.code().as_str()), (400, "idempotency_key_invalid"), "{key:?}");
    }
    let mut two = request("/pay", "K1", O1);
    two.headers_mut().append("idempotency-key", "K2".parse().unwrap());
    assert_eq!(shop.send(two).await.status, 400);
    assert_eq!(shop.runs(), 0);
    let mut equal = request("/pay", "K1", O1);
    equal.headers_mut().append("idempotency-key", "\"K1\"".parse().unwrap());
    assert_eq!(shop.send(equal).await.status, 201);
}

#[tokio::test]
async fn b004_a_body_cut_midway_claims_nothing_and_a_panic_parks() {
    let shop = shop();
    let cut = Body::from_stream(stream::iter([Ok("{\"order\":"), Err(std::io::Error::other("cut"))]));
    let seen = shop.send(request("/pay", "K1", cut)).await;
    assert_eq!((seen.status, seen.code().as_str(), shop.bench.records.len()), (400, "body_incomplete", 0));
    assert_eq!(shop.post("/pay", "K1", O1).await.status, 201);
    for path in ["/panics", "/breaks"] {
        let first = shop.post(path, "K1", O1).await;
        assert_eq!((first.status, first.refusal), (500, Some(Refusal::Broken)), "{path}");
        let again = shop.post(path, "K1", O1).await;
        assert_eq!((again.status, again.code().as_str(), again.headers.get("retry-after")), (409, "idempotency_outcome_unknown", None));
    }
    for (path, status) in [("/status/500", 500), ("/unknown", 202)] {
        assert_eq!(shop.post(path, "K1", O1).await.status, status);
        assert_eq!(shop.post(path, "K1", O1).await.code(), "idempotency_outcome_unknown", "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn b038_a_client_that_hangs_up_finds_its_answer_later() {
    let shop = shop();
    for (n, hang_up) in [100, 500, 1500, 1950].into_iter().enumerate() {
        let key = format!("K{n}");
        let call = shop.app.clone().oneshot(request("/slow", &key, O1));
        assert!(tokio::time::timeout(Duration::from_millis(hang_up), call).await.is_err());
        let meanwhile = shop.post("/slow", &key, O1).await;
        assert_eq!((meanwhile.status, meanwhile.headers.contains_key("retry-after")), (409, true));
        tokio::time::sleep(Duration::from_secs(5)).await;
        let retry = shop.post("/slow", &key, O1).await;
        assert_eq!((retry.status, retry.replayed(), shop.runs()), (201, true, n + 1));
    }
}

#[tokio::test(start_paused = true)]
async fn b040_the_store_is_down() {
    let shop = shop();
    shop.bench.faulty.set_down(true);
    let seen = shop.post("/pay", "K1", O1).await;
    assert_eq!((seen.status, seen.code().as_str(), seen.headers.contains_key("retry-after")), (503, "store_unavailable", true));
    assert!(String::from_utf8_lossy(&seen.body).contains("\"money_moved\":\"no\""));
    shop.bench.faulty.set_down(false);
    assert_eq!((shop.post("/pay", "K1", O1).await.status, shop.runs()), (201, 1));
}

#[tokio::test]
async fn b089_a_long_answer_streams_through_and_leaves_a_marker() {
    let shop = shop_with(Policy { max_answer_bytes: 10_000, ..Policy::default() }, |layer| layer);
    for (size, kept) in [(9_000, true), (10_000, false), (11_000, false), (500_000, false)] {
        let path = format!("/size/{size}");
        let first = shop.post(&path, "K1", O1).await;
        assert_eq!((first.status, first.body.len()), (200, size));
        let again = shop.post(&path, "K1", O1).await;
        assert_eq!((again.status, again.replayed(), &again.headers["location"]), (200, true, &first.headers["location"]));
        assert_eq!(again.body == first.body, kept, "{size}");
        assert!(kept || String::from_utf8_lossy(&again.body).contains("idempotency_answer_not_kept"));
    }
    assert_eq!(shop.runs(), 4);
}

#[tokio::test]
async fn b090_request_bodies_have_a_limit() {
    let shop = shop_with(Policy::default(), |layer| layer.max_body_bytes(1000));
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    for (n, bytes) in [999, 1000].into_iter().enumerate() {
        let key = format!("K{n}");
        let first = shop.post("/echo", &key, &text(bytes)).await;
        assert_eq!((first.status, first.body.len()), (200, bytes));
        assert!(shop.post("/echo", &key, &text(bytes)).await.replayed());
    }
    let rows = shop.bench.records.len();
    assert_eq!(shop.post("/echo", "long", &text(1001)).await.status, 413);
    let mut pulled = 0;
    let endless = Body::from_stream(stream::poll_fn(move |_| {
        pulled += 1;
        assert!(pulled < 100, "an endless body must not be read on");
        std::task::Poll::Ready(Some(Ok::<_, Infallible>(vec![b' '; 100])))
    }));
    let seen = shop.send(request("/echo", "endless", endless)).await;
    assert_eq!((seen.status, seen.code().as_str()), (413, "body_too_large"));
    assert_eq!((shop.bench.records.len(), shop.runs()), (rows, 2));

    let roomy = shop_with(Policy::default(), |layer| layer.max_body_bytes(1 << 20));
    let nested = roomy.post("/echo", "nested", &"[".repeat(100_000)).await;
    assert_eq!((nested.status, nested.code().as_str(), roomy.runs()), (400, "json_too_deep", 0));
}

/// A body that says how long it is, and must not be asked for more.
struct Announced;

impl http_body::Body for Announced {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        panic!("read although it had announced that it is too long")
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(1 << 30)
    }
}

#[tokio::test]
async fn b090_an_announced_gigabyte_is_not_read() {
    let shop = shop();
    assert_eq!(shop.send(request("/echo", "K1", Body::new(Announced))).await.status, 413);
}

#[tokio::test]
async fn other_methods_pass_untouched() {
    let shop = shop();
    for _ in 0..2 {
        let seen = shop.send(Request::get("/read").body(Body::empty()).unwrap()).await;
        assert_eq!((seen.status, seen.body.as_ref()), (200, b"read".as_slice()));
    }
    assert_eq!((shop.runs(), shop.bench.records.len()), (2, 0));
}

#[tokio::test]
async fn tenants_come_from_the_caller_and_a_stranger_is_refused() {
    let shop = shop_with(Policy::default(), |layer| {
        layer.tenant(|parts| payonce_core::id::TenantId::parse(parts.headers.get("x-tenant")?.to_str().ok()?))
    });
    let by = |tenant: &str| {
        let mut request = request("/pay", "K1", O1);
        request.headers_mut().insert("x-tenant", tenant.parse().unwrap());
        request
    };
    assert!(!shop.send(by("m1")).await.replayed());
    assert!(!shop.send(by("m2")).await.replayed());
    assert!(shop.send(by("m1")).await.replayed());
    assert_eq!((shop.post("/pay", "K1", O1).await.status, shop.runs()), (401, 2));
}

#[tokio::test]
async fn a_scope_of_any_length_fits_and_still_tells_routes_apart() {
    let shop = shop_with(Policy::default(), |layer| layer.scope(|parts| format!("{}{}", "s".repeat(10_000), parts.uri.path())));
    shop.post("/pay", "K1", O1).await;
    assert_eq!(shop.post("/text", "K1", O1).await.body, "success");
    let rows = shop.bench.records.find(&tenant("default"), None, 10).await.unwrap();
    assert!(rows.len() == 2 && rows.iter().all(|row| row.key.scope.len() <= 512), "{rows:?}");
}

#[tokio::test]
async fn a_route_that_may_rerun_is_told_that_it_does() {
    let bench = bench();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let inner = tower::service_fn(move |request: Request<payonce::http::GuardedBody<Body>>| {
        let running = *request.extensions().get::<Running>().unwrap();
        let run = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            assert_eq!(running.resumed, run == 1);
            let status = if run == 0 { StatusCode::BAD_GATEWAY } else { StatusCode::CREATED };
            Ok::<_, Infallible>(Response::builder().status(status).body(Body::empty()).unwrap())
        }
    });
    let service = GuardLayer::new(bench.guard.clone()).route(|_| Route::RESUMABLE).layer(inner);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(service.clone().oneshot(request("/pay", "K1", O1)).await.unwrap().status().as_u16());
    }
    assert_eq!((statuses, runs.load(Ordering::SeqCst)), (vec![502, 201, 201], 2));
}

#[tokio::test]
async fn the_inner_services_own_error_passes_through_and_parks_the_key() {
    let bench = bench();
    let inner = tower::service_fn(|_: Request<payonce::http::GuardedBody<Body>>| async { Err::<Response<Body>, _>("upstream is gone") });
    let mut service = GuardLayer::new(bench.guard.clone()).layer(inner);
    let first = service.ready().await.unwrap().call(request("/pay", "K1", O1)).await;
    assert_eq!(first.err(), Some("upstream is gone"));
    let rows: Vec<_> = [payonce_core::record::RecordKey {
        tenant: tenant("default"),
        scope: "POST /pay".to_owned(),
        key: payonce_core::key::IdempotencyKey::parse("K1").unwrap(),
    }]
    .iter()
    .map(|key| bench.records.row(key).map(|row| row.state))
    .collect();
    assert_eq!(rows, [Some(RecordState::Parked)]);
    assert_eq!(service.ready().await.unwrap().call(request("/pay", "K1", O1)).await.unwrap().status(), 409);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_burst_of_64_runs_once_and_waiting_repeats_all_get_the_answer() {
    let shop = shop_with(Policy::default(), |layer| layer.route(|_| Route::PLAIN.waiting(Duration::from_secs(10))));
    let calls: Vec<_> = (0..64).map(|_| tokio::spawn(shop.app.clone().oneshot(request("/slow", "K1", O1)))).collect();
    for call in calls {
        let response = call.await.unwrap().unwrap();
        assert_eq!(response.status(), 201);
        assert_eq!(axum::body::to_bytes(response.into_body(), 100).await.unwrap(), "{\"id\":\"p1\"}");
    }
    assert_eq!(shop.runs(), 1);
}
