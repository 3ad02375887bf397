//! The service: reads the request, asks the guard, and answers.
//!
//! A refusal is a response with its [`Refusal`] in the extensions, never an error; the inner service's own error passes through. The
//! inner service runs in the guard's task, so a caller that hangs up does not stop it.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use payonce_core::failure::{MoneyMoved, Retry};
use payonce_core::fingerprint::{BodyFault, BodyFaultKind, RequestParts, canonical};
use payonce_core::key::{IdempotencyKey, KeyFault};
use payonce_core::record::RecordKey;
use tower::Service;

use super::layer::Config;
use super::{GuardFuture, GuardedBody, KeySource, Problem, ReplyBody, replay};
use crate::reply::{Ending, Refusal, Reply, Running};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// See [`GuardLayer`](super::GuardLayer).
#[derive(Clone)]
pub struct GuardService<S> {
    inner: S,
    config: Arc<Config>,
}

/// A longer scope does not fit every store's index.
const MAX_SCOPE_BYTES: usize = 512;

impl<S> GuardService<S> {
    pub(super) const fn new(inner: S, config: Arc<Config>) -> Self {
        Self { inner, config }
    }
}

impl<S, B, R> Service<Request<B>> for GuardService<S>
where
    S: Service<Request<GuardedBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<ReplyBody<R>>;
    type Error = S::Error;
    type Future = GuardFuture<R, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The one that was polled ready is the one that is called.
        let next = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, next);
        let config = self.config.clone();
        if config.methods.contains(request.method()) {
            GuardFuture::new(guarded(config, inner, request))
        } else {
            GuardFuture::new(through(inner, request))
        }
    }
}

async fn through<S, B, R>(mut inner: S, request: Request<B>) -> Result<Response<ReplyBody<R>>, S::Error>
where
    S: Service<Request<GuardedBody<B>>, Response = Response<R>>,
{
    Ok(inner.call(request.map(GuardedBody::through)).await?.map(ReplyBody::through))
}

/// What the inner service gave, on its way past the guard's task.
enum Given<R, E> {
    Response(Parts, Option<Pin<Box<R>>>),
    Error(E),
}

type Slot<R, E> = Arc<Mutex<Option<Given<R, E>>>>;

async fn guarded<S, B, R>(config: Arc<Config>, inner: S, request: Request<B>) -> Result<Response<ReplyBody<R>>, S::Error>
where
    S: Service<Request<GuardedBody<B>>, Response = Response<R>> + Send + 'static,
    S::Future: Send,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: Body<Data = Bytes> + Send + 'static,
{
    let preset = &config.preset;
    let (parts, body) = request.into_parts();
    let from_header = match &preset.key {
        KeySource::Header(name) => match header_key(&parts.headers, name) {
            Err(KeyFault::Missing) if !preset.key_required => return through(inner, Request::from_parts(parts, body)).await,
            Err(fault) => return Ok(preset.response(fault.into())),
            Ok(key) => Some(key),
        },
        KeySource::Json { .. } => None,
    };
    let body = match whole(body, config.rules.max_body_bytes).await {
        Ok(body) => body,
        Err(problem) => return Ok(preset.response(problem)),
    };
    let canonical = match canonical_of(&parts, &body, &config) {
        Ok(canonical) => canonical,
        Err(fault) => return Ok(preset.response(fault.into())),
    };
    let (key, owner) = match from_header {
        Some(key) => (key, None),
        None => match json_key(&body, &preset.key) {
            Ok((key, owner)) => (key, Some(owner)),
            Err(fault) => return Ok(preset.response(fault.into())),
        },
    };
    if key.as_str().len() > preset.max_key_bytes {
        return Ok(preset.response(KeyFault::TooLong.into()));
    }
    let Some(tenant) = (config.tenant)(&parts) else {
        let problem = Problem::new(401, "unauthorized", "The caller is not known", "No tenant could be derived from the request.");
        return Ok(preset.response(problem.money(MoneyMoved::No, Retry::Never)));
    };
    let scope = bounded((config.scope)(&parts), owner);
    let route = (config.route)(&parts);
    let request = crate::reply::Request { key: RecordKey { tenant, scope, key }, canonical, route };

    let slot: Slot<R, S::Error> = Arc::new(Mutex::new(None));
    let work = {
        let (slot, config) = (slot.clone(), config.clone());
        move |running| run(inner, parts, body, running, config, slot)
    };
    let reply = config.guard.run(request, work).await;
    let given = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (reply, given) {
        (Reply::Fresh(answer), Some(Given::Response(parts, rest))) => {
            Ok(Response::from_parts(parts, ReplyBody::prefixed(answer.body, rest)))
        }
        (Reply::Fresh(answer), Some(Given::Error(_)) | None) => Ok(replay::plain(answer)),
        (Reply::Replayed(answer), _) => {
            let answer = match &config.refresh {
                Some(refresh) => refresh(answer).await,
                None => answer,
            };
            Ok(replay::replayed(answer, preset))
        }
        // The inner service's own error passes through; its key is parked.
        (Reply::Refused(Refusal::Broken), Some(Given::Error(error))) => Err(error),
        (Reply::Refused(refusal), _) => {
            let mut response = preset.response(preset.problem(refusal));
            response.extensions_mut().insert(refusal);
            Ok(response)
        }
    }
}

