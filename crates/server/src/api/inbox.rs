//! `GET /v1/inbox`, `POST /v1/inbox/{id}/retry`: notifications that were stored, and settling one again.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Request, Uri};
use payonce::Ending;
use payonce::http::Problem;
use payonce_core::id::InboxId;
use payonce_core::ports::inbox::{InboxRow, InboxStatus};
use payonce_flows::FlowFault;
use serde_json::{Value, json};

use super::fault::{refused, store};
use super::guarded::{broke_off, json as json_answer, nothing_happened};
use super::query::Query;
use super::{Answered, Api, read_answer};

pub(crate) async fn list(State(api): State<Arc<Api>>, uri: Uri, headers: HeaderMap) -> Answered {
    let tenant = api.authenticate(&headers).await?;
    let mut query = Query::of(uri.query())?;
    let status = query.parsed("status", "must be one of: waiting, settled, unmatched, foreign", InboxStatus::parse)?;
    let limit = query.limit()?;
    query.finish()?;
    let found = api.ledger.store.inbox_list(&tenant, status, limit).await.map_err(|fault| store(&fault))?;
    let shown: Vec<Value> = found.iter().map(row).collect();
    Ok(read_answer(&json!({ "object": "list", "data": shown, "has_more": found.len() == limit, "next": null })))
}

pub(crate) async fn retry(State(api): State<Arc<Api>>, Path(id): Path<String>, request: Request<Body>) -> Answered {
    let incoming = api.post(request, format!("/v1/inbox/{id}/retry")).await?;
    let id = InboxId::parse(&id).ok_or_else(not_found)?;
    incoming.fields(&api)?.finish()?;
    let (ledger, tenant) = (Arc::clone(&api.ledger), incoming.tenant.clone());
    api.guarded(&incoming, move |_| async move {
        let tried = async {
            let Some(seen) = ledger.store.inbox_row(&tenant, &id).await? else { return Ok(None) };
            ledger.retry_inbox(&seen).await?;
            ledger.store.inbox_row(&tenant, &id).await.map_err(FlowFault::from)
        };
        match tried.await {
            Ok(Some(after)) => Ending::Keep(json_answer(200, &row(&after))),
            Ok(None) => nothing_happened(&not_found()),
            Err(fault) => broke_off(&fault),
        }
    })
    .await
}

fn not_found() -> Problem {
    refused(404, "notification_not_found", "There is no such notification", "No notification of yours has this id.")
}

/// A row without its raw message, which stays sealed.
fn row(row: &InboxRow) -> Value {
    json!({
        "id": row.id,
        "object": "notification",
        "channel": row.channel,
        "account": row.account,
        "status": row.status.as_str(),
        "payment": row.payment_id,
        "note": row.note,
        "channel_ref": row.notification.channel_ref,
        "channel_status": row.notification.status,
        "facts": row.notification.facts,
        "amount": row.notification.amount.map(|amount| amount.minor),
        "currency": row.notification.amount.map(|amount| amount.currency),
        "received_at": row.received_at.to_string(),
        "tries": row.tries,
    })
}
