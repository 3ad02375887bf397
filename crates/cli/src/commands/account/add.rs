//! `payonce account add`: settings are checked, sealed and stored. An account of the same name and tenant gets the new settings.

use std::io::Read as _;
use std::path::Path;

use payonce_channels::registry;
use payonce_core::channel::ChannelName;
use serde_json::{Value, json};

use crate::args::access::AccountAdd;
use crate::exit::{Exit, Fault};
use crate::printer::{Printer, talk};
use crate::site::{Site, tenant_named};

/// More than any channel's settings with its certificates.
const SETTINGS_MAX_BYTES: u64 = 256 * 1024;

pub(crate) async fn run(args: AccountAdd) -> Result<Exit, Fault> {
    let name = super::named(&args.name)?;
    let tenant = tenant_named(&args.tenant)?;
    let channel = ChannelName::parse(&args.channel).filter(|channel| registry::adapter(channel.as_str()).is_some());
    let Some(channel) = channel else {
        return Err(Fault::new(format!("there is no channel {}", args.channel)).hint("see `payonce account list --channels`"));
    };
    let settings = read(&args.settings)?;
    let site = Site::open_migrated(&args.place).await?;
    site.app.put_account(&name, &tenant, &channel, &settings).await?;
    let webhook = format!("/webhooks/{channel}/{name}");
    let json = json!({ "name": name, "tenant": tenant, "channel": channel, "webhook_path": webhook });
    Printer::new(args.form.json).either(&format!("{name} is stored"), &json)?;
    talk(format!("the channel reaches it at your public address and {webhook}"));
    Ok(Exit::Done)
}

fn read(file: &Path) -> Result<Value, Fault> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().take(SETTINGS_MAX_BYTES).read_to_string(&mut text)
    } else {
        std::fs::File::open(file).and_then(|open| open.take(SETTINGS_MAX_BYTES).read_to_string(&mut text))
    };
    read.map_err(|why| Fault::new(format!("cannot read {}: {why}", file.display())))?;
    // What serde quotes could be a key: only the place is told.
    serde_json::from_str(&text).map_err(|why| {
        Fault::new(format!("{} is no JSON (line {}, column {})", file.display(), why.line(), why.column()))
            .hint("the settings of each channel are described in its QUIRKS.md and in README.md")
    })
}
