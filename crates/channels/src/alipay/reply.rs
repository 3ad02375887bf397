//! Replies of the gateway. In: bytes. Out: the node of the method whose signature fits the bytes as they came, or why nothing is known.
//! Never: a node that was parsed and written again before it was verified, a node without a signature, or one of two nodes.

use serde_json::{Map, Value};

use crate::crypto::base64;
use crate::crypto::rsa::VerifyingKey;
use crate::transport::WireReply;

/// A verified node.
#[derive(Debug)]
pub(super) struct Node {
    members: Map<String, Value>,
}

/// Why there is no node. All of them prove nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// HTTP 429.
    RateLimited,
    /// Anything else.
    Nothing(String),
}

impl Node {
    /// A member that is a text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.members.get(name).and_then(Value::as_str)
    }

    /// `code`.
    pub(super) fn code(&self) -> &str {
        self.text("code").unwrap_or_default()
    }

    /// `sub_code` without the family in front of it: `ACQ.`, or `AQC.` as Alipay writes in places.
    pub(super) fn sub_code(&self) -> &str {
        let sub_code = self.text("sub_code").unwrap_or_default();
        sub_code.strip_prefix("ACQ.").or_else(|| sub_code.strip_prefix("AQC.")).unwrap_or(sub_code)
    }

    /// The most telling code, as Alipay wrote it.
    pub(super) fn told_code(&self) -> &str {
        self.text("sub_code").filter(|code| !code.is_empty()).unwrap_or_else(|| self.code())
    }

    /// For people.
    pub(super) fn message(&self) -> String {
        self.text("sub_msg").or_else(|| self.text("msg")).unwrap_or_default().chars().take(200).collect()
    }

    #[cfg(test)]
    pub(super) fn of(members: Value) -> Self {
        Self { members: members.as_object().cloned().unwrap_or_default() }
    }
}

/// Verifies and reads the reply to `method`.
pub(super) fn read(wire: &WireReply, method: &str, keys: &[VerifyingKey]) -> Result<Node, Unread> {
    match wire.status {
        200 => {}
        429 => return Err(Unread::RateLimited),
        other => return Err(Unread::Nothing(format!("HTTP {other}"))),
    }
    let nothing = |why: &str| Unread::Nothing(why.to_owned());
    let charset = wire.header("content-type").and_then(charset);
    let encoding = match charset {
        None => encoding_rs::UTF_8,
        Some(label) => encoding_rs::Encoding::for_label(label.as_bytes()).ok_or_else(|| nothing("a charset that is not known"))?,
    };
    // Braces are matched in text: a second byte in GBK may look like one.
    let text =
        encoding.decode_without_bom_handling_and_without_replacement(&wire.body).ok_or_else(|| nothing("not text in its charset"))?;
    let members = members(&text).ok_or_else(|| nothing("not one JSON object"))?;

    let named = format!("{}_response", method.replace('.', "_"));
    let mut nodes = members.iter().filter(|(name, _)| *name == named || *name == "error_response");
    let mut signs = members.iter().filter(|(name, _)| *name == "sign");
    let (node, sign) = match (nodes.next(), signs.next(), nodes.next(), signs.next()) {
        (Some((_, node)), Some((_, sign)), None, None) => (*node, *sign),
        // An error is allowed to come without a signature, and then it is anybody's word.
        (Some(_), None, None, None) => return Err(Unread::Nothing(format!("an answer without a signature{}", hint(&members, &named)))),
        _ => return Err(nothing("not one answer and one signature")),
    };
    let signature = serde_json::from_str::<String>(sign).ok().and_then(|sign| base64::decode(sign.as_bytes()));
    let signature = signature.ok_or_else(|| nothing("a signature that is not Base64"))?;
    let fits = |text: &str| {
        let bytes = encoding.encode(text).0;
        keys.iter().any(|key| key.fits(&bytes, &signature))
    };
    let verified = if fits(node) {
        node.to_owned()
    } else {
        // Some of Alipay's servers escape slashes after they have signed. What is verified is then what is read.
        let unescaped = node.replace("\\/", "/");
        if unescaped == node || !fits(&unescaped) {
            return Err(nothing("a signature that does not fit"));
        }
        unescaped
    };
    match serde_json::from_str(&verified) {
        Ok(Value::Object(members)) => Ok(Node { members }),
        Ok(_) => Err(nothing("an answer that is no object: encrypted content is not read")),
        Err(_) => Err(nothing("an answer that is not JSON")),
    }
}

