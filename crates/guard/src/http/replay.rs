//! What is kept of a response, and a response made of what was kept.
//!
//! Kept: the status, the body's bytes, and headers that describe them. Never kept: what belongs to one exchange (`Set-Cookie`,
//! `WWW-Authenticate`, `Date`, request ids, rate limits, hop-by-hop headers). So the list says what is kept, not what is dropped.

use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::response::Parts;
use http::{Extensions, Response, StatusCode};
use http_body::Body;

use super::{Keep, MayHaveHappened, NothingHappened, Preset};
use crate::answer::Answer;
use crate::reply::Ending;

const KEPT: [HeaderName; 10] = [
    header::CONTENT_TYPE,
    header::CONTENT_LANGUAGE,
    header::CONTENT_DISPOSITION,
    header::CONTENT_ENCODING,
    header::CONTENT_LOCATION,
    header::LOCATION,
    header::ETAG,
    header::LAST_MODIFIED,
    header::CACHE_CONTROL,
    header::LINK,
];

/// A response's body, read as far as it may be kept.
pub(super) enum Read<B> {
    /// All of it.
    Whole(Bytes),
    /// More than may be kept: the first bytes, and the rest unread.
    Long(Bytes, Pin<Box<B>>),
    /// It broke off.
    Broken,
}

/// Reads a body until it ends or passes `max_bytes`. Trailers are not kept.
pub(super) async fn read<B: Body<Data = Bytes>>(body: B, max_bytes: usize) -> Read<B> {
    let mut body = Box::pin(body);
    let mut parts: Vec<Bytes> = Vec::new();
    let mut length = 0usize;
    while let Some(frame) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        match frame.map(|frame| frame.into_data()) {
            Ok(Ok(data)) => {
                length = length.saturating_add(data.len());
                parts.push(data);
            }
            Ok(Err(_trailers)) => {}
            Err(_) => return Read::Broken,
        }
        if length > max_bytes {
            return Read::Long(joined(parts, length), body);
        }
    }
    Read::Whole(joined(parts, length))
}

fn joined(mut parts: Vec<Bytes>, length: usize) -> Bytes {
    if parts.len() <= 1 {
        return parts.pop().unwrap_or_default();
    }
    let mut whole = BytesMut::with_capacity(length);
    parts.iter().for_each(|part| whole.extend_from_slice(part));
    whole.freeze()
}

/// The response as it is kept: its kept headers in their order.
pub(super) fn kept(parts: &mut Parts, body: Bytes, more: &[HeaderName]) -> Answer {
    if parts.status == StatusCode::NO_CONTENT {
        // An empty answer has no type, at the first time and at every other.
        parts.headers.remove(header::CONTENT_TYPE);
    }
    let keep = |name: &HeaderName| KEPT.contains(name) || more.contains(name);
    let headers = parts.headers.iter().filter(|(name, _)| keep(name));
    Answer {
        status: parts.status.as_u16(),
        headers: headers.map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec())).collect(),
        body,
    }
}

/// The fate of the key that goes with an answer: by what may have happened (I10).
pub(super) fn ending(answer: Answer, extensions: &Extensions, keep: Keep) -> Ending {
    let marked_nothing = extensions.get::<NothingHappened>().is_some();
    let marked_unknown = extensions.get::<MayHaveHappened>().is_some();
    match (answer.status, keep) {
        (_, Keep::All | Keep::Success) if marked_unknown => Ending::Park(answer),
        (_, Keep::All | Keep::Success) if marked_nothing => Ending::Release(answer),
        (500.., Keep::All | Keep::Success) => Ending::Park(answer),
        (200..300, Keep::All | Keep::Success) | (..200 | 300..500, Keep::All) => Ending::Keep(answer),
        (..200 | 300..500, Keep::Success) => Ending::Release(answer),
    }
}

/// A kept answer as a response, marked as the dialect marks it.
pub fn replayed<B: From<Bytes>>(answer: Answer, preset: &Preset) -> Response<B> {
    let mut response = plain(answer);
    if let Some(name) = &preset.replay_header {
        response.headers_mut().insert(name.clone(), HeaderValue::from_static("true"));
    }
    response
}

/// An answer as a response.
pub fn plain<B: From<Bytes>>(answer: Answer) -> Response<B> {
    let mut response = Response::new(B::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut headers = HeaderMap::with_capacity(answer.headers.len() + 1);
    for (name, value) in answer.headers {
        // They came out of a header map, and no other writes this table.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_bytes(&value)) {
            headers.append(name, value);
        }
    }
    *response.headers_mut() = headers;
    response
}
