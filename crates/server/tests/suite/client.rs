//! A tiny HTTP client: what is sent and what comes back, byte for byte.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client as Pooled;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON in a {}: {:?}", self.status, self.body))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("text"))
    }

    /// The problem's code.
    pub(crate) fn code(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.text());
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        assert_eq!(problem["type"], format!("/docs/errors/{}", problem["code"].as_str().expect("a code")));
        problem["code"].as_str().expect("a code").to_owned()
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.header("idempotency-replayed") == Some("true")
    }

    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }
}

/// A client.
#[derive(Clone)]
pub(crate) struct Client(Pooled<HttpConnector, Full<Bytes>>);

impl Client {
    pub(crate) fn new() -> Self {
        Self(Pooled::builder(TokioExecutor::new()).build_http())
    }

    pub(crate) async fn send(&self, method: Method, url: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Reply {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).expect("a request");
        let sent = tokio::time::timeout(Duration::from_secs(60), self.0.request(request)).await.expect("an answer in time");
        let answer = sent.expect("an answer");
        let (parts, body) = answer.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        Reply { status: parts.status.as_u16(), headers: parts.headers, body }
    }
}
