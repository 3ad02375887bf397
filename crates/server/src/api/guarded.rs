//! The guard around the flows: claim, run, and the end of the run mapped to the fate of its key (I8, I10).

use std::future::Future;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderName, HeaderValue, StatusCode};
use payonce::http::Problem;
use payonce::{Answer, Ending, InFlight, Reply, Request, Route, Running};
use payonce_core::fingerprint::{RequestParts, canonical};
use payonce_core::record::RecordKey;
use payonce_flows::FlowFault;
use payonce_flows::charge::Caller;
use serde_json::Value;

use super::Api;
use super::door::Incoming;
use super::fault::{Code, Fault, in_flow};
use crate::config;
use crate::observe;

/// How a run ends that could not come to a decision: something may have been stored, so the key is parked, and its retry resumes.
pub(crate) fn broke_off(fault: &FlowFault) -> Ending {
    Ending::Park(in_flow(fault).to_answer())
}

/// A refusal after which the books are as before: the key is free again.
pub(crate) fn nothing_happened(problem: &Problem) -> Ending {
    Ending::Release(problem.to_answer())
}

/// A JSON answer.
pub(crate) fn json(status: u16, body: &Value) -> Answer {
    Answer::new(status, "application/json", serde_json::to_vec(body).unwrap_or_default())
}

/// The same with where the resource is.
pub(crate) fn located(mut answer: Answer, location: String) -> Answer {
    answer.headers.push(("location".to_owned(), location.into_bytes()));
    answer
}

impl Incoming {
    /// Names the request in the ledger: method, path and key, so that a key used on two endpoints never resumes the other's attempt.
    pub(crate) fn caller(&self) -> Caller {
        Caller { key: format!("POST {} {}", self.path, self.key) }
    }
}

impl Api {
    /// Runs `work` under the request's key, or answers without running it.
    pub(crate) async fn guarded<W, F>(&self, incoming: &Incoming, work: W) -> Result<Response, Fault>
    where
        W: FnOnce(Running) -> F + Send + 'static,
        F: Future<Output = Ending> + Send + 'static,
    {
        // No body and an empty object are one request; the door has seen to it that a body is JSON, whatever its header says.
        let body: &[u8] = if incoming.body.is_empty() { b"{}" } else { &incoming.body };
        let parts = RequestParts {
            method: "POST",
            path: &incoming.path,
            query: incoming.query.as_deref(),
            content_type: Some("application/json"),
            body,
        };
        let canonical = canonical(&parts, &self.rules()).map_err(Problem::from)?;
        let key = RecordKey { tenant: incoming.tenant.clone(), scope: format!("POST {}", incoming.path), key: incoming.key.clone() };
        let counted = move |running| async move {
            let ending = work(running).await;
            observe::run_ended(&ending);
            ending
        };
        let reply = self.guard.run(Request { key, canonical, route: self.route() }, counted).await;
        observe::guard_replied(&reply);
        Ok(match reply {
            Reply::Fresh(answer) => response(answer, false),
            Reply::Replayed(answer) => response(answer, true),
            Reply::Refused(refusal) => Fault::from(Problem::from(refusal)).into_response(),
        })
    }

    /// payonce's own flows meet what an earlier run has stored and ask the channel, so all of them can resume.
    fn route(&self) -> Route {
        match self.config.guard.in_flight {
            config::InFlight::Refuse => Route { in_flight: InFlight::Refuse, ..Route::RESUMABLE },
            config::InFlight::Wait => Route { in_flight: InFlight::Wait { at_most: self.config.http.answer_due }, ..Route::RESUMABLE },
        }
    }
}

fn response(answer: Answer, replayed: bool) -> Response {
    let response_body = answer.body.clone();
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in &answer.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value)) {
            response.headers_mut().append(name, value);
        }
    }
    if answer.status >= 400
        && let Some(code) = code_of(&response_body)
    {
        response.extensions_mut().insert(Code(code));
    }
    if replayed {
        response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
    }
    response
}

/// The code of a problem that a run has answered, for the access log.
fn code_of(body: &[u8]) -> Option<String> {
    let problem: Value = serde_json::from_slice(body).ok()?;
    problem.get("code").and_then(Value::as_str).map(str::to_owned)
}
