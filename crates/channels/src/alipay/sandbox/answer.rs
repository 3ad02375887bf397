//! Answers: the node named after the method, and the signature over exactly its bytes.

use serde_json::{Map, Value, json};

use super::{Gateway, sign};
use crate::books::{Draft, Finish, Recognised, SideReply};

const TYPE: &str = "text/html;charset=utf-8";

/// A success with these members.
pub(super) fn success(members: Value) -> Draft {
    with_code("10000", "Success", members)
}

/// An answer with a code of its own.
pub(super) fn with_code(code: &str, msg: &str, members: Value) -> Draft {
    let mut node = json!({ "code": code, "msg": msg });
    if let (Value::Object(node), Value::Object(members)) = (&mut node, members) {
        node.extend(members);
    }
    Draft::Content(node)
}

/// A failure without further members.
pub(super) fn failure(code: &str, sub_code: &str, sub_msg: &str) -> Draft {
    failure_with(code, sub_code, sub_msg, json!({}))
}

/// A failure.
pub(super) fn failure_with(code: &str, sub_code: &str, sub_msg: &str, members: Value) -> Draft {
    let msg = match code {
        "20000" => "Service Currently Unavailable",
        "40001" => "Missing Required Arguments",
        "40002" => "Invalid Arguments",
        "40005" => "Call Limited",
        "40006" => "Insufficient Permissions",
        _ => "Business Failed",
    };
    let Draft::Content(mut node) = with_code(code, msg, members) else { return Draft::Content(json!({})) };
    node["sub_code"] = json!(sub_code);
    node["sub_msg"] = json!(sub_msg);
    Draft::Content(node)
}

/// Puts a draft into the gateway's form.
pub(super) fn finish(side: &Gateway, request: &Recognised, draft: Draft, how: Finish) -> SideReply {
    let node = match draft {
        Draft::Ready(reply) => return reply,
        Draft::Content(node) => node,
    };
    let method = request.content.get("method").and_then(Value::as_str).unwrap_or_default();
    let charset = request.content.get("charset").and_then(Value::as_str).unwrap_or_default();
    signed(side, &request.account, method, charset, &node, how)
}

/// The signed answer to a request of `account`; unsigned where nobody knows whose it is.
pub(super) fn signed(side: &Gateway, account: &str, method: &str, charset: &str, node: &Value, how: Finish) -> SideReply {
    let text = match how {
        Finish::Plain | Finish::BadSignature => node.to_string(),
        Finish::Awkward => awkward(node),
    };
    let bytes = encode(&text, charset);
    let name = if method.is_empty() { "error_response".to_owned() } else { format!("{}_response", method.replace('.', "_")) };
    let key = match how {
        Finish::Plain | Finish::Awkward => side.account(account).map(|account| &account.alipay),
        Finish::BadSignature => Some(&side.keys.forger),
    };
    let mut body = [b"{\"", name.as_bytes(), b"\":", bytes.as_slice()].concat();
    if let Some(signature) = key.and_then(|key| sign::sign_bytes(&bytes, key).ok()) {
        body.extend_from_slice(b",\"sign\":\"");
        body.extend_from_slice(signature.as_bytes());
        body.push(b'"');
    }
    body.push(b'}');
    // The gateway answers 200 whatever happened, and says that its JSON is HTML.
    SideReply::new(200, TYPE, body)
}

/// Text in the declared charset.
pub(super) fn encode(text: &str, charset: &str) -> Vec<u8> {
    let encoding = encoding_rs::Encoding::for_label(charset.as_bytes()).unwrap_or(encoding_rs::UTF_8);
    encoding.encode(text).0.into_owned()
}

/// Valid JSON of the same content that only a reader of raw bytes with a sound brace matcher verifies: members the other way round, white
/// space, braces and quotes inside texts, escapes where none are needed.
fn awkward(node: &Value) -> String {
    let empty = Map::new();
    let members = node.as_object().unwrap_or(&empty);
    let mut out = String::from("{ ");
    out.push_str(r#""awkward" : "one } \" two {{ \\\" three \\" "#);
    for (name, value) in members.iter().rev() {
        out.push_str(&format!(",\n\t\"{name}\" : {}", escaped(value)));
    }
    out.push_str("\r\n}");
    out
}

fn escaped(value: &Value) -> String {
    let mut out = String::new();
    for unit in value.to_string().encode_utf16() {
        match u8::try_from(unit).ok().filter(u8::is_ascii).map(char::from) {
            // An escaped slash is the one that changes nothing inside a text, and there is none outside of texts.
            Some('/') => out.push_str("\\/"),
            Some(plain) => out.push(plain),
            None => out.push_str(&format!("\\u{unit:04X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn awkward_text_is_the_same_json_and_awkward() {
        let node = json!({ "code": "10000", "subject": "双11 📱 \"a/b\" {", "list": [{ "x": "}" }] });
        let text = awkward(&node);
        let back: Value = serde_json::from_str(&text).expect("JSON");
        for (name, value) in node.as_object().expect("object") {
            assert_eq!(&back[name], value);
        }
        assert!(text.is_ascii());
        assert_ne!(text.matches('{').count(), text.matches('}').count());
        assert_ne!(back.to_string(), text);
    }
}
