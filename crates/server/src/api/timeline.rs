//! `GET /v1/payments/{id}/timeline`: every request, answer, notification, look-up and transition, in order, hash-chained.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::fault::{payment_not_found, store};
use super::{Answered, Api, payment_id, read_answer};

pub(crate) async fn list(State(api): State<Arc<Api>>, Path(id): Path<String>, headers: HeaderMap) -> Answered {
    let tenant = api.authenticate(&headers).await?;
    let id = payment_id(&id)?;
    let payment = api.ledger.store.load(&tenant, &id).await.map_err(|fault| store(&fault))?.ok_or_else(payment_not_found)?;
    let entries = api.ledger.store.timeline(&tenant, &id).await.map_err(|fault| store(&fault))?;
    let shown: Vec<Value> = entries
        .iter()
        .map(|entry| {
            json!({
                "n": entry.n,
                "at": entry.at.to_string(),
                "kind": entry.kind,
                "source": entry.source,
                "detail": entry.detail,
                "hash": hex::encode(entry.hash),
            })
        })
        .collect();
    Ok(read_answer(&json!({ "object": "list", "payment": payment.id, "data": shown, "has_more": false, "next": null })))
}
