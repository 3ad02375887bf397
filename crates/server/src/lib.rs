//! The service: the API, the webhook inbox, the workers, the metrics, and what holds them together.
//!
//! In: a [`config::Config`]. Out: an [`App`] to act on, or a [`Running`] service. No rule about money lives here: handlers parse, call one flow
//! and map its reply. [`app`](App) is the only place that names concrete stores, and [`config`] the only one that reads the environment.

mod api;
mod app;
pub mod config;
mod dashboard;
mod merchant;
pub mod observe;
mod pages;
mod serve;
mod webhook;
mod workers;

pub use app::{App, OpenedStore, Running, StartFault, drop_lent_schema, lend_schema, open_store, shutdown_signal};
