//! `POST /webhooks/{channel}/{account}`: untouched bytes in, the channel's own acknowledgement out, byte for byte.
//!
//! No bearer: the signature decides. No layer here compresses, wraps or rewrites an answer (B065).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Request;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use payonce_channels::contract::Acknowledgement;
use payonce_core::notification::RawRequest;
use payonce_core::{AccountName, ChannelName};
use payonce_flows::receive::Received;

use crate::api::Api;
use crate::observe;

/// Channels' messages are a few KiB.
const BODY_MAX_BYTES: usize = 256 * 1024;

pub(crate) async fn receive(
    State(api): State<Arc<Api>>,
    Path((channel, account)): Path<(String, String)>,
    request: Request<Body>,
) -> Response {
    let (Some(channel), Some(account)) = (ChannelName::parse(&channel), AccountName::parse(&account)) else { return no_account() };
    let (parts, body) = request.into_parts();
    let body = match api.read(&parts.headers, body, BODY_MAX_BYTES).await {
        Ok(body) => body,
        Err(refused) => return refused.into_response(),
    };
    let raw = RawRequest {
        method: parts.method.as_str().to_owned(),
        path_and_query: parts.uri.path_and_query().map_or_else(|| parts.uri.path().to_owned(), |both| both.as_str().to_owned()),
        headers: parts.headers.iter().map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec())).collect(),
        body: body.to_vec(),
    };
    match api.ledger.receive(&channel, &account, &raw).await {
        Ok(Received::Stored { answer, new }) => {
            observe::notification(channel.as_str(), if new > 0 { "stored" } else { "repeated" });
            as_told(&answer)
        }
        Ok(Received::Refused { answer, why }) => {
            // One line, and no more than the reason: a flood of forgeries must not become a flood of alerts (B066).
            tracing::info!(%channel, %account, reason = ?why.reason, detail = why.detail, "a notification was refused");
            observe::notification(channel.as_str(), "refused");
            as_told(&answer)
        }
        Ok(Received::Later { answer, why }) => {
            tracing::warn!(%channel, %account, %why, "a notification could not be stored; the channel is asked to send it again");
            observe::notification(channel.as_str(), "again");
            as_told(&answer)
        }
        Ok(Received::NoAccount) => no_account(),
        Err(why) => {
            tracing::warn!(%channel, %account, %why, "a notification could not be looked at; the channel is asked to send it again");
            observe::notification(channel.as_str(), "again");
            (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "5")], "try again").into_response()
        }
    }
}

fn no_account() -> Response {
    (StatusCode::NOT_FOUND, "no such account").into_response()
}

fn as_told(answer: &Acknowledgement) -> Response {
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(content_type) = answer.content_type {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    response
}
