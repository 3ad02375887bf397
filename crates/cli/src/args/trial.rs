//! `demo` and `bench`.

use clap::Args;

use super::shared::Form;

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Database to play on, `sqlite://FILE` or `postgres://…` [default: a temporary SQLite file]
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// Channel to play on, or `all`
    #[arg(long, value_name = "NAME", default_value = "all")]
    pub(crate) channel: String,
    /// The sandbox's numbers follow from it [default: drawn, and printed]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Address of the running service
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub(crate) url: String,
    /// API key of a test tenant
    #[arg(long, value_name = "KEY", env = "PAYONCE_API_KEY", hide_env_values = true)]
    pub(crate) api_key: String,
    /// Requests to send
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) requests: u32,
    /// Requests under way at once
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) concurrency: u16,
    /// Channel to pay on
    #[arg(long, value_name = "NAME", default_value = "alipay")]
    pub(crate) channel: String,
    /// Method of the channel; the channel's first by default
    #[arg(long, value_name = "NAME")]
    pub(crate) method: Option<String>,
    /// Send every request with the same key and body: all but the first are replays
    #[arg(long)]
    pub(crate) replay: bool,
    #[command(flatten)]
    pub(crate) form: Form,
}
