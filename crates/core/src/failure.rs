//! Every failure answers: may money have moved (I10)?

use serde::{Deserialize, Serialize};

/// Whether money may have moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoneyMoved {
    /// Proved that none has.
    No,
    /// Proved that it has.
    Yes,
    /// Neither is proved. Never folded into the other two.
    Unknown,
}

/// Whether the caller may send the same request again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// With the same key, at once or after `Retry-After`.
    Safe,
    /// Only once a look-up has settled what became of the first.
    AfterLookup,
    /// Not as it is: something in the request or the set-up has to change.
    Never,
}

/// Why the channel did not take the money, as the merchant sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Ours, stable, snake_case: `declined`, `insufficient_funds`, `expired`, `channel_misconfigured` …
    pub code: String,
    /// The channel's own code, as it sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_code: Option<String>,
    /// For people. Holds no secret and no card data.
    pub message: String,
}

impl Failure {
    /// A failure with no code of the channel.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), channel_code: None, message: message.into() }
    }

    /// The same with the channel's own code.
    #[must_use]
    pub fn with_channel_code(mut self, code: impl Into<String>) -> Self {
        self.channel_code = Some(code.into());
        self
    }
}
