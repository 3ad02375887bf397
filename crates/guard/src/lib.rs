//! The guard: a request with a key runs once; its answer is replayed byte for byte.
//!
//! What comes in: a request with a tenant, a scope, a key and its canonical bytes, and the work to run. What goes out: the work's own answer
//! once it is stored, the kept answer of the first run, or a refusal with a reason. It never runs the same key twice at once, never runs
//! it again where the first outcome is unknown (unless the route says that it can resume), and never answers what is not stored.
//!
//! - [`Guard`] is the engine; `payonce serve`, the proxy and the tower layer are built on it.
//! - [`http`] is the tower layer for any HTTP service (feature `tower`).
//! - [`writer::GroupCommit`] writes to the store, many runs in one transaction.

pub mod answer;
mod cache;
pub mod claim;
mod guard;
#[cfg(feature = "tower")]
pub mod http;
mod lane;
mod local;
pub mod policy;
pub mod reply;
pub mod system;
pub mod writer;

pub use answer::Answer;
pub use guard::Guard;
pub use policy::{InFlight, Policy, PolicyFault, Route};
pub use reply::{Ending, Refusal, Reply, Request, Running};
