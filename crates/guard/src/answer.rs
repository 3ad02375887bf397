//! What a run answers, and the bytes that it is kept as.
//!
//! Status, headers and body are kept as they are: no JSON type of a database ever touches them, so a replay is the same byte for byte.
//! An answer over the limit is kept as a marker instead: the key stays used, and a repeat learns where to look (never a second run).

use bytes::Bytes;

/// A status, headers in their order, and the body's bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// Names in lower case, values as bytes.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body. Never printed.
    pub body: Bytes,
}

/// Kept bytes that do not read as an answer: the table was written by something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the kept answer cannot be read")]
pub struct Unreadable;

const VERSION: u8 = 1;
const WHOLE: u8 = 0;
const MARKER: u8 = 1;
/// A longer `Location` is not kept beside a marker.
const MARKER_LOCATION_BYTES: usize = 2048;

impl Answer {
    /// An answer of a status and a body with its content type.
    pub fn new(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        Self { status, headers: vec![("content-type".to_owned(), content_type.as_bytes().to_vec())], body: body.into() }
    }

    /// An answer without a body, such as 204.
    pub const fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new() }
    }

    /// The bytes to keep; a marker if they would be more than `max_bytes`.
    pub(crate) fn to_kept(&self, max_bytes: usize) -> Vec<u8> {
        let encoded = if self.is_kept_whole(max_bytes) { self.encode(WHOLE) } else { None };
        encoded.unwrap_or_else(|| self.marker().encode(MARKER).unwrap_or_default())
    }

    /// Whether the bytes to keep are no more than `max_bytes`.
    pub(crate) fn is_kept_whole(&self, max_bytes: usize) -> bool {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len() + 6).sum();
        headers + self.body.len() + 6 <= max_bytes
    }

    /// Reads what [`Self::to_kept`] wrote.
    pub(crate) fn from_kept(kept: &[u8]) -> Result<Self, Unreadable> {
        let mut rest = kept;
        if take(&mut rest, 1)? != [VERSION] {
            return Err(Unreadable);
        }
        let kind = take(&mut rest, 1)?;
        let status = u16::from_be_bytes(array(&mut rest)?);
        let count = u16::from_be_bytes(array(&mut rest)?);
        let mut headers = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let name_len = usize::from(u16::from_be_bytes(array(&mut rest)?));
            let name = String::from_utf8(take(&mut rest, name_len)?.to_vec()).map_err(|_| Unreadable)?;
            let value_len = usize::try_from(u32::from_be_bytes(array(&mut rest)?)).map_err(|_| Unreadable)?;
            headers.push((name, take(&mut rest, value_len)?.to_vec()));
        }
        let answer = Self { status, headers, body: Bytes::copy_from_slice(rest) };
        match kind {
            [WHOLE] => Ok(answer),
            [MARKER] => Ok(answer.told()),
            _ => Err(Unreadable),
        }
    }

    /// `None` if a header does not fit its length field.
    fn encode(&self, kind: u8) -> Option<Vec<u8>> {
        let mut out = vec![VERSION, kind];
        out.extend_from_slice(&self.status.to_be_bytes());
        out.extend_from_slice(&u16::try_from(self.headers.len()).ok()?.to_be_bytes());
        for (name, value) in &self.headers {
            out.extend_from_slice(&u16::try_from(name.len()).ok()?.to_be_bytes());
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(&u32::try_from(value.len()).ok()?.to_be_bytes());
            out.extend_from_slice(value);
        }
        out.extend_from_slice(&self.body);
        Some(out)
    }

    /// What is kept of an answer that is too large: its status, where the resource is, and how long the body was.
    fn marker(&self) -> Self {
        let location = |(name, value): &&(String, Vec<u8>)| name == "location" && value.len() <= MARKER_LOCATION_BYTES;
        Self {
            status: self.status,
            headers: self.headers.iter().find(location).cloned().into_iter().collect(),
            body: Bytes::from(self.body.len().to_string()),
        }
    }

    /// A marker as a repeat gets it.
    fn told(mut self) -> Self {
        let length = String::from_utf8_lossy(&self.body);
        let body = format!(
            "{{\"code\":\"idempotency_answer_not_kept\",\"detail\":\"The request was executed once and answered {} with at least {length} bytes, \
             more than are kept. It was not executed again; look at the resource itself.\"}}",
            self.status
        );
        self.headers.push(("content-type".to_owned(), b"application/json".to_vec()));
        self.body = Bytes::from(body);
        self
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Answer({}, {} headers, {} bytes)", self.status, self.headers.len(), self.body.len())
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], Unreadable> {
    let (taken, left) = rest.split_at_checked(count).ok_or(Unreadable)?;
    *rest = left;
    Ok(taken)
}

fn array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Unreadable> {
    take(rest, N)?.try_into().map_err(|_| Unreadable)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_kept_is_read_back_byte_for_byte(
            status in 100u16..=999,
            headers in prop::collection::vec(("[a-z-]{1,20}", prop::collection::vec(any::<u8>(), 0..40)), 0..8),
            body in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let answer = Answer { status, headers, body: body.into() };
            prop_assert_eq!(Answer::from_kept(&answer.to_kept(1 << 20)), Ok(answer));
        }

        #[test]
        fn no_bytes_make_it_panic(kept in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Answer::from_kept(&kept);
        }
    }

    #[test]
    fn b089_over_the_limit_a_marker_is_kept_that_points_to_the_resource() {
        let mut answer = Answer::new(201, "application/json", vec![b'x'; 1000]);
        answer.headers.push(("location".to_owned(), b"/payments/p1".to_vec()));
        let whole = answer.to_kept(usize::MAX).len();
        assert_eq!(Answer::from_kept(&answer.to_kept(whole)), Ok(answer.clone()), "exactly the limit is kept whole");
        let marker = answer.to_kept(whole - 1);
        assert!(marker.len() < 100);
        let told = Answer::from_kept(&marker).expect("readable");
        assert_eq!((told.status, told.headers[0].1.as_slice()), (201, b"/payments/p1".as_slice()));
        assert!(String::from_utf8_lossy(&told.body).contains("at least 1000 bytes"));
    }
}
