//! `payonce payment sync ID`

use crate::args::book::One;
use crate::exit::{Exit, Fault};
use crate::site::Site;

pub(crate) async fn run(args: One) -> Result<Exit, Fault> {
    let site = Site::open(&args.place).await?;
    let payment = site.payment(&args.whose, &args.id).await?;
    let after = site.app.ledger().sync(&payment.tenant, &payment.id).await?.unwrap_or(payment);
    super::print(args.form.json, &after)?;
    Ok(Exit::Done)
}
