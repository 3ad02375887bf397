//! `serve` and `sandbox`.

use clap::Args;

use super::shared::Place;

#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Address to listen on; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR", env = "PAYONCE_LISTEN")]
    pub(crate) listen: Option<String>,
    /// Also run the simulated channels, with an account on each and a ready API key
    #[arg(long)]
    pub(crate) sandbox: bool,
    /// Do not touch the schema; refuse to start on an older one
    #[arg(long)]
    pub(crate) no_migrate: bool,
    /// End when stdin is closed: for a parent process that must not leave the service behind
    #[arg(long, hide = true)]
    pub(crate) until_stdin_closes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Sandbox {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9090")]
    pub(crate) listen: String,
    /// Numbers and ids follow from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Buyers pay as soon as they can
    #[arg(long)]
    pub(crate) auto_pay: bool,
    /// End when stdin is closed: for a parent process that must not leave the sandbox behind
    #[arg(long, hide = true)]
    pub(crate) until_stdin_closes: bool,
}
