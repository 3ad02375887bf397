//! `payonce inbox show ID`

use crate::args::book::One;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::site::Site;

pub(crate) async fn run(args: One) -> Result<Exit, Fault> {
    let site = Site::open(&args.place).await?;
    let row = super::find(&site, &args.whose, &args.id).await?;
    Printer::new(args.form.json).one(&super::document(&row))?;
    Ok(Exit::Done)
}
