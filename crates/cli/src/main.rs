//! The binary `payonce`: parses what was typed, runs it, ends with 0 (done), 1 (the answer is no) or 2 (usage or environment fault).
//!
//! Data goes to stdout, talk to stderr. Nothing is decided here: rules live in `core`, flows in `flows`, the service in `server`.

mod args;
mod client;
mod commands;
mod demo;
mod ending;
mod exit;
mod printer;
mod progress;
mod site;

use std::process::ExitCode;

use clap::Parser as _;

use crate::exit::{Exit, Fault};

fn main() -> ExitCode {
    // Two crypto libraries could be linked by accident; one is chosen, before anybody makes a TLS configuration. Err: it was chosen already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    // Usage faults end here with 2, --help and --version with 0.
    let cli = args::Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => return end(Err(Fault::new(format!("cannot start: {why}")))),
    };
    let came_to = runtime.block_on(commands::run(cli.command));
    // A read of stdin that is under way would hold the process until somebody types.
    runtime.shutdown_background();
    end(came_to)
}

fn end(came_to: Result<Exit, Fault>) -> ExitCode {
    match came_to {
        Ok(exit) => exit.into(),
        Err(fault) => {
            printer::complain(&fault);
            fault.exit.into()
        }
    }
}
