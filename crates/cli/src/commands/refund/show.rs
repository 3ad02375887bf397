//! `payonce refund show ID`

use payonce_core::payment::view;

use crate::args::book::One;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::site::Site;

pub(crate) async fn run(args: One) -> Result<Exit, Fault> {
    let site = Site::open(&args.place).await?;
    let (_, payment) = super::find(&site, &args.whose, &args.id).await?;
    let Some(row) = payment.refunds.iter().find(|row| row.id.as_str() == args.id) else {
        return Err(Fault::no(format!("there is no refund {}", args.id)));
    };
    Printer::new(args.form.json).one(&view::refund(&payment, row))?;
    Ok(Exit::Done)
}
