//! What a story needs to know of a channel: how money is taken at once, how a buyer pays later, and what else there is to switch to.

use serde_json::{Value, json};

/// A channel's part in the stories.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// The channel.
    pub(super) channel: &'static str,
    /// Takes the money within the request itself, so that a repeat would be new money.
    pub(super) at_once: &'static str,
    /// With these options.
    pub(super) at_once_options: fn() -> Value,
    /// Waits for the buyer.
    pub(super) by_buyer: &'static str,
    /// Another method that waits for the buyer, who opens `action.url`.
    pub(super) other: &'static str,
    /// The currency.
    pub(super) currency: &'static str,
}

/// The channels that have a part, in the order in which they play.
pub(super) const PARTS: &[Part] = &[Part {
    channel: "alipay",
    at_once: "barcode",
    at_once_options: || json!({ "auth_code": "28763443825664394" }),
    by_buyer: "qr",
    other: "page",
    currency: "CNY",
}];
