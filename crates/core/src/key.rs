//! The caller's idempotency key: 1–255 visible ASCII characters without comma and quote, compared byte for byte.
//!
//! What comes in: the value of an `Idempotency-Key` header, or all of its values. What goes out: one key, or why there is none.
//! It never changes letters: `Abc` and `abc` are two keys.

use std::fmt;

/// A key as the caller sent it, without the quotes of the structured form.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(String);

/// Why a request has no usable key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum KeyFault {
    /// No such header.
    #[error("the request has no Idempotency-Key header")]
    Missing,
    /// Nothing, spaces only, or an empty string in quotes.
    #[error("the idempotency key is empty")]
    Empty,
    /// More than [`IdempotencyKey::MAX_BYTES`].
    #[error("the idempotency key is longer than 255 characters")]
    TooLong,
    /// A space, a comma, a quote, or anything that is not visible ASCII.
    #[error("the idempotency key holds a character other than visible ASCII, or a comma or quote")]
    BadCharacter,
    /// The quoted form does not end with its quote, escapes what may not be escaped, or has something behind it.
    #[error("the quoted idempotency key is not one well-formed string")]
    BadQuoting,
    /// Several headers that name different keys.
    #[error("the request has several Idempotency-Key headers that differ")]
    Several,
}

impl KeyFault {
    /// The stable code of the problem: `idempotency_key_missing` or `idempotency_key_invalid`.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Missing => "idempotency_key_missing",
            Self::Empty | Self::TooLong | Self::BadCharacter | Self::BadQuoting | Self::Several => "idempotency_key_invalid",
        }
    }
}

impl IdempotencyKey {
    /// A key has at most so many characters.
    pub const MAX_BYTES: usize = 255;

    /// Parses one header value: the structured string of the IETF draft (`"abc"`) or the bare token that everybody sends (`abc`).
    /// Both forms of the same characters are one key. Spaces and tabs around the value are trimmed.
    pub fn parse(header: &str) -> Result<Self, KeyFault> {
        Self::from_bytes(header.as_bytes())
    }

    /// Parses all values of the header in a request. Several headers are accepted if all of them name one key (a proxy may repeat
    /// a header), and refused if they differ; a client that joins several with commas is refused as well.
    pub fn from_headers(values: &[&[u8]]) -> Result<Self, KeyFault> {
        let (first, rest) = values.split_first().ok_or(KeyFault::Missing)?;
        let key = Self::from_bytes(first)?;
        for value in rest {
            if Self::from_bytes(value)? != key {
                return Err(KeyFault::Several);
            }
        }
        Ok(key)
    }

    fn from_bytes(header: &[u8]) -> Result<Self, KeyFault> {
        let value = trim_spaces(header);
        let key = match value.strip_prefix(b"\"") {
            Some(quoted) => unquote(quoted)?,
            None => value.to_vec(),
        };
        if key.is_empty() {
            return Err(KeyFault::Empty);
        }
        if key.len() > Self::MAX_BYTES {
            return Err(KeyFault::TooLong);
        }
        if !key.iter().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b',' | b'"')) {
            return Err(KeyFault::BadCharacter);
        }
        String::from_utf8(key).map(Self).map_err(|_| KeyFault::BadCharacter)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reads the rest of a structured string behind its first quote. Only `\"` and `\\` may be escaped (RFC 9651 §4.2.5).
fn unquote(quoted: &[u8]) -> Result<Vec<u8>, KeyFault> {
    let mut text = Vec::with_capacity(quoted.len());
    let mut bytes = quoted.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if bytes.as_slice().is_empty() => return Ok(text),
            b'"' => return Err(KeyFault::BadQuoting),
            b'\\' => match bytes.next() {
                Some(escaped @ (b'"' | b'\\')) => text.push(*escaped),
                Some(_) | None => return Err(KeyFault::BadQuoting),
            },
            plain => text.push(*plain),
        }
    }
    Err(KeyFault::BadQuoting)
}

