//! `POST /v1/payments/{id}/refunds`, `GET /v1/payments/{id}/refunds`, `GET /v1/refunds/{id}`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Request};
use payonce::http::Problem;
use payonce::{Answer, Ending};
use payonce_core::failure::{MoneyMoved, Retry};
use payonce_core::id::{RefundId, TenantId};
use payonce_core::payment::refunds::RefundRefusal;
use payonce_core::payment::{Payment, view};
use payonce_flows::refund::{Reply, Wanted};
use serde_json::{Value, json};

use super::fault::{Fault, against_rules, payment_not_found, refund_not_found, store};
use super::guarded::{broke_off, json as json_answer, located, nothing_happened};
use super::{Answered, Api, payment_id, read_answer};

pub(crate) async fn create(State(api): State<Arc<Api>>, Path(id): Path<String>, request: Request<Body>) -> Answered {
    let incoming = api.post(request, format!("/v1/payments/{id}/refunds")).await?;
    let id = payment_id(&id)?;
    let mut fields = incoming.fields(&api)?;
    let wanted = Wanted {
        tenant: incoming.tenant.clone(),
        payment: id,
        refund_id: fields.required_merchant_ref("refund_id")?,
        amount_minor: fields.amount("amount")?,
        reason: fields.text("reason", 256)?,
    };
    fields.finish()?;
    let (ledger, caller) = (Arc::clone(&api.ledger), incoming.caller());
    api.guarded(&incoming, move |_| async move {
        match ledger.refund(&wanted, &caller).await {
            Ok(reply) => refunded(&reply),
            Err(fault) => broke_off(&fault),
        }
    })
    .await
}

fn refunded(reply: &Reply) -> Ending {
    match reply {
        Reply::Created(payment, id) => Ending::Keep(answer(201, payment, id)),
        Reply::Existing(payment, id) => Ending::Keep(answer(200, payment, id)),
        Reply::Unresolved(payment, id) => Ending::Park(answer(202, payment, id)),
        Reply::NoPayment => nothing_happened(&payment_not_found()),
        Reply::Refused(payment, refusal) => nothing_happened(&refusal_of(payment, refusal)),
        Reply::Rule(refusal) => nothing_happened(&against_rules(refusal)),
    }
}

fn answer(status: u16, payment: &Payment, id: &RefundId) -> Answer {
    let shown = payment.refund(id).map_or(Value::Null, |refund| view::refund(payment, refund));
    let answer = json_answer(status, &shown);
    if status == 200 { answer } else { located(answer, format!("/v1/refunds/{id}")) }
}

fn refusal_of(payment: &Payment, refusal: &RefundRefusal) -> Problem {
    match refusal {
        RefundRefusal::NotPaid => {
            let detail = format!("{} is {}: nothing of it was taken that could go back.", payment.id, payment.status.as_str());
            Problem::new(409, "payment_not_paid", "The payment is not paid", detail).money(MoneyMoved::No, Retry::Never)
        }
        RefundRefusal::Exceeds { left } => {
            let detail = format!("Of {} at most {left} can still be refunded; refunds under way count as refunded.", payment.id);
            Problem::new(422, "refund_exceeds_payment", "The refund is more than is left", detail)
                .money(MoneyMoved::No, Retry::Never)
                .with("amount_refundable", left.minor)
        }
        RefundRefusal::Conflict(known) => {
            let detail = format!("This refund_id names {known} over another amount. Take another refund_id for another refund.");
            let known = payment.refund(known).map_or(Value::Null, |refund| view::refund(payment, refund));
            Problem::new(409, "refund_conflict", "The refund is known over another amount", detail)
                .money(MoneyMoved::No, Retry::Never)
                .with("refund", known)
        }
    }
}

pub(crate) async fn list(State(api): State<Arc<Api>>, Path(id): Path<String>, headers: HeaderMap) -> Answered {
    let tenant = api.authenticate(&headers).await?;
    let id = payment_id(&id)?;
    let payment = api.ledger.store.load(&tenant, &id).await.map_err(|fault| store(&fault))?.ok_or_else(payment_not_found)?;
    let shown: Vec<Value> = payment.refunds.iter().map(|refund| view::refund(&payment, refund)).collect();
    Ok(read_answer(&json!({ "object": "list", "data": shown, "has_more": false, "next": null })))
}

pub(crate) async fn one(State(api): State<Arc<Api>>, Path(id): Path<String>, headers: HeaderMap) -> Answered {
    let tenant = api.authenticate(&headers).await?;
    let (payment, id) = find(&api, &tenant, &id).await?;
    let refund = payment.refund(&id).ok_or_else(refund_not_found)?;
    Ok(read_answer(&view::refund(&payment, refund)))
}

async fn find(api: &Api, tenant: &TenantId, id: &str) -> Result<(Payment, RefundId), Fault> {
    let id = RefundId::parse(id).ok_or_else(refund_not_found)?;
    let payment = api.ledger.store.find_refund(tenant, &id).await.map_err(|fault| store(&fault))?.ok_or_else(refund_not_found)?;
    let payment = api.ledger.store.load(tenant, &payment).await.map_err(|fault| store(&fault))?.ok_or_else(refund_not_found)?;
    Ok((payment, id))
}
