//! `GET /v1/events`: the merchant's feed, in a gap-free order, ids usable as dedupe keys.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use payonce_core::id::EventId;
use serde_json::{Value, json};

use super::fault::{invalid, store};
use super::query::Query;
use super::{Answered, Api, read_answer};

pub(crate) async fn list(State(api): State<Arc<Api>>, uri: Uri, headers: HeaderMap) -> Answered {
    let tenant = api.authenticate(&headers).await?;
    let mut query = Query::of(uri.query())?;
    let after = query.parsed("after", "must be an event's id", EventId::parse)?;
    let limit = query.limit()?;
    query.finish()?;
    let found = api.ledger.store.feed(&tenant, after.as_ref(), limit).await.map_err(|fault| store(&fault))?;
    let found = found.ok_or_else(|| invalid("after", "no event of yours has this id"))?;
    let shown: Vec<Value> = found
        .iter()
        .map(|item| {
            let event = &item.event;
            json!({
                "id": event.id,
                "object": "event",
                "type": event.kind,
                "created_at": event.created_at.to_string(),
                "position": item.position,
                "delivery": item.delivery,
                "data": event.data,
            })
        })
        .collect();
    // A reader goes on after the last id that it has seen, whether or not there is more now.
    let next = found.last().map(|item| item.event.id.to_string());
    Ok(read_answer(&json!({ "object": "list", "data": shown, "has_more": found.len() == limit, "next": next })))
}
