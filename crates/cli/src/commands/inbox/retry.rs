//! `payonce inbox retry ID`: settles a stored notification again, now.

use payonce_core::ports::inbox::InboxStatus;

use crate::args::book::One;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::site::Site;

pub(crate) async fn run(args: One) -> Result<Exit, Fault> {
    let site = Site::open(&args.place).await?;
    let row = super::find(&site, &args.whose, &args.id).await?;
    let came_to = site.app.ledger().retry_inbox(&row).await?;
    let after = super::find(&site, &args.whose, &args.id).await?;
    Printer::new(args.form.json).either(&format!("{} is {}", row.id, came_to.as_str()), &super::document(&after))?;
    Ok(match came_to {
        InboxStatus::Settled => Exit::Done,
        InboxStatus::Waiting | InboxStatus::Unmatched | InboxStatus::Foreign => Exit::No,
    })
}
