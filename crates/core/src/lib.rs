//! The rules of payonce and the ports it needs: no I/O, no clock, no randomness.
//!
//! What comes in: values that an edge has parsed. What goes out: decisions and [`payment::Change`]s that a store applies.
//! It never opens a socket or a file, reads no clock and no environment, and draws no random number: time and chance come
//! in through [`clock::Clock`] and [`clock::Entropy`].

pub mod attempt;
pub mod channel;
pub mod channel_ref;
pub mod clock;
pub mod event;
pub mod failure;
pub mod fingerprint;
pub mod id;
pub mod key;
pub mod money;
pub mod notification;
pub mod outcome;
pub mod payment;
pub mod ports;
pub mod record;
pub mod refund;
pub mod secret;

pub use channel::{AccountName, ChannelName};
pub use clock::{Clock, Entropy, Timestamp};
pub use money::{Currency, Money};
