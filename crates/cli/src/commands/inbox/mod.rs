//! `payonce inbox …`

pub(crate) mod list;
pub(crate) mod retry;
pub(crate) mod show;

use payonce_core::id::InboxId;
use payonce_core::ports::inbox::InboxRow;
use serde_json::{Value, json};

use crate::args::shared::Whose;
use crate::exit::Fault;
use crate::site::Site;

/// A stored notification in the API's form. Its raw message stays sealed.
fn document(row: &InboxRow) -> Value {
    let event = &row.notification;
    json!({
        "id": row.id, "tenant": row.tenant, "channel": row.channel, "account": row.account, "status": row.status.as_str(),
        "payment": row.payment_id, "note": row.note, "channel_ref": event.channel_ref, "channel_status": event.status, "facts": event.facts,
        "amount": event.amount.map(|amount| amount.minor), "currency": event.amount.map(|amount| amount.currency),
        "received_at": row.received_at.to_string(), "tries": row.tries,
    })
}

/// The row of this id.
async fn find(site: &Site, whose: &Whose, id: &str) -> Result<InboxRow, Fault> {
    let missing = || Fault::no(format!("there is no notification {id}"));
    let parsed = InboxId::parse(id).ok_or_else(|| missing().hint("its id begins with inb_; see `payonce inbox list`"))?;
    for tenant in site.candidates(whose).await? {
        if let Some(row) = site.app.store().inbox_row(&tenant, &parsed).await? {
            return Ok(row);
        }
    }
    Err(missing())
}
