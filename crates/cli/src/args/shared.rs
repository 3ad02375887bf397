//! Arguments that many commands share.

use std::path::PathBuf;

use clap::Args;

/// Which database, and where the configuration is.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Place {
    /// Configuration file
    #[arg(long, value_name = "FILE", env = "PAYONCE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// `sqlite://FILE` or `postgres://…` [default: sqlite://payonce.db]
    #[arg(long, value_name = "URL", env = "PAYONCE_DATABASE_URL", hide_env_values = true)]
    pub(crate) database: Option<String>,
}

/// Whose.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Whose {
    /// Tenant; everybody without it
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

/// In which form.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Form {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How many.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Limit {
    /// At most so many, 1 to 100
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) limit: u16,
}

impl Limit {
    pub(crate) fn rows(self) -> usize {
        usize::from(self.limit)
    }
}
