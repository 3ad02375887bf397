//! `/dashboard`: payments, their timelines and the inbox, to look at. Made on the server, in English and Chinese; it changes nothing.
//!
//! In: an API key, once; then a session cookie that holds it sealed. Out: pages of that key's tenant. Never: a script, anything from elsewhere, a
//! secret or a raw message.

mod session;
mod views;
mod words;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use http::header::{CACHE_CONTROL, LOCATION, SET_COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use payonce_core::id::{PaymentId, TenantId};
use payonce_core::payment::PaymentStatus;
use payonce_core::ports::StoreFault;
use payonce_core::ports::payments::Filter;
use url::form_urlencoded;

use crate::api::Api;
use crate::pages::html;
use words::Lang;

/// Rows on a page.
const ROWS: usize = 50;
/// An API key and a bit.
const LOGIN_MAX_BYTES: usize = 4096;

pub(crate) fn router() -> Router<Arc<Api>> {
    Router::new()
        .route("/dashboard", get(payments))
        .route("/dashboard/payments/{id}", get(payment))
        .route("/dashboard/inbox", get(inbox))
        .route("/dashboard/login", post(login))
        .route("/dashboard/logout", post(logout))
}

/// Who looks, in which language; or the page to sign in on.
async fn entered(api: &Api, headers: &HeaderMap, uri: &Uri) -> Result<(TenantId, Lang), Response> {
    let lang = Lang::of(uri, headers);
    match session::tenant(api, headers).await {
        Ok(Some(tenant)) => Ok((tenant, lang)),
        Ok(None) => Err(shown(StatusCode::UNAUTHORIZED, lang, &views::login(lang, false))),
        Err(fault) => Err(unavailable(lang, &fault)),
    }
}

async fn payments(State(api): State<Arc<Api>>, uri: Uri, headers: HeaderMap) -> Response {
    let (tenant, lang) = match entered(&api, &headers, &uri).await {
        Ok(entered) => entered,
        Err(page) => return page,
    };
    let status = parameter(&uri, "status").and_then(|text| PaymentStatus::parse(&text));
    let after = parameter(&uri, "after").and_then(|text| PaymentId::parse(&text));
    let filter = Filter { status, after, limit: ROWS, ..Filter::default() };
    match api.ledger.store.list(&tenant, &filter).await {
        Ok(found) => shown(StatusCode::OK, lang, &views::payments(lang, &tenant, status, &found, found.len() == ROWS)),
        Err(fault) => unavailable(lang, &fault),
    }
}

async fn payment(State(api): State<Arc<Api>>, Path(id): Path<String>, uri: Uri, headers: HeaderMap) -> Response {
    let (tenant, lang) = match entered(&api, &headers, &uri).await {
        Ok(entered) => entered,
        Err(page) => return page,
    };
    let Some(id) = PaymentId::parse(&id) else { return absent(lang, &tenant) };
    let store = &api.ledger.store;
    let loaded = async {
        let Some(payment) = store.load(&tenant, &id).await? else { return Ok(None) };
        let timeline = store.timeline(&tenant, &id).await?;
        let events = store.events_of(&tenant, &id).await?;
        Ok::<_, StoreFault>(Some((payment, timeline, events)))
    };
    match loaded.await {
        Ok(Some((payment, timeline, events))) => shown(StatusCode::OK, lang, &views::payment(lang, &tenant, &payment, &timeline, &events)),
        Ok(None) => absent(lang, &tenant),
        Err(fault) => unavailable(lang, &fault),
    }
}

async fn inbox(State(api): State<Arc<Api>>, uri: Uri, headers: HeaderMap) -> Response {
    let (tenant, lang) = match entered(&api, &headers, &uri).await {
        Ok(entered) => entered,
        Err(page) => return page,
    };
    match api.ledger.store.inbox_list(&tenant, None, ROWS).await {
        Ok(found) => shown(StatusCode::OK, lang, &views::inbox(lang, &tenant, &found)),
        Err(fault) => unavailable(lang, &fault),
    }
}

async fn login(State(api): State<Arc<Api>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let lang = Lang::of(&parts.uri, &parts.headers);
    let body = match api.read(&parts.headers, body, LOGIN_MAX_BYTES).await {
        Ok(body) => body,
        Err(refused) => return refused.into_response(),
    };
    let key =
        form_urlencoded::parse(&body).find(|(name, _)| name == "api_key").map(|(_, value)| value.trim().to_owned()).unwrap_or_default();
    match session::begin(&api, &key).await {
        Ok(Some(cookie)) => see_other(&format!("/dashboard?lang={}", lang.code()), &cookie),
        Ok(None) => shown(StatusCode::UNAUTHORIZED, lang, &views::login(lang, true)),
        Err(fault) => unavailable(lang, &fault),
    }
}

async fn logout(uri: Uri, headers: HeaderMap) -> Response {
    see_other(&format!("/dashboard?lang={}", Lang::of(&uri, &headers).code()), session::END)
}

fn see_other(to: &str, cookie: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    for (name, value) in [(LOCATION, to), (SET_COOKIE, cookie)] {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn shown(status: StatusCode, lang: Lang, body: &str) -> Response {
    let mut response = html::page(status, lang.code(), "payonce", body);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn absent(lang: Lang, tenant: &TenantId) -> Response {
    shown(StatusCode::NOT_FOUND, lang, &views::told(lang, tenant, lang.say("no_payment")))
}

fn unavailable(lang: Lang, fault: &StoreFault) -> Response {
    tracing::warn!(%fault, "the dashboard could not ask the store");
    shown(StatusCode::SERVICE_UNAVAILABLE, lang, &views::plain(lang.say("store_down")))
}

fn parameter(uri: &Uri, name: &str) -> Option<String> {
    let found = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).find(|(known, _)| known == name);
    found.map(|(_, value)| value.into_owned()).filter(|value| !value.is_empty())
}
