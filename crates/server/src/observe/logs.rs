//! Logs on stderr, filtered and formatted as the configuration says.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::config::{Log, LogFormat};

/// Sets up the process's logs. A second call changes nothing. A filter that does not parse falls back to `info`, and says so.
pub fn init_logs(log: &Log) {
    let parsed = EnvFilter::try_new(&log.filter);
    let bad = parsed.is_err();
    let filter = parsed.unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_span_events(FmtSpan::NONE);
    let set = match log.format {
        LogFormat::Text => lines.compact().try_init(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(true).with_span_list(false).try_init(),
    };
    if bad && set.is_ok() {
        tracing::warn!("PAYONCE_LOG does not parse; logging at info");
    }
}
