//! `payonce payment resolve ID`: an operator ends what nobody knows, with evidence. Takes a refund's id too.

use payonce_core::id::RefundId;
use payonce_core::payment::view;
use payonce_flows::resolve::{Resolved, Verdict};

use crate::args::book::{Outcome, PaymentResolve};
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::site::Site;

pub(crate) async fn run(args: PaymentResolve) -> Result<Exit, Fault> {
    if args.evidence.trim().is_empty() {
        return Err(Fault::new("--evidence is empty").hint("say how you know: a statement line, the channel's ticket number"));
    }
    let verdict = match args.outcome {
        Outcome::Succeeded => Verdict::Succeeded,
        Outcome::NeverHappened => Verdict::NeverHappened,
    };
    let site = Site::open(&args.place).await?;
    let ledger = site.app.ledger();
    let refund = RefundId::parse(&args.id);
    let resolved = match &refund {
        None => {
            let payment = site.payment(&args.whose, &args.id).await?;
            ledger.resolve_payment(&payment.tenant, &payment.id, verdict, &args.evidence).await?
        }
        Some(id) => {
            let (tenant, _) = crate::commands::refund::find(&site, &args.whose, &args.id).await?;
            ledger.resolve_refund_by_hand(&tenant, id, verdict, &args.evidence).await?
        }
    };
    match (resolved, refund) {
        (Resolved::Done(payment), None) => super::print(args.form.json, &payment)?,
        (Resolved::Done(payment), Some(id)) => {
            if let Some(row) = payment.refund(&id) {
                Printer::new(args.form.json).one(&view::refund(&payment, row))?;
            }
        }
        (Resolved::NothingToResolve(payment), _) => {
            return Err(Fault::no(format!("nothing of {} is unknown: it is {}", args.id, payment.status.as_str()))
                .hint("see `payonce payment show`; an open order is ended with `payonce payment close`"));
        }
        (Resolved::Sending { until, .. }, _) => {
            return Err(Fault::no(format!("a request may still be on its way to the channel until {until}")).hint("try again after that"));
        }
        (Resolved::Missing, _) => return Err(Fault::no(format!("there is no {}", args.id))),
    }
    Ok(Exit::Done)
}
