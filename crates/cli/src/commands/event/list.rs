//! `payonce event list`: the tenant's feed.

use payonce_core::id::EventId;
use payonce_core::ports::outbox::FeedItem;
use serde_json::{Value, json};

use crate::args::book::EventList;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::site::Site;

pub(crate) async fn run(args: EventList) -> Result<Exit, Fault> {
    let missing = |id: &str| {
        Fault::no(format!("there is no event {id}")).hint("--after takes an event's ID, which begins with evt_, not its position N")
    };
    let after = args.after.as_deref().map(|id| EventId::parse(id).ok_or_else(|| missing(id))).transpose()?;
    let site = Site::open(&args.place).await?;
    let mut feed = Vec::new();
    let mut known = after.is_none();
    for tenant in site.candidates(&args.whose).await? {
        // None: the event is another tenant's, and so is everything after it.
        let Some(items) = site.app.store().feed(&tenant, after.as_ref(), args.limit.rows()).await? else { continue };
        known = true;
        feed.extend(items);
    }
    if !known {
        return Err(missing(args.after.as_deref().unwrap_or_default()));
    }
    // Within a tenant the position is the order; between tenants there is none but the time.
    feed.sort_by(|a, b| (a.event.created_at, &a.event.tenant, a.position).cmp(&(b.event.created_at, &b.event.tenant, b.position)));
    feed.truncate(args.limit.rows());
    Printer::new(args.form.json).list(&["N", "TENANT", "ID", "TYPE", "PAYMENT", "CREATED", "DELIVERY"], &feed, document, row)?;
    Ok(Exit::Done)
}

fn document(item: &FeedItem) -> Value {
    let event = &item.event;
    json!({
        "position": item.position, "tenant": event.tenant, "id": event.id, "type": event.kind, "payment": event.payment_id,
        "created_at": event.created_at.to_string(), "delivery": item.delivery, "data": event.data,
    })
}

fn row(item: &FeedItem) -> Vec<String> {
    let event = &item.event;
    vec![
        item.position.to_string(),
        event.tenant.to_string(),
        event.id.to_string(),
        event.kind.as_str().to_owned(),
        event.payment_id.to_string(),
        event.created_at.to_string(),
        item.delivery.clone(),
    ]
}
