//! The API of the contract, one file per resource.
//!
//! In: HTTP requests. Out: JSON, or problems. The order of checks is authenticate, size, parse and validate, claim, run, answer; a refused body
//! never burns a key. Handlers hold no rule about money: they parse, call one flow, and map its reply.

mod attempts;
mod capture;
mod close;
pub(crate) mod door;
mod events;
pub(crate) mod fault;
mod fields;
mod guarded;
mod inbox;
mod payments;
mod payouts;
mod query;
mod refunds;
mod resolve;
mod sync;
mod timeline;
pub(crate) mod view;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use payonce::Guard;
use payonce_core::id::{PaymentId, TenantId};
use payonce_flows::Ledger;
use tokio::sync::watch;

use crate::config::Config;
use fault::Fault;

/// What every handler works with.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) config: Arc<Config>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) guard: Guard,
    /// True once a shutdown has begun.
    pub(crate) draining: watch::Receiver<bool>,
    /// Tenants whose callbacks can be signed.
    pub(crate) signers: BTreeSet<TenantId>,
}

impl Api {
    fn signs_for(&self, tenant: &TenantId) -> bool {
        self.signers.contains(tenant)
    }
}

/// Every route of the API, as the OpenAPI document names it. A test holds the two, and the router, against each other.
#[cfg(test)]
pub(crate) const ROUTES: &[(&str, &str)] = &[
    ("post", "/v1/payments"),
    ("get", "/v1/payments"),
    ("get", "/v1/payments/{id}"),
    ("post", "/v1/payments/{id}/attempts"),
    ("post", "/v1/payments/{id}/capture"),
    ("post", "/v1/payments/{id}/close"),
    ("post", "/v1/payments/{id}/sync"),
    ("post", "/v1/payments/{id}/refunds"),
    ("get", "/v1/payments/{id}/refunds"),
    ("post", "/v1/payments/{id}/resolve"),
    ("get", "/v1/payments/{id}/timeline"),
    ("get", "/v1/refunds/{id}"),
    ("post", "/v1/refunds/{id}/resolve"),
    ("post", "/v1/payouts"),
    ("get", "/v1/payouts/{id}"),
    ("get", "/v1/events"),
    ("get", "/v1/inbox"),
    ("post", "/v1/inbox/{id}/retry"),
];

/// The routes of the API.
pub(crate) fn router() -> Router<Arc<Api>> {
    Router::new()
        .route("/v1/payments", post(payments::create).get(payments::list))
        .route("/v1/payments/{id}", get(payments::one))
        .route("/v1/payments/{id}/attempts", post(attempts::create))
        .route("/v1/payments/{id}/capture", post(capture::create))
        .route("/v1/payments/{id}/close", post(close::create))
        .route("/v1/payments/{id}/sync", post(sync::create))
        .route("/v1/payments/{id}/refunds", post(refunds::create).get(refunds::list))
        .route("/v1/payments/{id}/resolve", post(resolve::payment))
        .route("/v1/payments/{id}/timeline", get(timeline::list))
        .route("/v1/refunds/{id}", get(refunds::one))
        .route("/v1/refunds/{id}/resolve", post(resolve::refund))
        .route("/v1/payouts", post(payouts::create))
        .route("/v1/payouts/{id}", get(payouts::one))
        .route("/v1/events", get(events::list))
        .route("/v1/inbox", get(inbox::list))
        .route("/v1/inbox/{id}/retry", post(inbox::retry))
}

/// What a handler of this API returns.
pub(crate) type Answered = Result<Response, Fault>;

/// A JSON answer that nothing guards.
fn read_answer(body: &serde_json::Value) -> Response {
    axum::Json(body).into_response()
}

/// The payment's id in a path; what is no id names no payment.
fn payment_id(text: &str) -> Result<PaymentId, Fault> {
    PaymentId::parse(text).ok_or_else(|| fault::payment_not_found().into())
}
