//! `POST /v1/payouts`, `GET /v1/payouts/{id}`: money to others. No channel of this installation has payouts.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Request};

use super::fault::refused;
use super::{Answered, Api};

pub(crate) async fn create(State(api): State<Arc<Api>>, request: Request<Body>) -> Answered {
    api.post(request, "/v1/payouts".to_owned()).await?;
    let detail = "None of this installation's channels pays out. Nothing was done.";
    Err(refused(400, "payouts_not_supported", "Payouts are not supported", detail).into())
}

pub(crate) async fn one(State(api): State<Arc<Api>>, headers: HeaderMap) -> Answered {
    api.authenticate(&headers).await?;
    Err(refused(404, "payout_not_found", "There is no such payout", "No payout of yours has this id.").into())
}
