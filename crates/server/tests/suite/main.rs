//! The service over real HTTP: SQLite, the sandbox, a merchant that listens.

mod callbacks;
mod client;
mod dashboard;
mod door;
mod keys;
mod life;
mod merchant;
mod notifications;
mod orders;
mod place;
mod refunds;
