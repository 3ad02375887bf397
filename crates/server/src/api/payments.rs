//! `POST /v1/payments`, `GET /v1/payments/{id}`, `GET /v1/payments`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Request, Uri};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::{ETAG, IF_NONE_MATCH};
use payonce::Ending;
use payonce::http::Problem;
use payonce_channels::registry;
use payonce_core::failure::{MoneyMoved, Retry};
use payonce_core::id::{MerchantRef, PaymentId, TenantId};
use payonce_core::payment::{Payment, PaymentStatus};
use payonce_core::ports::payments::Filter;
use payonce_core::{ChannelName, Currency, Money, Timestamp};
use payonce_flows::charge::{Order, Reply};
use payonce_flows::{FlowFault, Ledger};
use serde_json::{Value, json};

use super::door::Incoming;
use super::fault::{Fault, against_rules, before_claim, currency_not_supported, invalid, missing, payment_not_found, refused, store};
use super::fields::Fields;
use super::guarded::{broke_off, located, nothing_happened};
use super::query::Query;
use super::{Answered, Api, payment_id, read_answer, view};
use crate::merchant::address::{self, Allowed};
use crate::observe;

pub(crate) async fn create(State(api): State<Arc<Api>>, request: Request<Body>) -> Answered {
    let incoming = api.post(request, "/v1/payments".to_owned()).await?;
    let order = order(&api, &incoming)?;
    let plan = api.ledger.plan_charge(order).await.map_err(|fault| before_claim(&fault))?;
    let plan = plan.map_err(|refusal| against_rules(&refusal))?;
    let (ledger, caller) = (Arc::clone(&api.ledger), incoming.caller());
    api.guarded(&incoming, move |_| async move {
        match ledger.charge(&plan, &caller).await {
            Ok(reply) => charged(&ledger, reply),
            Err(fault) => broke_off(&fault),
        }
    })
    .await
}

fn order(api: &Api, incoming: &Incoming) -> Result<Order, Fault> {
    let mut fields = incoming.fields(api)?;
    let order_id = fields.required_merchant_ref("order_id")?;
    let minor = fields.amount("amount")?.ok_or_else(|| missing("amount", "an integer of minor units"))?;
    let currency = fields.text("currency", 16)?.ok_or_else(|| missing("currency", "an ISO 4217 code, such as CNY"))?;
    let channel = channel(&mut fields)?.ok_or_else(|| missing("channel", "the name of a channel, such as alipay"))?;
    let more = More::read(&mut fields)?;
    let notify_url = notify_url(api, &incoming.tenant, &mut fields)?;
    let metadata = fields.metadata("metadata")?;
    fields.finish()?;
    let currency = Currency::parse(&currency).ok_or_else(|| currency_not_supported("must be an ISO 4217 code that one can pay with"))?;
    Ok(Order {
        tenant: incoming.tenant.clone(),
        order_id,
        amount: Money::new(minor, currency),
        channel,
        account: more.account,
        method: more.method,
        description: more.description,
        return_url: more.return_url,
        notify_url,
        expires_at: more.expires_at,
        metadata,
        options: more.options,
        manual_capture: more.manual_capture,
    })
}

/// The channel of a body. One that only calls us cannot be charged by us.
pub(crate) fn channel(fields: &mut Fields) -> Result<Option<ChannelName>, Problem> {
    let Some(channel) = fields.channel("channel")? else { return Ok(None) };
    if channel.as_str() == "google" {
        let detail = "channel: google starts payments itself and cannot be charged from here; it is not in this version";
        return Err(refused(400, "channel_not_chargeable", "This channel cannot be charged", detail).with("field", "channel"));
    }
    if registry::adapter(channel.as_str()).is_none() {
        let known: Vec<&str> = registry::adapters().iter().map(|adapter| adapter.name()).collect();
        return Err(invalid("channel", format!("is none of this installation; it has {}", known.join(", "))));
    }
    Ok(Some(channel))
}

