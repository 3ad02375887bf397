//! What is wrong with a control call: `application/problem+json` that names the field, the rule and the way out.

use payonce_channels::books::SideReply;
use serde_json::json;

/// A refusal of a control call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    status: u16,
    code: &'static str,
    field: Option<String>,
    rule: String,
    hint: String,
}

impl Problem {
    pub(crate) fn new(status: u16, code: &'static str, rule: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { status, code, field: None, rule: rule.into(), hint: hint.into() }
    }

    /// A field of the body or a query parameter is at fault.
    pub(crate) fn field(field: impl Into<String>, rule: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..Self::new(400, "invalid_field", rule, hint) }
    }

    /// Names the field that it is about.
    pub(crate) fn at(self, field: &str) -> Self {
        Self { field: Some(field.to_owned()), ..self }
    }

    /// The channel is not one of these.
    pub(crate) fn unknown_channel(channel: &str, known: &[&str]) -> Self {
        let rule = format!("`{channel}` is not a channel of this sandbox");
        Self { field: Some("channel".to_owned()), ..Self::new(404, "unknown_channel", rule, format!("it has: {}", known.join(", "))) }
    }

    pub(crate) fn no_such_path(path: &str, channels: &[&str]) -> Self {
        let path = path.split('?').next().unwrap_or_default();
        let hint = format!("channels are under /{}; control calls are listed by GET /_sandbox", channels.join(", /"));
        Self::new(404, "not_found", format!("nothing is at {path}"), hint)
    }

    pub(crate) fn too_large(limit_bytes: usize) -> Self {
        Self::new(413, "body_too_large", format!("a body has at most {limit_bytes} bytes"), "send less")
    }

    pub(crate) fn into_reply(self) -> SideReply {
        let title = match self.status {
            400 => "The call is not well-formed",
            404 => "Not found",
            405 => "Wrong method",
            409 => "Not in this state",
            413 => "Too large",
            501 => "Not built",
            _ => "Refused",
        };
        let body = json!({
            "type": "about:blank",
            "title": title,
            "status": self.status,
            "code": self.code,
            "detail": format!("{}: {}", self.field.as_deref().unwrap_or("call"), self.rule),
            "field": self.field,
            "rule": self.rule,
            "hint": self.hint,
        });
        SideReply::new(self.status, "application/problem+json", format!("{body}\n"))
    }
}