/// The inner service's run, inside the guard's task.
async fn run<S, B, R>(
    mut inner: S,
    parts: http::request::Parts,
    body: Bytes,
    running: Running,
    config: Arc<Config>,
    slot: Slot<R, S::Error>,
) -> Ending
where
    S: Service<Request<GuardedBody<B>>, Response = Response<R>>,
    R: Body<Data = Bytes>,
{
    let mut request = Request::from_parts(parts, GuardedBody::whole(body));
    request.extensions_mut().insert(running);
    let give = |given| *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(given);
    let response = match inner.call(request).await {
        Ok(response) => response,
        Err(error) => {
            give(Given::Error(error));
            return Ending::Broken;
        }
    };
    let (mut parts, body) = response.into_parts();
    let (first, rest) = match replay::read(body, config.guard.policy().max_answer_bytes).await {
        replay::Read::Whole(body) => (body, None),
        replay::Read::Long(first, rest) => (first, Some(rest)),
        replay::Read::Broken => return Ending::Broken,
    };
    let answer = replay::kept(&mut parts, first, &config.keep_headers);
    let ending = replay::ending(answer, &parts.extensions, config.preset.keep);
    give(Given::Response(parts, rest));
    ending
}

fn header_key(headers: &HeaderMap, name: &http::HeaderName) -> Result<IdempotencyKey, KeyFault> {
    let values: Vec<&[u8]> = headers.get_all(name).iter().map(|value| value.as_bytes()).collect();
    IdempotencyKey::from_headers(&values)
}

/// The key and its owner out of a body that has passed the canonical reader.
fn json_key(body: &[u8], source: &KeySource) -> Result<(IdempotencyKey, String), KeyFault> {
    let KeySource::Json { id, owner } = source else { return Err(KeyFault::Missing) };
    let body: serde_json::Value = serde_json::from_slice(body).map_err(|_| KeyFault::Missing)?;
    let text = |pointer: &str| body.pointer(pointer).and_then(serde_json::Value::as_str);
    let (id, owner) = (text(id).ok_or(KeyFault::Missing)?, text(owner).ok_or(KeyFault::Missing)?);
    Ok((IdempotencyKey::parse(id)?, owner.to_owned()))
}

fn canonical_of(parts: &http::request::Parts, body: &[u8], config: &Config) -> Result<Vec<u8>, BodyFault> {
    let content_type = parts.headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let request = RequestParts { method: parts.method.as_str(), path: parts.uri.path(), query: parts.uri.query(), content_type, body };
    canonical(&request, &config.rules)
}

/// Reads the request's body whole, but never more than allowed. Nothing has been claimed yet.
async fn whole<B>(body: B, max_bytes: usize) -> Result<Bytes, Problem>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let too_long = || Problem::from(BodyFault { kind: BodyFaultKind::TooLong, at: max_bytes });
    if usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX) > max_bytes {
        return Err(too_long());
    }
    match Limited::new(body, max_bytes).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_long()),
        Err(_) => {
            Err(Problem::new(400, "body_incomplete", "The request body broke off", "The body did not arrive whole. Nothing was run.")
                .money(MoneyMoved::No, Retry::Safe))
        }
    }
}

/// The scope with the key's owner, short enough for every store.
fn bounded(scope: String, owner: Option<String>) -> String {
    let scope = match owner {
        Some(owner) => format!("{scope} {owner}"),
        None => scope,
    };
    if scope.len() <= MAX_SCOPE_BYTES {
        return scope;
    }
    let head: String = scope.chars().take(64).collect();
    let hash: String = payonce_core::secret::sha256(scope.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{head}…#{hash}")
}

impl<S> fmt::Debug for GuardService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardService").field("preset", &self.config.preset).finish_non_exhaustive()
    }
}
