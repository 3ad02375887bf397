//! Suites shared by all stores and all channels, the memory store, private PostgreSQL clusters. For tests only.

pub mod build;
pub mod fault;
pub mod memory;
pub mod memory_records;
pub mod pgbouncer;
pub mod ports;
pub mod postgres;
mod run_dir;
pub mod suite;
mod sys;
pub mod tcp_fault;
