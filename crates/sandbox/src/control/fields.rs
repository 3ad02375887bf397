//! Reads the members of a control call, one by one; what nobody asked for is refused.

use payonce_core::notification::RawRequest;
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::problem::Problem;

/// The members that are left to read, and those that were.
#[derive(Debug)]
pub(super) struct Fields {
    left: Map<String, Value>,
    read: Vec<&'static str>,
}

impl Fields {
    /// Of a JSON body.
    pub(super) fn of_body(raw: &RawRequest) -> Result<Self, Problem> {
        let hint = "send an object, like {\"channel\":\"alipay\"}";
        let value: Value = serde_json::from_slice(&raw.body)
            .map_err(|why| Problem::new(400, "invalid_json", format!("the body is not JSON: {why}"), hint))?;
        match value {
            Value::Object(left) => Ok(Self { left, read: Vec::new() }),
            _ => Err(Problem::new(400, "invalid_json", "the body is not an object", hint)),
        }
    }

    /// Of a query.
    pub(super) fn of_query(raw: &RawRequest) -> Result<Self, Problem> {
        let query = raw.path_and_query.split_once('?').map(|(_, query)| query).unwrap_or_default();
        let mut left = Map::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8().map(|text| text.into_owned());
            match (decoded(name), decoded(value)) {
                (Ok(name), Ok(value)) => {
                    // `channel=` asks for nothing in particular.
                    if !value.is_empty() {
                        left.insert(name, Value::String(value));
                    }
                }
                _ => return Err(Problem::new(400, "invalid_query", "the query is not UTF-8", "percent-encode UTF-8")),
            }
        }
        Ok(Self { left, read: Vec::new() })
    }

    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.read.push(name);
        self.left.remove(name).filter(|value| !value.is_null())
    }

    pub(super) fn optional_text(&mut self, name: &'static str) -> Result<Option<String>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
            Some(_) => Err(Problem::field(name, "must be a text that is not empty", "put it in quotes, or leave it out")),
        }
    }

    pub(super) fn text(&mut self, name: &'static str, hint: &str) -> Result<String, Problem> {
        self.optional_text(name)?.ok_or_else(|| Problem::field(name, "is required", hint))
    }

    pub(super) fn optional_integer(&mut self, name: &'static str, least: u64, most: u64) -> Result<Option<u64>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let fits = value.as_u64().filter(|number| (least..=most).contains(number));
        fits.map(Some).ok_or_else(|| Problem::field(name, format!("must be a whole number from {least} to {most}"), "send a JSON integer"))
    }

    pub(super) fn optional_choice<T: DeserializeOwned>(&mut self, name: &'static str, choices: &[&str]) -> Result<Option<T>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let known = value.as_str().is_some_and(|text| choices.contains(&text));
        let parsed = if known { serde_json::from_value(value).ok() } else { None };
        parsed.map(Some).ok_or_else(|| Problem::field(name, format!("must be one of: {}", choices.join(", ")), "mind the spelling"))
    }

    pub(super) fn choice<T: DeserializeOwned>(&mut self, name: &'static str, choices: &[&str]) -> Result<T, Problem> {
        self.optional_choice(name, choices)?.ok_or_else(|| Problem::field(name, "is required", format!("one of: {}", choices.join(", "))))
    }

    /// Nothing may be left.
    pub(super) fn end(self) -> Result<(), Problem> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(name) => Err(Problem::field(name.clone(), "is not known here", format!("known: {}", self.read.join(", ")))),
        }
    }
}
