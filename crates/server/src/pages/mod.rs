//! What is not the API: health, metrics, the OpenAPI document and the documentation pages. Nothing here loads anything from elsewhere.

mod docs;
mod errors;
pub(crate) mod html;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use http::header::CONTENT_TYPE;
use http::{Method, StatusCode, Uri};

use crate::api::Api;
use crate::api::fault::{Fault, refused};
use crate::observe::meter;

/// The OpenAPI document, written by hand; a test holds it against the routes.
pub(crate) const OPENAPI: &str = include_str!("openapi.json");

/// The routes beside the API.
pub(crate) fn router() -> Router<Arc<Api>> {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(|| async { ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], meter::page()) }))
        .route("/openapi.json", get(|| async { ([(CONTENT_TYPE, "application/json")], OPENAPI) }))
        .route("/style.css", get(html::style))
        .route("/", get(|| async { Redirect::temporary("/docs") }))
        .route("/docs", get(docs::index))
        .route("/docs/", get(|| async { Redirect::temporary("/docs") }))
        .route("/docs/errors", get(errors::index))
        .route("/docs/errors/", get(errors::index))
        .route("/docs/errors/{code}", get(errors::page))
}

/// Whether this node takes requests: its store answers, and it is not shutting down.
async fn ready(State(api): State<Arc<Api>>) -> Response {
    if *api.draining.borrow() {
        return (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n").into_response();
    }
    match api.ledger.store.ping().await {
        Ok(()) => "ready\n".into_response(),
        Err(why) => {
            tracing::warn!(%why, "not ready");
            (StatusCode::SERVICE_UNAVAILABLE, "the store does not answer\n").into_response()
        }
    }
}

/// A path that nobody serves.
pub(crate) async fn no_route(uri: Uri) -> Fault {
    refused(404, "route_not_found", "There is no such path", format!("{} is not served here; /docs lists what is.", uri.path())).into()
}

/// A path that is served, but not to this method.
pub(crate) async fn no_method(method: Method, uri: Uri) -> Fault {
    refused(
        405,
        "method_not_allowed",
        "The method is not allowed here",
        format!("{method} is not for {}; see the header Allow.", uri.path()),
    )
    .into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::api::ROUTES;

    #[test]
    fn the_openapi_document_and_the_routes_name_the_same_calls() {
        let document: Value = serde_json::from_str(OPENAPI).expect("JSON");
        let paths = document["paths"].as_object().expect("paths");
        let documented: BTreeSet<(String, String)> = paths
            .iter()
            .flat_map(|(path, operations)| {
                operations.as_object().expect("operations").keys().map(move |method| (method.clone(), path.clone()))
            })
            .collect();
        let routed: BTreeSet<(String, String)> = ROUTES.iter().map(|(method, path)| ((*method).to_owned(), (*path).to_owned())).collect();
        assert_eq!(documented, routed);
    }

    #[test]
    fn every_reference_in_the_document_leads_somewhere() {
        let document: Value = serde_json::from_str(OPENAPI).expect("JSON");
        for reference in OPENAPI.split("\"$ref\": \"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
        }
    }
}
