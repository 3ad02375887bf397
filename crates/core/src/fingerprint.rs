//! The canonical form of a request, over which the fingerprint of I8 is made.
//!
//! What comes in: method, path, query, content type and body bytes. What goes out: canonical bytes, so that requests that mean the same
//! give the same bytes and requests that differ in anything that counts do not; or the reason and place why the body is no request at
//! all. The caller digests them under its key ring ([`crate::secret::Keyring::digest`], I12).
//!
//! Headers take no part: request ids, dates and tokens vary from send to send. JSON bodies are read by a tokenizer of our own, because
//! a reader that keeps the last of two members, or that turns numbers into floats, lets two different payments look alike (I11). It never
//! guesses, and it never reads past its limits.

mod json;
mod number;
mod pointer;

pub use pointer::Exclusion;

/// The request as it came in.
#[derive(Clone, Copy, Debug)]
pub struct RequestParts<'a> {
    /// `POST`, `PATCH` …
    pub method: &'a str,
    /// The path as sent, without the query.
    pub path: &'a str,
    /// The query as sent, without the question mark. Byte-exact.
    pub query: Option<&'a str>,
    /// The `Content-Type` header, if there was one. Its parameters take no part.
    pub content_type: Option<&'a str>,
    /// The body, whole.
    pub body: &'a [u8],
}

/// What is allowed and what is left out.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The longest body.
    pub max_body_bytes: usize,
    /// The deepest nesting of arrays and objects in a JSON body.
    pub max_depth: usize,
    /// Members of a JSON body that take no part in the comparison.
    pub exclude: Vec<Exclusion>,
}

impl Default for Rules {
    fn default() -> Self {
        Self { max_body_bytes: 64 * 1024, max_depth: 64, exclude: Vec::new() }
    }
}

/// Why a body has no canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {at}")]
pub struct BodyFault {
    /// What is wrong.
    pub kind: BodyFaultKind,
    /// At which byte of the body, from 0.
    pub at: usize,
}

/// What is wrong with a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyFaultKind {
    /// Longer than [`Rules::max_body_bytes`].
    #[error("the body is longer than allowed")]
    TooLong,
    /// Nested deeper than [`Rules::max_depth`].
    #[error("the body is nested deeper than allowed")]
    TooDeep,
    /// Not JSON (RFC 8259), though its content type says so.
    #[error("the body is not valid JSON")]
    NotJson,
    /// Not UTF-8.
    #[error("the body is not valid UTF-8")]
    NotUtf8,
    /// Two members of one object have the same name, after unescaping. Readers differ on which counts, so none does.
    #[error("the body names a member twice")]
    DuplicateMember,
    /// A number whose exponent has more than 15 digits.
    #[error("the body holds a number out of every range")]
    NumberOutOfRange,
}

impl BodyFault {
    /// The stable code of the problem. All but `body_too_large` (413) are answered 400.
    pub const fn code(self) -> &'static str {
        match self.kind {
            BodyFaultKind::TooLong => "body_too_large",
            BodyFaultKind::TooDeep => "json_too_deep",
            BodyFaultKind::NotJson | BodyFaultKind::NotUtf8 | BodyFaultKind::NumberOutOfRange => "json_invalid",
            BodyFaultKind::DuplicateMember => "json_duplicate_member",
        }
    }
}

/// The canonical bytes of a request. Each part is framed by its length, so that no two splits of the same letters agree.
pub fn canonical(request: &RequestParts<'_>, rules: &Rules) -> Result<Vec<u8>, BodyFault> {
    if request.body.len() > rules.max_body_bytes {
        return Err(BodyFault { kind: BodyFaultKind::TooLong, at: rules.max_body_bytes });
    }
    let media_type = media_type(request.content_type);
    let mut out = Vec::with_capacity(request.body.len() + request.path.len() + 64);
    out.extend_from_slice(b"payonce request v1\n");
    frame(&mut out, request.method.as_bytes());
    frame(&mut out, request.path.as_bytes());
    // No query and an empty one are the same request to every router.
    frame(&mut out, request.query.unwrap_or_default().as_bytes());
    if request.body.is_empty() {
        // Clients drop the content type of an empty body at will.
        out.extend_from_slice(b"empty");
    } else if is_json(&media_type) {
        frame(&mut out, media_type.as_bytes());
        out.extend_from_slice(b"json");
        json::canonical(request.body, rules, &mut out)?;
    } else {
        frame(&mut out, media_type.as_bytes());
        out.extend_from_slice(b"bytes");
        frame(&mut out, request.body);
    }
    Ok(out)
}

/// Checks a body against the rules without comparing anything: well-formed, no duplicate names, not too deep.
pub fn check_json(body: &[u8], rules: &Rules) -> Result<(), BodyFault> {
    if body.len() > rules.max_body_bytes {
        return Err(BodyFault { kind: BodyFaultKind::TooLong, at: rules.max_body_bytes });
    }
    json::canonical(body, rules, &mut Vec::with_capacity(body.len()))
}

fn frame(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes.len().to_string().as_bytes());
    out.push(b':');
    out.extend_from_slice(bytes);
}

/// The content type without its parameters, in lower case.
fn media_type(content_type: Option<&str>) -> String {
    let whole = content_type.unwrap_or_default();
    whole.split_once(';').map_or(whole, |(essence, _)| essence).trim().to_ascii_lowercase()
}

fn is_json(media_type: &str) -> bool {
    matches!(media_type, "application/json" | "text/json") || media_type.ends_with("+json")
}

#[cfg(test)]
mod tests;
