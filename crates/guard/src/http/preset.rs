//! The dialects of idempotency: where the key stands, which status says what, what is kept.

use http::HeaderName;
use http::header::HeaderValue;
use payonce_core::fingerprint::Exclusion;
use serde_json::json;

use super::Problem;
use crate::reply::Refusal;

/// One dialect.
#[derive(Clone, Debug)]
pub struct Preset {
    /// Where the key stands.
    pub key: KeySource,
    /// Whether a request without a key is refused; else it passes unguarded.
    pub key_required: bool,
    /// The longest key.
    pub max_key_bytes: usize,
    /// The status of a key that was used for another request.
    pub mismatch_status: u16,
    /// The header that marks a replay with `true`.
    pub replay_header: Option<HeaderName>,
    /// Members of a JSON body that may differ between repeats.
    pub exclude: Vec<Exclusion>,
    /// Which answers are kept.
    pub keep: Keep,
    /// What a refusal looks like.
    pub errors: ErrorForm,
}

/// Where the key stands.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// In a header.
    Header(HeaderName),
    /// In a JSON body.
    Json {
        /// The pointer to the key.
        id: &'static str,
        /// The pointer to whom it belongs to; becomes part of the scope.
        owner: &'static str,
    },
}

/// Which answers are kept, of those that are not marked and below 500.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All of them: success and terminal failure.
    All,
    /// 2xx only; the others promise to have had no effect, and release the key.
    Success,
}

/// What a refusal looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorForm {
    /// RFC 9457.
    Problem,
    /// Stripe's error object.
    Stripe,
    /// Google's `ErrorResponse`, without the response header that the account's owner signs.
    Google,
}

impl Preset {
    /// The IETF draft: 400 without a key, 409 while running, 422 for another request; problem bodies.
    pub fn ietf() -> Self {
        Self {
            key: KeySource::Header(HeaderName::from_static("idempotency-key")),
            key_required: true,
            max_key_bytes: 255,
            mismatch_status: 422,
            replay_header: Some(HeaderName::from_static("idempotency-replayed")),
            exclude: Vec::new(),
            keep: Keep::All,
            errors: ErrorForm::Problem,
        }
    }

    /// Stripe v1: the key is optional, another request is answered 400 `idempotency_error`, a replay is marked `Idempotent-Replayed`.
    pub fn stripe() -> Self {
        Self {
            key_required: false,
            mismatch_status: 400,
            replay_header: Some(HeaderName::from_static("idempotent-replayed")),
            errors: ErrorForm::Stripe,
            ..Self::ietf()
        }
    }

    /// Google Standard Payments: the key is `requestId` of the account, `requestTimestamp` may differ, another request is answered 412, and
    /// only a 2xx is kept (a business decline is one).
    pub fn google() -> Self {
        Self {
            key: KeySource::Json { id: "/requestHeader/requestId", owner: "/paymentIntegratorAccountId" },
            max_key_bytes: 100,
            mismatch_status: 412,
            replay_header: None,
            exclude: Exclusion::parse("/requestHeader/requestTimestamp").into_iter().collect(),
            keep: Keep::Success,
            errors: ErrorForm::Google,
            ..Self::ietf()
        }
    }

    /// Open Banking UK: `x-idempotency-key` of at most 40 characters; a repeat gets 201 and no marker. With
    /// [`GuardLayer::on_replay`](super::GuardLayer::on_replay) the body is the resource's current state, as the standard wants it.
    pub fn open_banking() -> Self {
        Self {
            key: KeySource::Header(HeaderName::from_static("x-idempotency-key")),
            max_key_bytes: 40,
            mismatch_status: 400,
            replay_header: None,
            ..Self::ietf()
        }
    }

    /// The problem of a refusal in this dialect.
    pub fn problem(&self, refusal: Refusal) -> Problem {
        let problem = Problem::from(refusal);
        match refusal {
            Refusal::Mismatch => Problem { status: self.mismatch_status, ..problem },
            Refusal::InUse { .. }
            | Refusal::OutcomeUnknown
            | Refusal::StoreUnavailable { .. }
            | Refusal::Busy { .. }
            | Refusal::Broken
            | Refusal::NotStored
            | Refusal::Unreadable => problem,
        }
    }

    /// The problem as this dialect's response.
    pub fn response<B: From<bytes::Bytes>>(&self, problem: Problem) -> http::Response<B> {
        let body = match self.errors {
            ErrorForm::Problem => return problem.into_response(),
            ErrorForm::Stripe => {
                let kind = match problem.code.as_ref() {
                    "idempotency_key_reused" => "idempotency_error",
                    _ if problem.status >= 500 => "api_error",
                    _ => "invalid_request_error",
                };
                json!({ "error": { "type": kind, "code": problem.code, "message": problem.detail } })
            }
            ErrorForm::Google => {
                let code = match problem.code.as_ref() {
                    "idempotency_key_reused" => Some("IDEMPOTENCY_VIOLATION"),
                    "idempotency_key_missing" => Some("MISSING_REQUIRED_FIELD"),
                    _ if problem.status < 500 && problem.status != 409 => Some("INVALID_FIELD_VALUE"),
                    _ => None,
                };
                json!({ "errorResponseCode": code, "errorDescription": format!("{}: {}", problem.code, problem.detail) })
            }
        };
        let mut response = problem.into_response();
        response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *response.body_mut() = B::from(bytes::Bytes::from(body.to_string()));
        response
    }
}
