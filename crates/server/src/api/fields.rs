//! The JSON door: a body becomes members that are taken one by one; what nobody took is unknown, and refused.
//!
//! Duplicate members, deep nesting and what is no JSON were refused by the tokenizer of the fingerprint before anything is read here, so no
//! reader of the body can see another one than the fingerprint saw.

use std::collections::BTreeMap;

use payonce::http::Problem;
use payonce_core::fingerprint::{self, Rules};
use payonce_core::id::MerchantRef;
use payonce_core::money::AMOUNT_MAX_MINOR;
use payonce_core::{AccountName, ChannelName, Timestamp};
use serde_json::{Map, Value};

use super::fault::{invalid, missing, refused, unknown};

/// The members of a request body.
#[derive(Debug)]
pub(crate) struct Fields {
    members: Map<String, Value>,
    asked: Vec<&'static str>,
}

impl Fields {
    /// Reads a body; an empty one has no members.
    pub(crate) fn of(body: &[u8], rules: &Rules) -> Result<Self, Problem> {
        if body.is_empty() {
            return Ok(Self { members: Map::new(), asked: Vec::new() });
        }
        fingerprint::check_json(body, rules)?;
        match serde_json::from_slice(body) {
            Ok(Value::Object(members)) => Ok(Self { members, asked: Vec::new() }),
            Ok(_) => Err(refused(400, "json_invalid", "The request body is not valid JSON", "The body must be one JSON object.")),
            Err(why) => Err(refused(400, "json_invalid", "The request body is not valid JSON", format!("{why}."))),
        }
    }

