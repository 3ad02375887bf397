//! `POST /v1/payments/{id}/attempts`: another channel, or once more after a decline. The live attempt is ended first (I4).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Request;
use payonce_core::Money;
use payonce_core::payment::Payment;
use payonce_flows::charge::Order;

use super::door::Incoming;
use super::fault::{Fault, against_rules, before_claim, missing, payment_not_found, store};
use super::guarded::{broke_off, nothing_happened};
use super::payments::{More, channel, charged};
use super::{Answered, Api, payment_id};

pub(crate) async fn create(State(api): State<Arc<Api>>, Path(id): Path<String>, request: Request<Body>) -> Answered {
    let incoming = api.post(request, format!("/v1/payments/{id}/attempts")).await?;
    let id = payment_id(&id)?;
    let payment = api.ledger.store.load(&incoming.tenant, &id).await.map_err(|fault| store(&fault))?.ok_or_else(payment_not_found)?;
    let (order, force) = order(&api, &incoming, &payment)?;
    let plan = api.ledger.plan_charge(order).await.map_err(|fault| before_claim(&fault))?;
    let plan = plan.map_err(|refusal| against_rules(&refusal))?;
    let (ledger, caller) = (Arc::clone(&api.ledger), incoming.caller());
    api.guarded(&incoming, move |_| async move {
        match ledger.switch(&id, &plan, force, &caller).await {
            Ok(Some(reply)) => charged(&ledger, reply),
            Ok(None) => nothing_happened(&payment_not_found()),
            Err(fault) => broke_off(&fault),
        }
    })
    .await
}

/// The order as it is, by another way. What the body leaves out stays as it was.
fn order(api: &Api, incoming: &Incoming, payment: &Payment) -> Result<(Order, bool), Fault> {
    let mut fields = incoming.fields(api)?;
    let newest = payment.newest().map(|attempt| attempt.channel.clone());
    let channel = channel(&mut fields)?.or(newest).ok_or_else(|| missing("channel", "the name of a channel, such as alipay"))?;
    let minor = fields.amount("amount")?.unwrap_or(payment.amount.minor);
    let more = More::read(&mut fields)?;
    let force = fields.flag("force_surplus")?;
    fields.finish()?;
    let order = Order {
        tenant: payment.tenant.clone(),
        order_id: payment.order_id.clone(),
        amount: Money::new(minor, payment.currency()),
        channel,
        account: more.account,
        method: more.method,
        description: more.description.or_else(|| payment.description.clone()),
        return_url: more.return_url.or_else(|| payment.return_url.clone()),
        notify_url: payment.notify_url.clone(),
        expires_at: more.expires_at,
        metadata: payment.metadata.clone(),
        options: more.options,
        manual_capture: more.manual_capture,
    };
    Ok((order, force))
}
