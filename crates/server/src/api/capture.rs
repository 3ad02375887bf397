//! `POST /v1/payments/{id}/capture`: takes reserved money. No channel of this installation reserves yet, so every payment is refused here
//! with its reason, and nothing is claimed.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Request;
use payonce::http::Problem;
use payonce_core::failure::{MoneyMoved, Retry};

use super::fault::{payment_not_found, store};
use super::{Answered, Api, payment_id};

pub(crate) async fn create(State(api): State<Arc<Api>>, Path(id): Path<String>, request: Request<Body>) -> Answered {
    let incoming = api.post(request, format!("/v1/payments/{id}/capture")).await?;
    let id = payment_id(&id)?;
    let mut fields = incoming.fields(&api)?;
    fields.amount("amount")?;
    fields.merchant_ref("capture_id")?;
    fields.finish()?;
    let payment = api.ledger.store.load(&incoming.tenant, &id).await.map_err(|fault| store(&fault))?.ok_or_else(payment_not_found)?;
    let detail = format!("{id} was not made with capture: manual, so no money of it is reserved; it is {}.", payment.status.as_str());
    let problem = Problem::new(409, "capture_not_supported", "Nothing is reserved that could be captured", detail);
    Err(problem.money(MoneyMoved::No, Retry::Never).into())
}
