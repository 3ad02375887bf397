//! `payonce payment list`

use payonce_core::channel::ChannelName;
use payonce_core::id::{MerchantRef, PaymentId};
use payonce_core::payment::{Payment, PaymentStatus, view};
use payonce_core::ports::payments::Filter;
use serde_json::{Value, json};

use crate::args::book::PaymentList;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::site::Site;

pub(crate) async fn run(args: PaymentList) -> Result<Exit, Fault> {
    let filter = filter(&args)?;
    let site = Site::open(&args.place).await?;
    let mut found = Vec::new();
    for tenant in site.candidates(&args.whose).await? {
        found.extend(site.app.store().list(&tenant, &filter).await?);
    }
    // Ids sort by age.
    found.sort_by(|a, b| b.id.cmp(&a.id));
    found.truncate(args.limit.rows());
    let headings = ["ID", "TENANT", "ORDER", "AMOUNT", "STATUS", "CHANNEL", "CREATED"];
    Printer::new(args.form.json).list(&headings, &found, document, row)?;
    Ok(Exit::Done)
}

fn filter(args: &PaymentList) -> Result<Filter, Fault> {
    let wrong = |what: &str, value: &str, rule: &str| Fault::new(format!("{value:?} is no {what}")).hint(rule.to_owned());
    let statuses = PaymentStatus::ALL.map(PaymentStatus::as_str).join(", ");
    let order_id =
        args.order_id.as_deref().map(|text| MerchantRef::parse(text).ok_or_else(|| wrong("order number", text, "1 to 64 characters")));
    let status = args.status.as_deref().map(|text| PaymentStatus::parse(text).ok_or_else(|| wrong("status", text, &statuses)));
    let channel = args
        .channel
        .as_deref()
        .map(|text| ChannelName::parse(text).ok_or_else(|| wrong("channel", text, "see `payonce account list --channels`")));
    let after = args.after.as_deref().map(|text| PaymentId::parse(text).ok_or_else(|| wrong("payment id", text, "it begins with pay_")));
    Ok(Filter {
        order_id: order_id.transpose()?,
        status: status.transpose()?,
        channel: channel.transpose()?,
        after: after.transpose()?,
        limit: args.limit.rows(),
    })
}

fn document(payment: &Payment) -> Value {
    let mut document = view::payment(payment);
    document["tenant"] = json!(payment.tenant);
    document
}

fn row(payment: &Payment) -> Vec<String> {
    let channel = payment.newest().map_or_else(|| "-".to_owned(), |attempt| format!("{}/{}", attempt.channel, attempt.method));
    vec![
        payment.id.to_string(),
        payment.tenant.to_string(),
        payment.order_id.to_string(),
        payment.amount.to_string(),
        payment.status.as_str().to_owned(),
        channel,
        payment.created_at.to_string(),
    ]
}
