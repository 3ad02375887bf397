//! `payonce event list`: the tenant's feed.

use payonce_core::id::EventId;
use payonce_core::ports::outbox::FeedItem;
use serde_json::{Value, json};

use crate::args::book::EventList;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::site::Site;

pub(crate) async fn run(args: EventList) -> Result<Exit, Fault> {
    let missing = |id: &str| Fault::no(format!("there is no event {id}")).hint("an event's id begins with evt_");
    let after = args.after.as_deref().map(|id| EventId::parse(id).ok_or_else(|| missing(id))).transpose()?;
    let site = Site::open(&args.place).await?;
    let tenant = site.tenant(&args.whose).await?;
    let Some(feed) = site.app.store().feed(&tenant, after.as_ref(), args.limit.rows()).await? else {
        return Err(missing(args.after.as_deref().unwrap_or_default()));
    };
    Printer::new(args.form.json).list(&["N", "ID", "TYPE", "PAYMENT", "CREATED", "DELIVERY"], &feed, document, row)?;
    Ok(Exit::Done)
}

fn document(item: &FeedItem) -> Value {
    let event = &item.event;
    json!({
        "position": item.position, "id": event.id, "type": event.kind, "payment": event.payment_id,
        "created_at": event.created_at.to_string(), "delivery": item.delivery, "data": event.data,
    })
}

fn row(item: &FeedItem) -> Vec<String> {
    let event = &item.event;
    vec![
        item.position.to_string(),
        event.id.to_string(),
        event.kind.as_str().to_owned(),
        event.payment_id.to_string(),
        event.created_at.to_string(),
        item.delivery.clone(),
    ]
}
