//! `apikey` and `account`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::shared::{Form, Place};

#[derive(Debug, Subcommand)]
pub(crate) enum Apikey {
    /// Make a key and show it, this once
    Create(ApikeyCreate),
    /// List keys: what they are for, never the keys themselves
    List(ApikeyList),
    /// Make a key stop working
    Revoke(ApikeyRevoke),
}

#[derive(Debug, Args)]
pub(crate) struct ApikeyCreate {
    /// Tenant that the key acts for; it comes to be with its first key
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: String,
    /// What the key is for
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) label: String,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Args)]
pub(crate) struct ApikeyList {
    /// Only keys of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Args)]
pub(crate) struct ApikeyRevoke {
    /// Handle of the key (`key_…`), as `apikey list` shows it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Account {
    /// Add an account, or give one new credentials
    Add(AccountAdd),
    /// List accounts: names and channels, never credentials
    List(AccountList),
    /// Open an account and ask its channel something harmless
    Check(AccountCheck),
}

#[derive(Debug, Args)]
pub(crate) struct AccountAdd {
    /// Name, unique in the installation: it is part of the webhook address
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Tenant that the account belongs to
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: String,
    /// Channel: see `payonce account list --channels`
    #[arg(long, value_name = "NAME")]
    pub(crate) channel: String,
    /// JSON file with the channel's settings; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: PathBuf,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Args)]
pub(crate) struct AccountList {
    /// Only accounts of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// List the channels that accounts can be made for instead
    #[arg(long)]
    pub(crate) channels: bool,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Args)]
pub(crate) struct AccountCheck {
    /// Account; all of them without it
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Check the settings only, without a call to the channel
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) form: Form,
}