    /// A member; `null` counts as absent.
    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.asked.push(name);
        self.members.remove(name).filter(|value| !value.is_null())
    }

    /// Refuses what was not asked for.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        match self.members.keys().next() {
            None => Ok(()),
            Some(name) => Err(unknown(name, &self.asked)),
        }
    }

    /// A text of at most so many bytes. U+0000 is refused: no database column takes it.
    pub(crate) fn text(&mut self, name: &'static str, max_bytes: usize) -> Result<Option<String>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) if (1..=max_bytes).contains(&text.len()) && !text.contains('\0') => Ok(Some(text)),
            Some(_) => Err(invalid(name, format!("must be a text of 1 to {max_bytes} bytes without U+0000"))),
        }
    }

    /// The merchant's own number.
    pub(crate) fn merchant_ref(&mut self, name: &'static str) -> Result<Option<MerchantRef>, Problem> {
        const RULE: &str = "must be a text of 1 to 64 bytes without control characters";
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => MerchantRef::parse(&text).map(Some).ok_or_else(|| invalid(name, RULE)),
            Some(_) => Err(invalid(name, RULE)),
        }
    }

    /// The merchant's own number, which has to be there.
    pub(crate) fn required_merchant_ref(&mut self, name: &'static str) -> Result<MerchantRef, Problem> {
        self.merchant_ref(name)?.ok_or_else(|| missing(name, "your own number, a text of 1 to 64 bytes"))
    }

    /// An amount in minor units. Only an integer literal will do: a reader of numbers makes `1.0`, `1e2` and `-0` floats, and no float is taken.
    pub(crate) fn amount(&mut self, name: &'static str) -> Result<Option<i64>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let minor = match &value {
            Value::Number(number) if !number.is_f64() => number.as_i64().filter(|minor| (1..=AMOUNT_MAX_MINOR).contains(minor)),
            Value::Number(_) | Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
        };
        minor.map(Some).ok_or_else(|| {
            invalid(name, "must be a JSON integer of minor units, 1 to 10^15, such as 1990; 1.0, 1e2 and \"1990\" are not taken")
        })
    }

    pub(crate) fn flag(&mut self, name: &'static str) -> Result<bool, Problem> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(invalid(name, "must be true or false")),
        }
    }

    pub(crate) fn channel(&mut self, name: &'static str) -> Result<Option<ChannelName>, Problem> {
        let Some(text) = self.text(name, 64)? else { return Ok(None) };
        ChannelName::parse(&text).map(Some).ok_or_else(|| invalid(name, "must be a channel's name, such as alipay"))
    }

    pub(crate) fn account(&mut self, name: &'static str) -> Result<Option<AccountName>, Problem> {
        let Some(text) = self.text(name, 64)? else { return Ok(None) };
        AccountName::parse(&text).map(Some).ok_or_else(|| invalid(name, "must be an account's name: 1 to 64 of A-Z a-z 0-9 _ -"))
    }

    /// An absolute address.
    pub(crate) fn url(&mut self, name: &'static str) -> Result<Option<String>, Problem> {
        let Some(text) = self.text(name, 2048)? else { return Ok(None) };
        match url::Url::parse(&text) {
            Ok(_) => Ok(Some(text)),
            Err(why) => Err(invalid(name, format!("must be an absolute URL: {why}"))),
        }
    }

    pub(crate) fn moment(&mut self, name: &'static str) -> Result<Option<Timestamp>, Problem> {
        let Some(text) = self.text(name, 64)? else { return Ok(None) };
        let moment = Timestamp::parse_rfc3339(&text);
        moment.map(Some).ok_or_else(|| invalid(name, "must be a moment in RFC 3339 with its offset, such as 2026-03-08T02:30:00-05:00"))
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Result<Option<T>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let chosen = value.as_str().and_then(|text| choices.iter().find(|(word, _)| *word == text));
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        chosen.map(|(_, value)| Some(*value)).ok_or_else(|| invalid(name, format!("must be one of: {}", words.join(", "))))
    }

    /// An object that somebody else knows the rules of.
    pub(crate) fn object(&mut self, name: &'static str) -> Result<Value, Problem> {
        match self.take(name) {
            None => Ok(Value::Object(Map::new())),
            Some(object @ Value::Object(_)) => Ok(object),
            Some(_) => Err(invalid(name, "must be an object")),
        }
    }

    /// The merchant's own members: at most 50 texts of at most 500 bytes.
    pub(crate) fn metadata(&mut self, name: &'static str) -> Result<BTreeMap<String, String>, Problem> {
        const RULE: &str = "must be an object of at most 50 texts, each name 1 to 500 and each value at most 500 bytes, without U+0000";
        let members = match self.take(name) {
            None => return Ok(BTreeMap::new()),
            Some(Value::Object(members)) if members.len() <= 50 => members,
            Some(_) => return Err(invalid(name, RULE)),
        };
        let fits = |text: &str| text.len() <= 500 && !text.contains('\0');
        let checked = members.into_iter().map(|(key, value)| match value {
            Value::String(text) if fits(&text) && fits(&key) && !key.is_empty() => Some((key, text)),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
        });
        checked.collect::<Option<_>>().ok_or_else(|| invalid(name, RULE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(body: &str) -> Result<Fields, Problem> {
        Fields::of(body.as_bytes(), &Rules::default())
    }

    fn amount(token: &str) -> Result<Option<i64>, String> {
        let mut fields = fields(&format!("{{\"amount\":{token}}}")).map_err(|problem| problem.code.into_owned())?;
        fields.amount("amount").map_err(|problem| problem.code.into_owned())
    }

    #[test]
    fn b088_an_amount_is_an_integer_literal_in_range() {
        assert_eq!((amount("1"), amount("1000000000000000"), amount("null")), (Ok(Some(1)), Ok(Some(1_000_000_000_000_000)), Ok(None)));
        for bad in [
            "0",
            "-1",
            "-0",
            "1.0",
            "1e2",
            "1E2",
            "10e-1",
            "0.5",
            "1000000000000001",
            "-9223372036854775808",
            "18446744073709551615",
            "99999999999999999999",
            "\"5\"",
            "true",
            "[1]",
            "{}",
        ] {
            assert_eq!(amount(bad), Err("parameter_invalid".to_owned()), "{bad}");
        }
        for no_json in ["01", "+1", "1.", ".5", "0x1", "NaN", "1_0"] {
            assert_eq!(amount(no_json), Err("json_invalid".to_owned()), "{no_json}");
        }
    }

    #[test]
    fn b013_duplicate_members_are_refused_whatever_their_spelling() {
        for body in [r#"{"amount":1,"amount":99900}"#, r#"{"amount":1,"\u0061mount":1}"#, r#"{"metadata":{"a":"1","a":"2"}}"#] {
            assert_eq!(fields(body).expect_err("refused").code, "json_duplicate_member", "{body}");
        }
    }

    #[test]
    fn members_that_nobody_asked_for_are_refused_by_name() {
        let mut fields = fields(r#"{"order_id":"O1","session":"S1"}"#).expect("json");
        assert!(fields.merchant_ref("order_id").is_ok());
        let problem = fields.finish().expect_err("refused");
        assert_eq!((problem.status, problem.code.as_ref()), (400, "parameter_unknown"));
        assert!(problem.detail.starts_with("session is not known here. Known: order_id."), "{}", problem.detail);
    }

    #[test]
    fn metadata_has_its_limits() {
        let of = |value: String| fields(&format!("{{\"metadata\":{value}}}")).expect("json").metadata("metadata");
        assert_eq!(of("{\"a\":\"b\\u0001\u{1f600}\"}".to_owned()).expect("taken")["a"], "b\u{1}\u{1f600}");
        let many = |n: usize| format!("{{{}}}", (0..n).map(|i| format!("\"k{i}\":\"\"")).collect::<Vec<_>>().join(","));
        assert!(of(many(50)).is_ok());
        for bad in [
            many(51),
            "{\"a\":1}".to_owned(),
            "[]".to_owned(),
            "{\"a\":\"\\u0000\"}".to_owned(),
            format!("{{\"a\":\"{}\"}}", "x".repeat(501)),
        ] {
            assert!(of(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn b090_deep_nesting_is_refused() {
        assert_eq!(fields(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))).expect_err("refused").code, "body_too_large");
        assert_eq!(fields(&format!("{}{}", "[".repeat(1000), "]".repeat(1000))).expect_err("refused").code, "json_too_deep");
    }
}
