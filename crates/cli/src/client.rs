//! A small client for loopback services that speak JSON: for the demo and the bench.
//!
//! In: a method, a path, a key, a body. Out: status, headers, bytes. Never: a retry of its own, a redirect followed.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};
use hyper_util::client::legacy::Client as Hyper;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// Longer than any wait that the service allows itself.
const TIMEOUT: Duration = Duration::from_secs(60);
const BODY_MAX_BYTES: usize = 16 * 1024 * 1024;
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Speaks to one service. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    hyper: Hyper<HttpConnector, Full<Bytes>>,
    base: String,
    api_key: Option<String>,
}

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The body as JSON; `null` where it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// A text member of the body by its JSON pointer; empty where there is none.
    pub(crate) fn text(&self, pointer: &str) -> String {
        self.json().pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// Whether it is marked as a replay.
    pub(crate) fn is_replayed(&self) -> bool {
        self.headers.get("idempotency-replayed").is_some_and(|value| value == "true")
    }
}

impl Client {
    /// A client of the service at `base` (`http://127.0.0.1:8080`).
    pub(crate) fn new(base: &str, api_key: Option<&str>) -> Self {
        let hyper = Hyper::builder(TokioExecutor::new()).pool_max_idle_per_host(1024).build_http();
        Self { hyper, base: base.trim_end_matches('/').to_owned(), api_key: api_key.map(str::to_owned) }
    }

    /// `GET`.
    pub(crate) async fn get(&self, path: &str) -> Result<Answer, String> {
        self.send(Method::GET, path, None, None).await
    }

    /// `POST` with a JSON body, and with an idempotency key if there is one.
    pub(crate) async fn post(&self, path: &str, key: Option<&str>, body: &Value) -> Result<Answer, String> {
        self.send(Method::POST, path, key, Some(body)).await
    }

    /// `DELETE`.
    pub(crate) async fn delete(&self, path: &str) -> Result<Answer, String> {
        self.send(Method::DELETE, path, None, None).await
    }

    async fn send(&self, method: Method, path: &str, key: Option<&str>, body: Option<&Value>) -> Result<Answer, String> {
        let address = if path.starts_with("http://") { path.to_owned() } else { format!("{}{path}", self.base) };
        let uri: Uri = address.parse().map_err(|why| format!("{address}: {why}"))?;
        let bytes = body.map(ToString::to_string).unwrap_or_default();
        let mut request = Request::new(Full::new(Bytes::from(bytes)));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(key) = key {
            headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_str(key).map_err(|why| why.to_string())?);
        }
        if let Some(api_key) = &self.api_key {
            let value = HeaderValue::from_str(&format!("Bearer {api_key}")).map_err(|why| why.to_string())?;
            headers.insert(AUTHORIZATION, value);
        }
        let whole = async {
            let response = self.hyper.request(request).await.map_err(|why| why.to_string())?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, BODY_MAX_BYTES).collect().await.map_err(|why| why.to_string())?.to_bytes();
            Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
        };
        match tokio::time::timeout(TIMEOUT, whole).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer within {} s", TIMEOUT.as_secs())),
        }
    }
}
