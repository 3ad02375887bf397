//! Runs the vector files: every notification and every request of every channel that is built. A channel that is not built yet is named
//! in the output. The folder is `PAYONCE_VECTORS`, else this crate's own copy.

mod alipay;
mod format;
mod run;

use std::sync::Arc;

use payonce_channels::contract::Account;
use payonce_channels::registry;

pub(crate) use alipay::settings as alipay_settings;
pub(crate) use format::{Case, File};

/// What a channel adds to the general runner.
pub(crate) struct Under {
    /// The file's name without `.json`.
    pub(crate) file: &'static str,
    /// An account made of the file's keys and own facts.
    pub(crate) account: fn(&File) -> Arc<dyn Account>,
    /// Checks one request; the channel's own format.
    pub(crate) request: fn(&File, &serde_json::Value),
}

/// The channels that can be run: one line each.
pub(crate) const BUILT: &[(&str, Under)] = &[("alipay", alipay::UNDER)];

#[test]
fn vectors_of_every_built_channel() {
    let mut files = format::names();
    files.sort();
    assert!(!files.is_empty(), "no vector files");
    for name in files {
        let file = File::load(&name);
        match BUILT.iter().find(|(_, under)| under.file == name) {
            Some((_, under)) => println!("vectors {name}: {}", run::run(&file, under)),
            None => {
                println!("vectors {name}: not built: {} notifications, {} requests left out", file.notifications.len(), file.requests.len())
            }
        }
    }
}

#[test]
fn vectors_are_run_for_every_channel_of_the_registry() {
    for adapter in registry::adapters() {
        assert!(
            BUILT.iter().any(|(channel, _)| *channel == adapter.name()),
            "{} is built and no vector file is run for it",
            adapter.name()
        );
    }
}