/// What a payment and a further attempt have in common.
#[derive(Debug)]
pub(crate) struct More {
    pub(crate) account: Option<payonce_core::AccountName>,
    pub(crate) method: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) return_url: Option<String>,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) options: Value,
    pub(crate) manual_capture: bool,
}

impl More {
    pub(crate) fn read(fields: &mut Fields) -> Result<Self, Problem> {
        Ok(Self {
            account: fields.account("account")?,
            method: fields.text("method", 64)?,
            description: fields.text("description", 1000)?,
            return_url: fields.url("return_url")?,
            expires_at: fields.moment("expires_at")?,
            options: fields.object("channel_options")?,
            manual_capture: fields.choice("capture", &[("automatic", false), ("manual", true)])?.unwrap_or(false),
        })
    }
}

/// Where the merchant is to be told: outside of the network, and only where there is a secret to sign with (B092).
fn notify_url(api: &Api, tenant: &TenantId, fields: &mut Fields) -> Result<Option<String>, Problem> {
    const TITLE: &str = "The callback address is not allowed";
    let Some(url) = fields.text("notify_url", 2048)? else { return Ok(None) };
    let refuse = |why: String| refused(400, "notify_url_not_allowed", TITLE, format!("notify_url: {why}")).with("field", "notify_url");
    address::check(&url, &Allowed::new(api.config.tenants.allow_hosts(tenant))).map_err(|why| refuse(why.to_string()))?;
    if !api.signs_for(tenant) {
        return Err(refuse(
            "this tenant has no webhook secret to sign callbacks with; an operator sets it in the configuration".to_owned(),
        ));
    }
    Ok(Some(url))
}

/// The fate of the key by what came of the charge.
pub(crate) fn charged(ledger: &Ledger, reply: Reply) -> Ending {
    let ended = match reply {
        Reply::Created(payment) => created(ledger, &payment).map(Ending::Keep),
        Reply::Existing(payment) => view::payment_answer(ledger, 200, &payment).map(Ending::Keep),
        Reply::Unresolved(payment) => {
            view::payment_answer(ledger, 202, &payment).map(|answer| Ending::Park(located(answer, location(&payment))))
        }
        Reply::Declined(payment) => declined(ledger, &payment),
        Reply::OrderOpen(payment) => order_open(ledger, &payment),
        Reply::OrderConflict(payment) => order_conflict(ledger, &payment),
        Reply::AttemptUnresolved { payment, retry_at } => attempt_unresolved(ledger, &payment, retry_at),
    };
    ended.unwrap_or_else(|fault| broke_off(&fault))
}

fn created(ledger: &Ledger, payment: &Payment) -> Result<payonce::Answer, FlowFault> {
    observe::payment_is(&payment.id);
    Ok(located(view::payment_answer(ledger, 201, payment)?, location(payment)))
}

fn location(payment: &Payment) -> String {
    format!("/v1/payments/{}", payment.id)
}

fn declined(ledger: &Ledger, payment: &Payment) -> Result<Ending, FlowFault> {
    observe::payment_is(&payment.id);
    let failure = payment.newest().and_then(|attempt| attempt.failure.as_ref());
    let why = failure.map_or_else(|| "The channel declined.".to_owned(), |failure| format!("{}: {}", failure.code, failure.message));
    let problem = Problem::new(402, "payment_declined", "The payment was declined", why)
        .money(MoneyMoved::No, Retry::Never)
        .with("failure", json!(failure))
        .with("payment", view::payment(ledger, payment)?);
    Ok(Ending::Keep(problem.to_answer()))
}

