//! Identifiers: a prefix that says what they name, then a UUIDv7 in hex, so that they sort by the time they were made.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::{Clock, Entropy, Timestamp, random};

/// Draws identifiers of every kind from one clock and one source of randomness.
pub fn uuid_v7(clock: &dyn Clock, entropy: &dyn Entropy) -> uuid::Uuid {
    uuid_v7_at(clock.now(), random(entropy))
}

/// A UUIDv7 of this moment and these random bytes.
pub fn uuid_v7_at(now: Timestamp, random: [u8; 10]) -> uuid::Uuid {
    uuid::Builder::from_unix_timestamp_millis(u64::try_from(now.0).unwrap_or(0), &random).into_uuid()
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// What every such id begins with.
            pub const PREFIX: &'static str = $prefix;

            /// A new one.
            pub fn new(clock: &dyn Clock, entropy: &dyn Entropy) -> Self {
                Self(format!(concat!($prefix, "{}"), uuid_v7(clock, entropy).simple()))
            }

            /// One that follows from a digest instead of being drawn.
            pub fn derived(digest: &[u8; 32]) -> Self {
                Self(format!(concat!($prefix, "{}"), hex::encode(&digest[..16])))
            }

            /// Parses one that was given out before: the prefix and 32 lower-case hex digits.
            pub fn parse(text: &str) -> Option<Self> {
                let hex = text.strip_prefix($prefix)?;
                (hex.len() == 32 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
                    .then(|| Self(text.to_owned()))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// A payment: our aggregate for one order.
    PaymentId, "pay_");
id!(
    /// One try on one channel.
    AttemptId, "att_");
id!(
    /// Money back, or a capture's reversal, with a reference of its own.
    RefundId, "rfd_");
id!(
    /// One capture of an authorised attempt.
    CaptureId, "cap_");
id!(
    /// Money that came in beside the payment it belongs to.
    SurplusId, "sur_");
id!(
    /// What the merchant is told, once.
    EventId, "evt_");
id!(
    /// A verified notification that was stored.
    InboxId, "inb_");
id!(
    /// An API key's public handle; not the key itself.
    ApiKeyId, "key_");

/// A merchant of this installation. 1–64 of `[A-Za-z0-9_-]`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TenantId(String);

impl TenantId {
    /// Parses a tenant's name.
    pub fn parse(text: &str) -> Option<Self> {
        name_is_fit(text).then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// 1–64 of `[A-Za-z0-9_-]`: the rule for names that operators choose.
pub(crate) fn name_is_fit(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// The merchant's own number for an order, refund or capture: 1–64 bytes, compared byte for byte, no control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MerchantRef(String);

impl MerchantRef {
    /// Parses the merchant's own number.
    pub fn parse(text: &str) -> Option<Self> {
        ((1..=64).contains(&text.len()) && !text.chars().any(char::is_control)).then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MerchantRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for MerchantRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
