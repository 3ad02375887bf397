//! Real processes: servers that are killed, stopped and doubled, on both stores, against a sandbox of its own.
//!
//! Built with the feature `failpoints` (as `make test` does): a binary without it would pass no failpoint, and the crash tests fail then.

mod cases;
mod crash;
mod http;
mod process;
mod two_nodes;
mod zombie;
