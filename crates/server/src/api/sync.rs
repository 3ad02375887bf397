//! `POST /v1/payments/{id}/sync`: asks the channel now.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Request;
use payonce::Ending;
use payonce_core::attempt::AttemptStatus;
use payonce_core::payment::Payment;

use super::fault::payment_not_found;
use super::guarded::{broke_off, nothing_happened};
use super::{Answered, Api, payment_id, view};

pub(crate) async fn create(State(api): State<Arc<Api>>, Path(id): Path<String>, request: Request<Body>) -> Answered {
    let incoming = api.post(request, format!("/v1/payments/{id}/sync")).await?;
    let id = payment_id(&id)?;
    incoming.fields(&api)?.finish()?;
    let (ledger, tenant) = (Arc::clone(&api.ledger), incoming.tenant.clone());
    api.guarded(&incoming, move |_| async move {
        let ended = match ledger.sync(&tenant, &id).await {
            // Nobody knows yet: parked, so that the same key asks again.
            Ok(Some(payment)) if is_unknown(&payment) => view::payment_answer(&ledger, 202, &payment).map(Ending::Park),
            Ok(Some(payment)) => view::payment_answer(&ledger, 200, &payment).map(Ending::Keep),
            Ok(None) => Ok(nothing_happened(&payment_not_found())),
            Err(fault) => Err(fault),
        };
        ended.unwrap_or_else(|fault| broke_off(&fault))
    })
    .await
}

fn is_unknown(payment: &Payment) -> bool {
    payment.live().is_some_and(|attempt| match attempt.status {
        AttemptStatus::Prepared | AttemptStatus::Unknown => true,
        AttemptStatus::Pending | AttemptStatus::Authorized | AttemptStatus::Succeeded | AttemptStatus::Declined | AttemptStatus::Closed => {
            false
        }
    })
}
