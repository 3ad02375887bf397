//! `payonce account check`: opens the settings, then asks the channel about an order that cannot exist. "Not found" is the good answer:
//! the request was signed as the channel likes it, and the answer's signature was right.

use std::time::Duration;

use payonce_channels::contract::{Capability, OrderFacts};
use payonce_channels::driver;
use payonce_channels::transport::Deadlines;
use payonce_core::channel_ref::ChannelRef;
use payonce_core::money::{Currency, Money};
use payonce_core::outcome::Outcome;
use serde_json::json;
use tokio::time::Instant;

use crate::args::access::AccountCheck;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::site::Site;

/// How long a channel may take.
const DEADLINE: Duration = Duration::from_secs(20);

struct Checked {
    name: String,
    channel: String,
    good: bool,
    says: String,
}

pub(crate) async fn run(args: AccountCheck) -> Result<Exit, Fault> {
    let site = Site::open(&args.place).await?;
    let wanted = args.name.as_deref().map(super::named).transpose()?;
    let mut accounts = site.app.store().accounts().await?;
    accounts.retain(|account| wanted.as_ref().is_none_or(|name| &account.name == name));
    accounts.sort_by(|a, b| a.name.cmp(&b.name));
    if let (Some(name), true) = (&wanted, accounts.is_empty()) {
        return Err(Fault::no(format!("there is no account {name}")).hint("see `payonce account list`"));
    }
    let mut checked = Vec::with_capacity(accounts.len());
    for account in &accounts {
        let (good, says) = match site.app.ledger().accounts.required(&account.name).await {
            Err(why) => (false, why.to_string()),
            Ok(_) if args.offline => (true, "the settings are usable".to_owned()),
            Ok(opened) => ask(&site, opened.account.as_ref()).await,
        };
        checked.push(Checked { name: account.name.to_string(), channel: account.channel.to_string(), good, says });
    }
    Printer::new(args.form.json).list(
        &["NAME", "CHANNEL", "GOOD", "SAYS"],
        &checked,
        |row| json!({ "name": row.name, "channel": row.channel, "good": row.good, "says": row.says }),
        |row| vec![row.name.clone(), row.channel.clone(), if row.good { "yes" } else { "no" }.to_owned(), row.says.clone()],
    )?;
    Ok(if checked.iter().all(|row| row.good) { Exit::Done } else { Exit::No })
}

async fn ask(site: &Site, account: &dyn payonce_channels::contract::Account) -> (bool, String) {
    let now = site.app.clock().now();
    let Some(order) = nobodys_order(account.capability(), now, &*site.app.entropy()) else {
        return (true, "the settings are usable; the channel has nothing harmless to ask".to_owned());
    };
    let Some(call) = account.query(&order, now) else {
        return (true, "the settings are usable; the channel has no look-up".to_owned());
    };
    let end = Instant::now() + DEADLINE;
    let ran = driver::run(site.app.ledger().transport.as_ref(), call, Deadlines { write_by: end, answer_by: end }).await;
    match ran.outcome {
        Outcome::AbsentYet | Outcome::AbsentFinal => (true, "the channel answers, and its signature is right".to_owned()),
        Outcome::Waiting { .. }
        | Outcome::Paid(_)
        | Outcome::Authorized(_)
        | Outcome::Declined(_)
        | Outcome::DeclinedOpen(_)
        | Outcome::Closed => (false, "the channel knows an order that was just drawn: is this a real channel?".to_owned()),
        Outcome::NotAccepted(failure) => (false, format!("the channel refuses: {}", failure.message)),
        Outcome::InProgress => (false, "the channel asks to come back later".to_owned()),
        Outcome::NotSent(why) | Outcome::Unknown(why) => (false, why),
    }
}

/// An order that was never sent: its reference has just been drawn.
fn nobodys_order(capability: &Capability, now: payonce_core::Timestamp, entropy: &dyn payonce_core::Entropy) -> Option<OrderFacts> {
    let method = capability.methods.first()?;
    let currency = capability.currencies.first().and_then(|code| Currency::parse(code))?;
    Some(OrderFacts {
        channel_ref: ChannelRef::new(method.reference, now, entropy),
        channel_txn: None,
        method: method.name.to_owned(),
        amount: Money::new(capability.amount_range.0, currency),
    })
}
