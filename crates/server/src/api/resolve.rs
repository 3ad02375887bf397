//! `POST /v1/payments/{id}/resolve`, `POST /v1/refunds/{id}/resolve`: an operator ends an unknown, with evidence. Audited.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Request;
use payonce::Ending;
use payonce::http::Problem;
use payonce_core::failure::{MoneyMoved, Retry};
use payonce_core::id::RefundId;
use payonce_core::payment::{Payment, view as core_view};
use payonce_flows::resolve::{Resolved, Verdict};
use payonce_flows::{FlowFault, Ledger};
use serde_json::Value;

use super::door::Incoming;
use super::fault::{Fault, missing, payment_not_found, refund_not_found};
use super::guarded::{broke_off, json, nothing_happened};
use super::payments::attempt_unresolved;
use super::{Answered, Api, payment_id, view};

pub(crate) async fn payment(State(api): State<Arc<Api>>, Path(id): Path<String>, request: Request<Body>) -> Answered {
    let incoming = api.post(request, format!("/v1/payments/{id}/resolve")).await?;
    let id = payment_id(&id)?;
    let (verdict, evidence) = judgement(&api, &incoming)?;
    let (ledger, tenant) = (Arc::clone(&api.ledger), incoming.tenant.clone());
    api.guarded(&incoming, move |_| async move {
        match ledger.resolve_payment(&tenant, &id, verdict, &evidence).await {
            Ok(resolved) => ended(&ledger, resolved, &payment_not_found(), |payment| view::payment_answer(&ledger, 200, payment)),
            Err(fault) => broke_off(&fault),
        }
    })
    .await
}

pub(crate) async fn refund(State(api): State<Arc<Api>>, Path(id): Path<String>, request: Request<Body>) -> Answered {
    let incoming = api.post(request, format!("/v1/refunds/{id}/resolve")).await?;
    let id = RefundId::parse(&id).ok_or_else(refund_not_found)?;
    let (verdict, evidence) = judgement(&api, &incoming)?;
    let (ledger, tenant) = (Arc::clone(&api.ledger), incoming.tenant.clone());
    api.guarded(&incoming, move |_| async move {
        match ledger.resolve_refund_by_hand(&tenant, &id, verdict, &evidence).await {
            Ok(resolved) => ended(&ledger, resolved, &refund_not_found(), |payment| {
                let shown = payment.refund(&id).map_or(Value::Null, |refund| core_view::refund(payment, refund));
                Ok(json(200, &shown))
            }),
            Err(fault) => broke_off(&fault),
        }
    })
    .await
}

fn judgement(api: &Api, incoming: &Incoming) -> Result<(Verdict, String), Fault> {
    let mut fields = incoming.fields(api)?;
    let outcome = fields.choice("outcome", &[("succeeded", Verdict::Succeeded), ("never_happened", Verdict::NeverHappened)])?;
    let outcome = outcome.ok_or_else(|| missing("outcome", "succeeded or never_happened"))?;
    let evidence =
        fields.text("evidence", 2000)?.ok_or_else(|| missing("evidence", "what you found at the channel, for the audit trail"))?;
    fields.finish()?;
    Ok((outcome, evidence))
}

fn ended(
    ledger: &Ledger,
    resolved: Resolved,
    absent: &Problem,
    done: impl FnOnce(&Payment) -> Result<payonce::Answer, FlowFault>,
) -> Ending {
    let ended = match resolved {
        Resolved::Done(payment) => done(&payment).map(Ending::Keep),
        Resolved::NothingToResolve(payment) => {
            let detail = format!(
                "The outcome is known: the payment is {}. Only an unknown outcome or a review is ended by hand.",
                payment.status.as_str()
            );
            let problem = Problem::new(409, "nothing_to_resolve", "There is nothing unknown to resolve", detail);
            Ok(nothing_happened(&problem.money(MoneyMoved::No, Retry::Never)))
        }
        Resolved::Sending { payment, until } => attempt_unresolved(ledger, &payment, until),
        Resolved::Missing => Ok(nothing_happened(absent)),
    };
    ended.unwrap_or_else(|fault| broke_off(&fault))
}
