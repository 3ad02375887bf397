//! `payonce payment close ID`: only what the channel confirms counts as closed.

use payonce_flows::close::Ended;

use crate::args::book::One;
use crate::exit::{Exit, Fault};
use crate::printer::talk;
use crate::site::Site;

pub(crate) async fn run(args: One) -> Result<Exit, Fault> {
    let site = Site::open(&args.place).await?;
    let payment = site.payment(&args.whose, &args.id).await?;
    let ended = site.app.ledger().close(&payment.tenant, &payment.id).await?;
    let (after, exit) = match ended {
        None => return Err(Fault::no(format!("there is no payment {}", args.id))),
        Some(Ended::Dead(after)) => (after, Exit::Done),
        Some(Ended::Money(after)) => {
            talk("paying won: the payment has money and stays as it is");
            (after, Exit::No)
        }
        Some(Ended::Unresolved { payment: after, retry_at }) => {
            talk(format!("an attempt may still charge; try again after {retry_at}"));
            (after, Exit::No)
        }
    };
    super::print(args.form.json, &after)?;
    Ok(exit)
}
