//! Problem bodies (RFC 9457): what went wrong, whether money may have moved, and whether to send the request again.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use payonce_core::failure::{MoneyMoved, Retry};
use payonce_core::fingerprint::{BodyFault, BodyFaultKind};
use payonce_core::key::KeyFault;
use serde_json::{Map, Value};

use crate::answer::Answer;
use crate::reply::Refusal;

/// An error as the caller sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// Stable, snake_case; has a page in the docs.
    pub code: Cow<'static, str>,
    /// The same words for every problem of this code.
    pub title: Cow<'static, str>,
    /// This problem, for people. Holds no secret and no card data.
    pub detail: String,
    /// Whether money may have moved, where money is concerned.
    pub money_moved: Option<MoneyMoved>,
    /// Whether to send the same request again, where money is concerned.
    pub retry: Option<Retry>,
    /// When to send it again; the header `Retry-After`.
    pub retry_after: Option<Duration>,
    /// Further members, such as the payment.
    pub extra: Map<String, Value>,
}

impl Problem {
    /// The content type of a problem.
    pub const CONTENT_TYPE: &'static str = "application/problem+json";
    /// `type` is this and the code.
    pub const TYPE_BASE: &'static str = "/docs/errors/";

    /// A problem that says nothing about money.
    pub fn new(status: u16, code: impl Into<Cow<'static, str>>, title: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        Self {
            status,
            code: code.into(),
            title: title.into(),
            detail: detail.into(),
            money_moved: None,
            retry: None,
            retry_after: None,
            extra: Map::new(),
        }
    }

    /// The same, with what is known about money and whether to try again.
    #[must_use]
    pub const fn money(mut self, moved: MoneyMoved, retry: Retry) -> Self {
        self.money_moved = Some(moved);
        self.retry = Some(retry);
        self
    }

    /// The same, with the time to wait before trying again.
    #[must_use]
    pub const fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// The same, with a further member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.extra.insert(name.to_owned(), value.into());
        self
    }

    /// The value of `Retry-After`: whole seconds, rounded up, at least 1.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after.map(|wait| wait.as_millis().div_ceil(1000).max(1)).and_then(|seconds| u64::try_from(seconds).ok())
    }

    /// The body.
    pub fn to_bytes(&self) -> Bytes {
        #[derive(serde::Serialize)]
        struct Body<'a> {
            r#type: String,
            title: &'a str,
            status: u16,
            detail: &'a str,
            code: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            money_moved: Option<MoneyMoved>,
            #[serde(skip_serializing_if = "Option::is_none")]
            retry: Option<Retry>,
            #[serde(flatten)]
            extra: &'a Map<String, Value>,
        }
        let body = Body {
            r#type: format!("{}{}", Self::TYPE_BASE, self.code),
            title: &self.title,
            status: self.status,
            detail: &self.detail,
            code: &self.code,
            money_moved: self.money_moved,
            retry: self.retry,
            extra: &self.extra,
        };
        // Strings, numbers and a map with string keys: this cannot fail.
        serde_json::to_vec(&body).unwrap_or_default().into()
    }

    /// As an answer that a guard keeps, releases or parks.
    pub fn to_answer(&self) -> Answer {
        let mut answer = Answer::new(self.status, Self::CONTENT_TYPE, self.to_bytes());
        if let Some(seconds) = self.retry_after_seconds() {
            answer.headers.push(("retry-after".to_owned(), seconds.to_string().into_bytes()));
        }
        answer
    }

    /// As a response.
    pub fn into_response<B: From<Bytes>>(self) -> Response<B> {
        let mut response = Response::new(B::from(self.to_bytes()));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(Self::CONTENT_TYPE));
        if let Some(seconds) = self.retry_after_seconds() {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let (status, title, detail) = match refusal {
            Refusal::Mismatch => (
                422,
                "The idempotency key was used for another request",
                "This key belongs to an earlier request with another method, path, query or body. Send this request with a key of its own.",
            ),
            Refusal::InUse { .. } => (
                409,
                "The first request with this key is still running",
                "Ask again with the same key after the time in Retry-After; do not take a new key.",
            ),
            Refusal::OutcomeUnknown => (
                409,
                "The outcome of the first request with this key is unknown",
                "The first request may or may not have taken effect. It is not run again until its outcome has been looked up and settled.",
            ),
            Refusal::StoreUnavailable { .. } => {
                (503, "The store of idempotency keys cannot be reached", "The request was not run. Send it again with the same key.")
            }
            Refusal::Busy { .. } => (503, "Too many requests are running", "The request was not run. Send it again with the same key."),
            Refusal::Broken => (
                500,
                "The request broke off",
                "It may or may not have taken effect. Its key is parked until the outcome has been looked up and settled.",
            ),
            Refusal::NotStored => (
                503,
                "The result could not be stored",
                "The request was run, and its result could not be stored in time. Send it again with the same key to learn the outcome.",
            ),
            Refusal::Unreadable => (
                500,
                "The record of this key cannot be read",
                "It was written under an encryption key that this installation no longer has. The request was not run again.",
            ),
        };
        let problem = Self::new(status, refusal.code(), title, detail).money(refusal.money_moved(), refusal.retry());
        match refusal.retry_after() {
            Some(wait) => problem.after(wait),
            None => problem,
        }
    }
}

impl From<KeyFault> for Problem {
    fn from(fault: KeyFault) -> Self {
        let title = match fault {
            KeyFault::Missing => "The idempotency key is missing",
            KeyFault::Empty | KeyFault::TooLong | KeyFault::BadCharacter | KeyFault::BadQuoting | KeyFault::Several => {
                "The idempotency key is malformed"
            }
        };
        let detail = sentence(&format!("{fault}. Send one key of 1 to 255 visible ASCII characters without comma and quote."));
        Self::new(400, fault.code(), title, detail).money(MoneyMoved::No, Retry::Never)
    }
}

impl From<BodyFault> for Problem {
    fn from(fault: BodyFault) -> Self {
        let (status, title) = match fault.kind {
            BodyFaultKind::TooLong => (413, "The request body is too large"),
            BodyFaultKind::TooDeep => (400, "The request body is nested too deeply"),
            BodyFaultKind::NotJson | BodyFaultKind::NotUtf8 | BodyFaultKind::NumberOutOfRange => {
                (400, "The request body is not valid JSON")
            }
            BodyFaultKind::DuplicateMember => (400, "The request body names a member twice"),
        };
        Self::new(status, fault.code(), title, sentence(&format!("{fault}."))).money(MoneyMoved::No, Retry::Never)
    }
}

/// The text with a capital letter.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_whether_money_moved_and_when_to_come_back() {
        let problem = Problem::from(Refusal::InUse { retry_after: Duration::from_millis(1001) }).with("payment", "pay_1");
        let response: Response<Bytes> = problem.into_response();
        assert_eq!((response.status().as_u16(), response.headers()["retry-after"].to_str().ok()), (409, Some("2")));
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let text = String::from_utf8_lossy(response.body());
        assert!(text.starts_with("{\"type\":\"/docs/errors/idempotency_key_in_use\",\"title\":"), "{text}");
        assert!(text.ends_with("\"money_moved\":\"unknown\",\"retry\":\"safe\",\"payment\":\"pay_1\"}"), "{text}");
    }
}
