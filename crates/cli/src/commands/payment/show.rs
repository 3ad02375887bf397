//! `payonce payment show ID`: everything that is known of a payment, with its timeline.

use payonce_core::event::Event;
use payonce_core::payment::change::AuditEntry;
use payonce_core::payment::{Payment, view};
use serde_json::{Value, json};

use crate::args::book::One;
use crate::exit::{Exit, Fault};
use crate::printer::{Printer, table};
use crate::site::Site;

pub(crate) async fn run(args: One) -> Result<Exit, Fault> {
    let site = Site::open(&args.place).await?;
    let payment = site.payment(&args.whose, &args.id).await?;
    let store = site.app.store();
    let timeline = store.timeline(&payment.tenant, &payment.id).await?;
    let events = store.events_of(&payment.tenant, &payment.id).await?;
    let text = text(&payment, &timeline, &events);
    Printer::new(args.form.json).either(&text, &document(&payment, &timeline, &events))?;
    Ok(Exit::Done)
}

fn document(payment: &Payment, timeline: &[AuditEntry], events: &[(Event, String)]) -> Value {
    let mut document = view::payment(payment);
    document["tenant"] = json!(payment.tenant);
    document["refunds"] = payment.refunds.iter().map(|refund| view::refund(payment, refund)).collect();
    document["timeline"] = timeline
        .iter()
        .map(
            |entry| json!({ "n": entry.n, "at": entry.at.to_string(), "kind": entry.kind, "source": entry.source, "detail": entry.detail }),
        )
        .collect();
    document["events"] = events
        .iter()
        .map(|(event, delivery)| json!({ "id": event.id, "type": event.kind, "created_at": event.created_at.to_string(), "delivery": delivery }))
        .collect();
    document
}

fn text(payment: &Payment, timeline: &[AuditEntry], events: &[(Event, String)]) -> String {
    let mut parts = vec![head(payment)];
    let attempts = payment.attempts.iter().map(|row| {
        let failure = row.failure.as_ref().map_or_else(String::new, |failure| failure.message.clone());
        vec![
            row.id.to_string(),
            format!("{}/{}", row.channel, row.method),
            row.status.as_str().to_owned(),
            row.channel_ref.as_str().to_owned(),
            failure,
        ]
    });
    parts.push(table(&["ATTEMPT", "CHANNEL", "STATUS", "REFERENCE", "FAILURE"], attempts));
    if !payment.refunds.is_empty() {
        let refunds = payment.refunds.iter().map(|row| {
            let own = row.refund_id.as_ref().map_or("-", |id| id.as_str());
            vec![
                row.id.to_string(),
                own.to_owned(),
                row.amount.to_string(),
                row.status.as_str().to_owned(),
                row.channel_ref.as_str().to_owned(),
            ]
        });
        parts.push(table(&["REFUND", "OWN NUMBER", "AMOUNT", "STATUS", "REFERENCE"], refunds));
    }
    if !events.is_empty() {
        let rows = events.iter().map(|(event, delivery)| {
            vec![event.id.to_string(), event.kind.as_str().to_owned(), event.created_at.to_string(), delivery.clone()]
        });
        parts.push(table(&["EVENT", "TYPE", "CREATED", "DELIVERY"], rows));
    }
    let entries = timeline.iter().map(|entry| {
        let source = entry.source.map(|source| json!(source)).and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
        vec![entry.at.to_string(), entry.kind.clone(), source, entry.detail.to_string()]
    });
    parts.push(table(&["AT", "WHAT", "SOURCE", "DETAIL"], entries));
    parts.join("\n\n")
}

fn head(payment: &Payment) -> String {
    let mut lines = vec![
        format!("payment   {}", payment.id),
        format!("tenant    {}", payment.tenant),
        format!("order     {}", payment.order_id),
        format!("amount    {}", payment.amount),
        format!("status    {}", payment.status.as_str()),
        format!("captured  {}", payment.captured()),
        format!("refunded  {}", payment.refunded()),
    ];
    if let Some(review) = &payment.review {
        lines.push(format!("review    {}: {}", review.code, review.detail));
    }
    lines.extend(payment.surpluses.iter().map(|row| format!("surplus   {} ({})", row.amount, row.channel_txn)));
    lines.push(format!("created   {}", payment.created_at));
    lines.push(format!("updated   {}", payment.updated_at));
    lines.join("\n")
}
