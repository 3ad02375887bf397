//! The way in: who asks, how large, in which form, under which key. In this order, and nothing is claimed here.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use payonce::http::Problem;
use payonce_core::failure::{MoneyMoved, Retry};
use payonce_core::fingerprint::Rules;
use payonce_core::id::TenantId;
use payonce_core::key::IdempotencyKey;
use payonce_core::secret::sha256;

use super::Api;
use super::fault::{ASK_AGAIN, Fault, refused, store};
use super::fields::Fields;
use crate::observe;

/// How much of a body that is too large is read on, so that its sender gets to read the refusal.
const DISCARD_MAX_BYTES: usize = 8 * 1024 * 1024;
const DISCARD_FOR: Duration = Duration::from_secs(1);

/// A POST that passed the door.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// Whose.
    pub(crate) tenant: TenantId,
    /// The path in its one spelling.
    pub(crate) path: String,
    /// The query as sent.
    pub(crate) query: Option<String>,
    /// The caller's key.
    pub(crate) key: IdempotencyKey,
    /// The body, whole.
    pub(crate) body: Bytes,
}

impl Incoming {
    /// The members of the body.
    pub(crate) fn fields(&self, api: &Api) -> Result<Fields, Fault> {
        Ok(Fields::of(&self.body, &api.rules())?)
    }
}

impl Api {
    /// The rules that every body is held to.
    pub(crate) fn rules(&self) -> Rules {
        Rules { max_body_bytes: self.config.http.body_limit_bytes, ..Rules::default() }
    }

    /// Who asks (a bearer token, looked up by its hash).
    pub(crate) async fn authenticate(&self, headers: &HeaderMap) -> Result<TenantId, Fault> {
        let token = bearer(headers).ok_or_else(|| {
            refused(401, "authentication_required", "An API key is needed", "Send the header Authorization: Bearer and your API key.")
        })?;
        let known = self.ledger.store.api_key(&sha256(token.as_bytes())).await.map_err(|fault| store(&fault))?;
        let known = known.filter(|key| key.revoked_at.is_none());
        let known =
            known.ok_or_else(|| refused(401, "api_key_invalid", "The API key is not valid", "It is not known, or it was revoked."))?;
        observe::tenant_is(&known.tenant);
        Ok(known.tenant)
    }

    /// Lets a POST in. `path` is the request's path in its one spelling.
    pub(crate) async fn post(&self, request: Request<Body>, path: String) -> Result<Incoming, Fault> {
        self.refuse_while_draining()?;
        let (parts, body) = request.into_parts();
        let tenant = self.authenticate(&parts.headers).await?;
        let body = self.read(&parts.headers, body, self.config.http.body_limit_bytes).await?;
        if !body.is_empty() {
            json_only(&parts.headers)?;
        }
        let values: Vec<&[u8]> = parts.headers.get_all("idempotency-key").iter().map(http::HeaderValue::as_bytes).collect();
        let key = IdempotencyKey::from_headers(&values).map_err(Problem::from)?;
        Ok(Incoming { tenant, path, query: parts.uri.query().map(str::to_owned), key, body })
    }

    fn refuse_while_draining(&self) -> Result<(), Fault> {
        if !*self.draining.borrow() {
            return Ok(());
        }
        let problem = Problem::new(
            503,
            "shutting_down",
            "This node is shutting down",
            "Nothing was done. Send the request again; another node will take it.",
        );
        Err(problem.money(MoneyMoved::No, Retry::Safe).after(ASK_AGAIN).into())
    }

    /// The whole body, or 413 as soon as it is known to be longer than `limit`.
    pub(crate) async fn read(&self, headers: &HeaderMap, mut body: Body, limit: usize) -> Result<Bytes, Fault> {
        let told = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if told.is_some_and(|length| length > limit as u64) {
            // A client that waits for "100 Continue" is spared the upload.
            if !headers.contains_key(EXPECT) {
                discard(&mut body, 0).await;
            }
            return Err(too_large(limit).into());
        }
        let room = body.size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
        let mut whole = BytesMut::with_capacity(room.min(limit));
        let within = tokio::time::sleep(self.config.http.body_timeout);
        tokio::pin!(within);
        loop {
            let frame = tokio::select! {
                biased;
                frame = body.frame() => frame,
                () = &mut within => return Err(refused(408, "request_timeout", "The request came too slowly", "Its body did not arrive in time. Nothing was done.").money(MoneyMoved::No, Retry::Safe).into()),
            };
            match frame {
                None => return Ok(whole.freeze()),
                Some(Err(_)) => {
                    return Err(refused(
                        400,
                        "request_incomplete",
                        "The request broke off",
                        "Its body ended before it was complete. Nothing was done.",
                    )
                    .money(MoneyMoved::No, Retry::Safe)
                    .into());
                }
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    if whole.len() + data.len() > limit {
                        discard(&mut body, whole.len() + data.len()).await;
                        return Err(too_large(limit).into());
                    }
                    whole.extend_from_slice(&data);
                }
            }
        }
    }
}

/// Reads on without keeping anything, up to a bound.
async fn discard(body: &mut Body, mut seen: usize) {
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            seen += frame.data_ref().map_or(0, Bytes::len);
            if seen > DISCARD_MAX_BYTES {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(DISCARD_FOR, reading).await;
}

fn too_large(limit: usize) -> Problem {
    refused(413, "body_too_large", "The request body is too large", format!("At most {limit} bytes are taken. Nothing was done."))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    // Two headers that might differ are as good as none.
    if values.next().is_some() {
        return None;
    }
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn json_only(headers: &HeaderMap) -> Result<(), Fault> {
    if headers.get(CONTENT_ENCODING).is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        let detail = "Send the body as it is, without a Content-Encoding.";
        return Err(refused(415, "content_type_not_supported", "The content coding is not supported", detail).into());
    }
    let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "application/json" {
        return Ok(());
    }
    let detail =
        format!("Send the body as application/json, not as {}.", if essence.is_empty() { "what is no media type" } else { &essence });
    Err(refused(415, "content_type_not_supported", "The content type is not supported", detail).into())
}
