//! What can be typed: one file per noun, no behaviour. Flags beat the environment, which beats the configuration file.

pub(crate) mod access;
pub(crate) mod book;
pub(crate) mod service;
pub(crate) mod shared;
pub(crate) mod trial;
pub(crate) mod work;

use clap::{Parser, Subcommand};

/// Makes a payment happen once: a guard between your backend and its payment channels.
#[derive(Debug, Parser)]
#[command(name = "payonce", version, propagate_version = false, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the service
    Serve(service::Serve),
    /// Run the simulated channels
    Sandbox(service::Sandbox),
    /// Play the failure stories against a real service and count the money
    Demo(trial::Demo),
    /// Bring the database schema up; safe to repeat, safe on several nodes at once
    Migrate(work::Migrate),
    /// Check database, clock, keys, accounts, webhook addresses and configuration
    Doctor(work::Doctor),
    /// API keys of tenants
    #[command(subcommand)]
    Apikey(access::Apikey),
    /// Sets of credentials at channels
    #[command(subcommand)]
    Account(access::Account),
    /// Look at payments and act on them
    #[command(subcommand)]
    Payment(book::Payment),
    /// Look at refunds
    #[command(subcommand)]
    Refund(book::Refund),
    /// Look at idempotency keys and release stuck ones
    #[command(subcommand)]
    Key(book::Key),
    /// Look at stored notifications and settle them again
    #[command(subcommand)]
    Inbox(book::Inbox),
    /// What merchants are told
    #[command(subcommand)]
    Event(book::Event),
    /// Ask channels about everything that is due
    Reconcile(work::Reconcile),
    /// Remove what has served its time
    Sweep(work::Sweep),
    /// Put load on a running service
    Bench(trial::Bench),
}
