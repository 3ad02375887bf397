//! One file per flow: load, decide, apply.
//!
//! What comes in: a validated command, verified bytes, or a tick. What goes out: a reply for the edge, or a report. A flow never names an
//! HTTP framework, writes SQL, holds a transaction over a socket, or calls another flow: flows meet in tables.

pub mod accounts;
pub mod charge;
pub mod close;
pub mod ledger;
pub mod merchant;
pub mod publish;
pub mod receive;
pub mod reconcile;
pub mod refund;
pub mod resolve;
pub mod sealed_store;
mod send;
pub mod settle;
pub mod sweep;
pub mod switch;

pub use ledger::{FlowFault, Ledger, Timing};