fn trim_spaces(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(header: &str) -> Result<String, KeyFault> {
        IdempotencyKey::parse(header).map(|key| key.as_str().to_owned())
    }

    #[test]
    fn quoted_and_bare_forms_are_one_key() {
        for header in ["abc", "\"abc\"", "  abc\t", " \"abc\" "] {
            assert_eq!(key(header).as_deref(), Ok("abc"), "{header:?}");
        }
        assert_eq!(key("\"a\\\\b\""), key("a\\b"));
        assert_eq!(key("8e03978e-40d5-43e8-bc93-6894a57f9324"), key("\"8e03978e-40d5-43e8-bc93-6894a57f9324\""));
    }

    #[test]
    fn b027_keys_are_compared_byte_for_byte() {
        assert_ne!(key("Abc"), key("abc"));
        assert_ne!(key("k1"), key("k1x"));
        assert_eq!(key("\"k1 \""), Err(KeyFault::BadCharacter), "padding inside quotes is not trimmed, and not taken either");
    }

    #[test]
    fn b028_missing_blank_and_repeated_headers() {
        assert_eq!(IdempotencyKey::from_headers(&[]), Err(KeyFault::Missing));
        for blank in ["", " ", " \t ", "\"\""] {
            assert_eq!(key(blank), Err(KeyFault::Empty), "{blank:?}");
        }
        assert_eq!(IdempotencyKey::from_headers(&[b"a", b"b"]), Err(KeyFault::Several));
        assert_eq!(IdempotencyKey::from_headers(&[b"a", b""]), Err(KeyFault::Empty));
        assert_eq!(IdempotencyKey::from_headers(&[b"a", b"\"a\""]).map(|k| k.0).as_deref(), Ok("a"));
        assert_eq!(key("a, b"), Err(KeyFault::BadCharacter));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for (header, fault) in [
            ("\"a\\\"b\"", KeyFault::BadCharacter),
            ("\"a\\nb\"", KeyFault::BadQuoting),
            ("\"abc", KeyFault::BadQuoting),
            ("\"", KeyFault::BadQuoting),
            ("\"a\\", KeyFault::BadQuoting),
            ("\"abc\";v=1", KeyFault::BadQuoting),
            ("a b", KeyFault::BadCharacter),
            ("abc\"", KeyFault::BadCharacter),
            ("a,b", KeyFault::BadCharacter),
            ("ключ", KeyFault::BadCharacter),
            ("a\u{7f}", KeyFault::BadCharacter),
            ("a\0", KeyFault::BadCharacter),
        ] {
            assert_eq!(key(header), Err(fault), "{header:?}");
        }
        assert_eq!(key(&"k".repeat(255)).map(|k| k.len()), Ok(255));
        assert_eq!(key(&"k".repeat(256)), Err(KeyFault::TooLong));
        assert_eq!(
            key(&format!("\"{}\"", "\\\\".repeat(255))).map(|k| k.len()),
            Ok(255),
            "the length is that of the key, not of its quoted form"
        );
        assert_eq!(IdempotencyKey::from_headers(&[b"\xff\xfe"]), Err(KeyFault::BadCharacter));
        assert_eq!([KeyFault::Missing.code(), KeyFault::Several.code()], ["idempotency_key_missing", "idempotency_key_invalid"]);
    }

    proptest! {
        #[test]
        fn any_visible_text_survives_both_forms(text in "[!#-+\\--~]{1,255}") {
            let quoted = format!("\"{}\"", text.replace('\\', "\\\\"));
            prop_assert_eq!(key(&text), Ok(text.clone()));
            prop_assert_eq!(key(&quoted), Ok(text));
        }

        #[test]
        fn no_bytes_at_all_make_it_panic_or_let_a_bad_key_through(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(key) = IdempotencyKey::from_headers(&[&bytes]) {
                prop_assert!((1..=255).contains(&key.0.len()) && key.0.bytes().all(|b| b.is_ascii_graphic() && b != b',' && b != b'"'));
            }
        }
    }
}