/// The code of an unverified node, for the operator alone.
fn hint(members: &[(String, &str)], named: &str) -> String {
    let node = members.iter().find(|(name, _)| name == named || name == "error_response").map(|(_, node)| *node);
    let node = node.and_then(|node| serde_json::from_str::<Value>(node).ok()).unwrap_or_default();
    let code = |name: &str| node.get(name).and_then(Value::as_str).unwrap_or_default().chars().take(64).collect::<String>();
    let shown: String = format!("{} {}", code("code"), code("sub_code")).chars().filter(|c| c.is_ascii_graphic() || *c == ' ').collect();
    if shown.trim().is_empty() { String::new() } else { format!(", saying {}", shown.trim()) }
}

fn charset(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    })
}

/// The members of the outermost object: names, and values exactly as they stand there.
fn members(text: &str) -> Option<Vec<(String, &str)>> {
    let mut rest = text.trim_matches(BLANK).strip_prefix('{')?.trim_start_matches(BLANK);
    let mut found = Vec::new();
    if let Some(after) = rest.strip_prefix('}') {
        return after.is_empty().then_some(found);
    }
    loop {
        let (name, after) = rest.split_at_checked(value_len(rest)?)?;
        let name = serde_json::from_str::<String>(name).ok()?;
        let after = after.trim_start_matches(BLANK).strip_prefix(':')?.trim_start_matches(BLANK);
        let (value, after) = after.split_at_checked(value_len(after)?)?;
        found.push((name, value));
        rest = after.trim_start_matches(BLANK);
        if let Some(after) = rest.strip_prefix('}') {
            return after.is_empty().then_some(found);
        }
        rest = rest.strip_prefix(',')?.trim_start_matches(BLANK);
    }
}

const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];

/// The length of the JSON value at the beginning of `text`. Understands texts and escapes; whether what is inside is JSON is left to the
/// parser that reads it later.
fn value_len(text: &str) -> Option<usize> {
    let (mut depth, mut in_text, mut escaped) = (0usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        if in_text {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    in_text = false;
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' if depth == 0 && at > 0 => return None,
            b'"' => in_text = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 1 => depth -= 1,
            b'}' | b']' if depth == 1 => return Some(at + 1),
            // The end of a number or a word at the outermost level.
            b'}' | b']' | b',' | b' ' | b'\t' | b'\r' | b'\n' | b':' if depth == 0 => return (at > 0).then_some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_cut_out_exactly_as_they_stand() {
        let text = "{ \"a\" : { \"x\":\"}\\\"{\", \"y\":[1,{}] } ,\"sign\":\"s\\/\",\"n\":12 , \"t\":true}\n";
        let found = members(text).expect("an object");
        let values: Vec<&str> = found.iter().map(|(_, value)| *value).collect();
        assert_eq!(values, ["{ \"x\":\"}\\\"{\", \"y\":[1,{}] }", "\"s\\/\"", "12", "true"]);
        for bad in ["", "{", "[]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{\"a\":1} x", "{\"a\":{}", "{\"a\":\"", "null", "{\"a\":1 2}"] {
            assert!(members(bad).is_none(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_object_is_taken_apart_as_the_library_does(texts in proptest::collection::vec(".*", 0..6), number: i64) {
            let node = json!({ "list": texts, "in": { "n": number, "t": texts.first() } });
            let whole = json!({ "node": node, "sign": texts.last(), "n": number }).to_string();
            let found = members(&whole).expect("an object");
            for (name, value) in found {
                let parsed: Value = serde_json::from_str(value).expect("a value");
                let whole: Value = serde_json::from_str(&whole).expect("an object");
                prop_assert_eq!(&parsed, &whole[name]);
            }
        }

        #[test]
        fn any_text_is_answered(text in ".*") {
            let _ = members(&text);
        }
    }
}
