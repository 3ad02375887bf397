//! Query parameters: each at most once, and none that nobody knows.

use std::collections::BTreeMap;

use payonce::http::Problem;

use super::fault::{invalid, unknown};

/// The parameters of a query.
#[derive(Debug)]
pub(crate) struct Query {
    values: BTreeMap<String, String>,
    asked: Vec<&'static str>,
}

impl Query {
    pub(crate) fn of(query: Option<&str>) -> Result<Self, Problem> {
        let mut values = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            if values.insert(name.to_string(), value.into_owned()).is_some() {
                return Err(invalid(&name, "may stand in the query only once"));
            }
        }
        Ok(Self { values, asked: Vec::new() })
    }

    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        self.asked.push(name);
        self.values.remove(name).filter(|value| !value.is_empty())
    }

    /// A parameter with a parser of its own.
    pub(crate) fn parsed<T>(&mut self, name: &'static str, rule: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        parse(&text).map(Some).ok_or_else(|| invalid(name, rule))
    }

    /// How many rows are wanted: 1–100, 20 by default.
    pub(crate) fn limit(&mut self) -> Result<usize, Problem> {
        let limit = self.parsed("limit", "must be 1 to 100", |text| text.parse().ok().filter(|limit| (1..=100).contains(limit)))?;
        Ok(limit.unwrap_or(20))
    }

    pub(crate) fn finish(self) -> Result<(), Problem> {
        match self.values.keys().next() {
            None => Ok(()),
            Some(name) => Err(unknown(name, &self.asked)),
        }
    }
}
