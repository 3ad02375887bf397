//! The tower layer: `Idempotency-Key` semantics for any HTTP service, and the problem bodies that payonce answers with.
//!
//! ```no_run
//! # fn with(guard: payonce::Guard) -> axum::Router {
//! use payonce::http::{GuardLayer, Preset};
//!
//! axum::Router::new()
//!     .route("/charges", axum::routing::post(|| async { (axum::http::StatusCode::CREATED, "{}") }))
//!     .layer(GuardLayer::new(guard).preset(Preset::ietf()))
//! # }
//! ```
//!
//! The layer claims before the handler sees the request, so it cannot know the body's rules: a handler that refuses a request before anything
//! happened marks its response with [`NothingHappened`], and the key is free again. Anything below 500 is otherwise kept, anything from 500
//! on is parked. Put authentication and rate limits outside of the layer, and compression too.
//!
//! Guarded requests and answers are held in memory up to their limits; a longer answer is streamed on, and only a marker of it is kept.

mod body;
mod future;
mod layer;
mod preset;
mod problem;
mod replay;
mod service;

pub use body::{GuardedBody, ReplyBody};
pub use future::GuardFuture;
pub use layer::GuardLayer;
pub use preset::{ErrorForm, Keep, KeySource, Preset};
pub use problem::Problem;
pub use replay::{plain, replayed};
pub use service::GuardService;

/// A handler puts this into its response's extensions when it refused the request before anything happened: the key is released, and
/// the answer is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NothingHappened;

/// A handler puts this into its response's extensions when it does not know what happened: the key is parked, whatever the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MayHaveHappened;

/// A handler finds this in its request's extensions: how it came to run.
pub use crate::reply::Running;
