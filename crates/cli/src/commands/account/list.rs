//! `payonce account list`

use payonce_channels::contract::Adapter;
use payonce_channels::registry;
use payonce_core::ports::directory::Account;
use serde_json::{Value, json};

use crate::args::access::AccountList;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::site::{Site, tenant_named};

pub(crate) async fn run(args: AccountList) -> Result<Exit, Fault> {
    let printer = Printer::new(args.form.json);
    if args.channels {
        printer.list(&["CHANNEL", "METHODS", "CURRENCIES"], registry::adapters(), channel_document, channel_row)?;
        return Ok(Exit::Done);
    }
    let tenant = args.tenant.as_deref().map(tenant_named).transpose()?;
    let site = Site::open(&args.place).await?;
    let mut accounts = site.app.store().accounts().await?;
    accounts.retain(|account| tenant.as_ref().is_none_or(|tenant| &account.tenant == tenant));
    accounts.sort_by(|a, b| a.name.cmp(&b.name));
    printer.list(&["NAME", "TENANT", "CHANNEL", "CREATED"], &accounts, document, row)?;
    Ok(Exit::Done)
}

fn document(account: &Account) -> Value {
    json!({ "name": account.name, "tenant": account.tenant, "channel": account.channel, "created_at": account.created_at.to_string() })
}

fn row(account: &Account) -> Vec<String> {
    vec![account.name.to_string(), account.tenant.to_string(), account.channel.to_string(), account.created_at.to_string()]
}

fn channel_document(adapter: &&'static dyn Adapter) -> Value {
    let methods: Vec<&str> = adapter.capability().methods.iter().map(|method| method.name).collect();
    json!({ "channel": adapter.name(), "methods": methods, "currencies": adapter.capability().currencies })
}

fn channel_row(adapter: &&'static dyn Adapter) -> Vec<String> {
    let methods: Vec<&str> = adapter.capability().methods.iter().map(|method| method.name).collect();
    vec![adapter.name().to_owned(), methods.join(", "), adapter.capability().currencies.join(", ")]
}
