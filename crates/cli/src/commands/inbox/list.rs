//! `payonce inbox list`

use payonce_core::ports::inbox::{InboxRow, InboxStatus};

use crate::args::book::InboxList;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::site::Site;

pub(crate) async fn run(args: InboxList) -> Result<Exit, Fault> {
    let status = match &args.status {
        None => None,
        Some(text) => Some(InboxStatus::parse(text).ok_or_else(|| {
            Fault::new(format!("{text:?} is no status of a notification")).hint(InboxStatus::ALL.map(InboxStatus::as_str).join(", "))
        })?),
    };
    let site = Site::open(&args.place).await?;
    let mut rows = Vec::new();
    for tenant in site.candidates(&args.whose).await? {
        rows.extend(site.app.store().inbox_list(&tenant, status, args.limit.rows()).await?);
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.received_at));
    rows.truncate(args.limit.rows());
    let headings = ["ID", "TENANT", "ACCOUNT", "SAYS", "STATUS", "PAYMENT", "RECEIVED"];
    Printer::new(args.form.json).list(&headings, &rows, super::document, row)?;
    Ok(Exit::Done)
}

fn row(row: &InboxRow) -> Vec<String> {
    let payment = row.payment_id.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    vec![
        row.id.to_string(),
        row.tenant.to_string(),
        row.account.to_string(),
        row.notification.status.clone(),
        row.status.as_str().to_owned(),
        payment,
        row.received_at.to_string(),
    ]
}
