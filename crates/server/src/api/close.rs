//! `POST /v1/payments/{id}/close`: closed once the channel has confirmed it, or paid if paying won (B075).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Request;
use payonce::Ending;
use payonce_flows::close::Ended;

use super::fault::payment_not_found;
use super::guarded::{broke_off, nothing_happened};
use super::payments::attempt_unresolved;
use super::{Answered, Api, payment_id, view};

pub(crate) async fn create(State(api): State<Arc<Api>>, Path(id): Path<String>, request: Request<Body>) -> Answered {
    let incoming = api.post(request, format!("/v1/payments/{id}/close")).await?;
    let id = payment_id(&id)?;
    incoming.fields(&api)?.finish()?;
    let (ledger, tenant) = (Arc::clone(&api.ledger), incoming.tenant.clone());
    api.guarded(&incoming, move |_| async move {
        let ended = match ledger.close(&tenant, &id).await {
            Ok(Some(Ended::Dead(payment) | Ended::Money(payment))) => view::payment_answer(&ledger, 200, &payment).map(Ending::Keep),
            Ok(Some(Ended::Unresolved { payment, retry_at })) => attempt_unresolved(&ledger, &payment, retry_at),
            Ok(None) => Ok(nothing_happened(&payment_not_found())),
            Err(fault) => Err(fault),
        };
        ended.unwrap_or_else(|fault| broke_off(&fault))
    })
    .await
}
