//! Which channel, and which set of credentials there.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A channel's name: `alipay`, `wechat`, `2c2p` … It names a folder in `channels`; no flow branches on it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChannelName(String);

/// A set of credentials at a channel. Unique in the whole installation, because the webhook path has no tenant.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AccountName(String);

macro_rules! name {
    ($name:ident) => {
        impl $name {
            /// 1–64 of `[A-Za-z0-9_-]`.
            pub fn parse(text: &str) -> Option<Self> {
                crate::id::name_is_fit(text).then(|| Self(text.to_owned()))
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

name!(ChannelName);
name!(AccountName);
