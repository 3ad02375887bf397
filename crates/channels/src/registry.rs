//! The channels that are built in: a line each.

use crate::alipay::Alipay;
use crate::contract::Adapter;

static ADAPTERS: &[&'static dyn Adapter] = &[&Alipay];

/// Every channel.
pub fn adapters() -> &'static [&'static dyn Adapter] {
    ADAPTERS
}

/// The channel of this public name.
pub fn adapter(name: &str) -> Option<&'static dyn Adapter> {
    adapters().iter().find(|adapter| adapter.name() == name).copied()
}
