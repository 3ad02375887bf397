//! The stories, by what goes wrong. Each plays against the public API; the verdict is counted elsewhere.

pub(super) mod change;
pub(super) mod charge;
pub(super) mod notify;
pub(super) mod refund;
