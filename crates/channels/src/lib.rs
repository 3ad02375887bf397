//! The channels' adapters: pure translation between a channel's wire format and the core's outcomes.
//!
//! What comes in: a stored order, or a message of the channel. What goes out: a [`contract::Call`] that one driver runs over one
//! [`transport::Transport`], or verified facts. An adapter holds no state beyond its account's settings, does no I/O and sees no store.
//!
//! Adding a channel is one folder and one line in [`registry`].

pub mod alipay;
pub mod books;
pub mod contract;
pub mod crypto;
pub mod driver;
pub mod form;
pub mod registry;
pub mod settings;
pub mod transport;