fn order_open(ledger: &Ledger, payment: &Payment) -> Result<Ending, FlowFault> {
    let (channel, account, method) =
        payment.route().map_or(("", "", ""), |(channel, account, method)| (channel.as_str(), account.as_str(), method));
    let detail = format!(
        "This order is open on {channel} ({account}, {method}) as {}. To switch, POST to /v1/payments/{}/attempts, which ends the open attempt first.",
        payment.id, payment.id
    );
    let problem = Problem::new(409, "order_open", "The order is open on another channel, account or method", detail)
        .money(MoneyMoved::No, Retry::Never)
        .with("payment", view::payment(ledger, payment)?);
    Ok(nothing_happened(&problem))
}

fn order_conflict(ledger: &Ledger, payment: &Payment) -> Result<Ending, FlowFault> {
    let detail = format!("This order is known as {} over {}. Nothing was charged for this request.", payment.id, payment.amount);
    let problem = Problem::new(409, "order_conflict", "The order is known over another amount or currency", detail)
        .money(MoneyMoved::No, Retry::Never)
        .with("payment", view::payment(ledger, payment)?);
    Ok(nothing_happened(&problem))
}

/// The earlier attempt may still charge: nothing new was begun, and the same key may try again.
pub(crate) fn attempt_unresolved(ledger: &Ledger, payment: &Payment, retry_at: Timestamp) -> Result<Ending, FlowFault> {
    let detail = "An attempt of this payment may still charge, so nothing new was begun. Try again from retry_at on, with the same key; \
         or release the old attempt at your own risk with force_surplus on /attempts. A shorter expires_at when creating makes this wait shorter.";
    let problem = Problem::new(409, "attempt_unresolved", "An earlier attempt may still charge", detail)
        .money(MoneyMoved::Unknown, Retry::AfterLookup)
        .after(retry_at.since(ledger.now()))
        .with("retry_at", retry_at.to_string())
        .with("payment", view::payment(ledger, payment)?);
    Ok(nothing_happened(&problem))
}

pub(crate) async fn one(State(api): State<Arc<Api>>, Path(id): Path<String>, headers: HeaderMap) -> Answered {
    let tenant = api.authenticate(&headers).await?;
    let id = payment_id(&id)?;
    let payment = api.ledger.store.load(&tenant, &id).await.map_err(|fault| store(&fault))?.ok_or_else(payment_not_found)?;
    let etag = view::etag(&payment);
    if headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == etag.as_bytes()) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, etag)]).into_response());
    }
    let shown = view::payment(&api.ledger, &payment).map_err(|fault| before_claim(&fault))?;
    let mut response: Response = read_answer(&shown);
    if let Ok(etag) = etag.parse() {
        response.headers_mut().insert(ETAG, etag);
    }
    Ok(response)
}

pub(crate) async fn list(State(api): State<Arc<Api>>, uri: Uri, headers: HeaderMap) -> Answered {
    let tenant = api.authenticate(&headers).await?;
    let mut query = Query::of(uri.query())?;
    let limit = query.limit()?;
    let filter = Filter {
        order_id: query.parsed("order_id", "must be 1 to 64 bytes without control characters", MerchantRef::parse)?,
        status: query.parsed("status", "must be one of: pending, authorized, paid, closed, failed, review", PaymentStatus::parse)?,
        channel: query.parsed("channel", "must be a channel's name", ChannelName::parse)?,
        after: query.parsed("after", "must be a payment's id", PaymentId::parse)?,
        // One more than wanted tells whether there are more; a store gives 100 at most.
        limit: (limit + 1).min(100),
    };
    query.finish()?;
    let mut found = api.ledger.store.list(&tenant, &filter).await.map_err(|fault| store(&fault))?;
    let has_more = found.len() > limit || (limit == 100 && found.len() == 100);
    found.truncate(limit);
    let shown: Vec<Value> =
        found.iter().map(|payment| view::payment(&api.ledger, payment)).collect::<Result<_, _>>().map_err(|fault| before_claim(&fault))?;
    let next = found.last().filter(|_| has_more).map(|payment| payment.id.to_string());
    Ok(read_answer(&json!({ "object": "list", "data": shown, "has_more": has_more, "next": next })))
}
