//! A span, a line and a count per request, and the request id: taken from the caller if it is fit, else made; part of this exchange only.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{MatchedPath, State};
use axum::http::{Request, Response};
use axum::middleware::Next;
use http::HeaderValue;
use payonce_core::clock::{Entropy, random};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::api::fault::Code;

const HEADER: &str = "x-request-id";

/// Around every request.
pub(crate) async fn observed(State(entropy): State<Arc<dyn Entropy>>, request: Request<Body>, next: Next) -> Response<Body> {
    let began = Instant::now();
    let id = request_id(request.headers().get(HEADER), entropy.as_ref());
    let method = request.method().as_str().to_owned();
    let route = request.extensions().get::<MatchedPath>().map_or_else(|| "none".to_owned(), |path| path.as_str().to_owned());
    let span = tracing::info_span!("request", id = %id, method, route, tenant = tracing::field::Empty, payment = tracing::field::Empty);
    let mut response = next.run(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    let code = response.extensions().get::<Code>().map(|code| code.0.clone());
    let took = began.elapsed();
    metrics::counter!("payonce_http_requests_total", "method" => method, "route" => route.clone(), "status" => status.to_string())
        .increment(1);
    metrics::histogram!("payonce_http_request_seconds", "route" => route).record(took.as_secs_f64());
    if let Some(code) = &code {
        metrics::counter!("payonce_problems_total", "code" => code.clone()).increment(1);
    }
    span.in_scope(|| {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        if status >= 500 { tracing::warn!(status, ms, code, "answered") } else { tracing::info!(status, ms, code, "answered") }
    });
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}

/// 1–128 of `[A-Za-z0-9._-]`, else one of ours: what callers send goes into the log.
fn request_id(given: Option<&HeaderValue>, entropy: &dyn Entropy) -> String {
    let fit =
        |text: &&str| (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    given
        .and_then(|value| value.to_str().ok())
        .filter(fit)
        .map_or_else(|| format!("req_{}", hex::encode(random::<12>(entropy))), str::to_owned)
}
