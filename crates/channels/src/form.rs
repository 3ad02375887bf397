//! `application/x-www-form-urlencoded`, decoded once and strictly. In: bytes. Out: pairs of bytes in their order. Never: a repaired value,
//! or a name that stands there twice.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// Why bytes are no form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormFault {
    /// Nothing, a pair without `=`, or a `%` without two hex digits after it.
    #[error("not a form")]
    Malformed,
    /// One name twice: readers disagree on which copy wins.
    #[error("a parameter stands there twice")]
    Duplicate,
    /// More pairs than any channel sends.
    #[error("too many parameters")]
    TooMany,
}

/// A name and its value.
pub type Pair = (Vec<u8>, Vec<u8>);

const PAIRS_MAX: usize = 256;
const KEPT: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Decodes once.
pub fn decode(body: &[u8]) -> Result<Vec<Pair>, FormFault> {
    let mut pairs: Vec<Pair> = Vec::new();
    for piece in body.split(|b| *b == b'&') {
        let at = piece.iter().position(|b| *b == b'=').ok_or(FormFault::Malformed)?;
        let (name, value) = piece.split_at(at);
        let name = unescape(name).filter(|name| !name.is_empty()).ok_or(FormFault::Malformed)?;
        let value = value.get(1..).and_then(unescape).ok_or(FormFault::Malformed)?;
        if pairs.iter().any(|(seen, _)| *seen == name) {
            return Err(FormFault::Duplicate);
        }
        if pairs.len() == PAIRS_MAX {
            return Err(FormFault::TooMany);
        }
        pairs.push((name, value));
    }
    Ok(pairs)
}

/// Encodes; a space becomes `+`.
pub fn encode<N: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (N, V)>) -> String {
    let mut out = String::new();
    for (name, value) in pairs {
        if !out.is_empty() {
            out.push('&');
        }
        escape(name.as_ref(), &mut out);
        out.push('=');
        escape(value.as_ref(), &mut out);
    }
    out
}

fn escape(text: &str, out: &mut String) {
    for piece in percent_encode(text.as_bytes(), &KEPT) {
        out.push_str(if piece == "%20" { "+" } else { piece });
    }
}

fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => hex(*rest.next()?)? << 4 | hex(*rest.next()?)?,
            other => *other,
        });
    }
    Some(out)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decoding_happens_once_and_strictly() {
        let pairs = decode(b"a=%252B+x&b=&c=%E4%B8%AD%3D=").expect("a form");
        assert_eq!(pairs[0], (b"a".to_vec(), b"%2B x".to_vec()));
        assert_eq!(pairs[1], (b"b".to_vec(), Vec::new()));
        assert_eq!(pairs[2].1, "中==".as_bytes());
        for bad in ["", "a", "a=1&", "&a=1", "a=%2", "a=%zz", "=1"] {
            assert_eq!(decode(bad.as_bytes()), Err(FormFault::Malformed), "{bad:?}");
        }
        assert_eq!(decode(b"a=1&%61=2"), Err(FormFault::Duplicate));
        let many: Vec<String> = (0..300).map(|n| format!("k{n}=v")).collect();
        assert_eq!(decode(many.join("&").as_bytes()), Err(FormFault::TooMany));
    }

    proptest! {
        #[test]
        fn what_was_encoded_decodes_to_itself(values in proptest::collection::vec(".*", 1..8)) {
            let pairs: Vec<(String, String)> = values.into_iter().enumerate().map(|(n, v)| (format!("k{n}"), v)).collect();
            let back = decode(encode(pairs.iter().map(|(n, v)| (n, v))).as_bytes()).expect("a form");
            prop_assert!(back.iter().zip(&pairs).all(|(b, p)| b.0 == p.0.as_bytes() && b.1 == p.1.as_bytes()));
        }

        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }
    }
}
