//! Charge: an order becomes a payment with one live attempt, or meets the payment that it already is.
//!
//! In: a validated [`Plan`], inside the guard. Out: a [`Reply`]. Never: a new reference on a retry.

use std::collections::BTreeMap;
use std::time::Duration;

use payonce_channels::contract::{ChargeOrder, MethodCapability, Refusal, Step};
use payonce_core::attempt::{Attempt, AttemptStatus};
use payonce_core::channel::{AccountName, ChannelName};
use payonce_core::channel_ref::ChannelRef;
use payonce_core::clock::Timestamp;
use payonce_core::id::{AttemptId, MerchantRef, PaymentId, TenantId};
use payonce_core::money::Money;
use payonce_core::outcome::{Outcome, Source};
use payonce_core::payment::change::Change;
use payonce_core::payment::draft::Draft;
use payonce_core::payment::observe::{self, Observation};
use payonce_core::payment::{Payment, PaymentStatus};
use payonce_core::ports::payments::{Applied, Rule};
use payonce_failpoint as failpoint;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::accounts::Opened;
use crate::close::{Ended, Then};
use crate::ledger::{FlowFault, Ledger};
use crate::send::{Started, sending};

/// What the merchant asks for. Every member is of a type that was parsed at the door.
#[derive(Clone, Debug)]
pub struct Order {
    /// Whose.
    pub tenant: TenantId,
    /// The merchant's own number.
    pub order_id: MerchantRef,
    /// How much; more than zero.
    pub amount: Money,
    /// On which channel.
    pub channel: ChannelName,
    /// With which credentials; else the tenant's first for the channel.
    pub account: Option<AccountName>,
    /// How; else the channel's default.
    pub method: Option<String>,
    /// For the buyer.
    pub description: Option<String>,
    /// Where the channel sends the buyer back to.
    pub return_url: Option<String>,
    /// Where the merchant is told.
    pub notify_url: Option<String>,
    /// When the order stops being payable.
    pub expires_at: Option<Timestamp>,
    /// The merchant's own.
    pub metadata: BTreeMap<String, String>,
    /// For the channel.
    pub options: Value,
    /// Whether the money is only reserved at first.
    pub manual_capture: bool,
}

/// Who asks: the idempotency key of the request.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The key.
    pub key: String,
}

/// An order that the channel's rules allow, with everything that a first send needs.
#[derive(Debug)]
pub struct Plan {
    order: Order,
    account: Opened,
    method: &'static MethodCapability,
    expires_at: Timestamp,
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The request made this payment or attempt (201).
    Created(Payment),
    /// The order is this payment already (200).
    Existing(Payment),
    /// The outcome is not known yet (202); to be parked.
    Unresolved(Payment),
    /// The channel declined (402).
    Declined(Payment),
    /// The order is open on another channel, account or method (409).
    OrderOpen(Payment),
    /// The order is known over another amount or currency (409).
    OrderConflict(Payment),
    /// The earlier attempt may still charge (409).
    AttemptUnresolved {
        /// The payment.
        payment: Payment,
        /// When it may be tried again.
        retry_at: Timestamp,
    },
}

impl Ledger {
    /// Checks an order against the tenant's accounts and the channel's rules, before anything is claimed or stored.
    pub async fn plan_charge(&self, order: Order) -> Result<Result<Plan, Refusal>, FlowFault> {
        let refuse = |field: &str, rule: String| Ok(Err(Refusal { field: field.to_owned(), rule }));
        let Some(account) = self.accounts.for_channel(&order.tenant, &order.channel, order.account.as_ref()).await? else {
            return match &order.account {
                Some(name) => {
                    refuse("account", format!("there is no {} account {name}; add one with `payonce account add`", order.channel))
                }
                None => refuse("channel", format!("there is no account for {}; add one with `payonce account add`", order.channel)),
            };
        };
        let capability = account.account.capability();
        let Some(method) = capability.method(order.method.as_deref()) else {
            let known: Vec<&str> = capability.methods.iter().map(|method| method.name).collect();
            return refuse("method", format!("{} has the methods {}", order.channel, known.join(", ")));
        };
        if !capability.currencies.contains(&order.amount.currency.code()) {
            return refuse("currency", format!("{} takes {}", order.channel, capability.currencies.join(", ")));
        }
        let (least, most) = capability.amount_range;
        if order.amount.minor < least || order.amount.minor > most {
            return refuse("amount", format!("{} takes {least} to {most} minor units", order.channel));
        }
        if order.manual_capture && !capability.manual_capture {
            return refuse("capture", format!("{} cannot reserve money first; use automatic", order.channel));
        }
        let now = self.now();
        let expires_at = order.expires_at.unwrap_or_else(|| now.plus(method.default_ttl));
        if expires_at <= now || expires_at > now.plus(method.max_ttl) {
            return refuse("expires_at", format!("must lie in the future and at most {} s ahead", method.max_ttl.as_secs()));
        }
        let plan = Plan { order, account, method, expires_at };
        // A dry run with a reference of the right form, so that a refused body never burns a key.
        let probe = ChannelRef::new(method.reference, now, self.entropy.as_ref());
        if let Err(refusal) = plan.account.account.prepare_charge(&self.charge_order(&plan, &probe, "att_probe")) {
            return Ok(Err(refusal));
        }
        Ok(Ok(plan))
    }

    fn charge_order(&self, plan: &Plan, channel_ref: &ChannelRef, attempt_id: &str) -> ChargeOrder {
        let order = &plan.order;
        ChargeOrder {
            channel_ref: channel_ref.clone(),
            method: plan.method.name,
            amount: order.amount,
            description: order.description.clone().unwrap_or_else(|| order.order_id.to_string()),
            expires_at: plan.expires_at,
            return_url: order.return_url.clone(),
            notify_url: self.notify_url(plan.account.channel.as_str(), plan.account.name.as_str()),
            manual_capture: order.manual_capture,
            options: order.options.clone(),
            attempt_id: attempt_id.to_owned(),
        }
    }

    /// Runs a planned charge under a claimed key.
    pub async fn charge(&self, plan: &Plan, caller: &Caller) -> Result<Reply, FlowFault> {
        let until = Instant::now() + self.timing.answer_due;
        // A lost race for the order, or a change in between, is decided again on what is there then.
        for _ in 0..8 {
            let reply = match self.store.load_order(&plan.order.tenant, &plan.order.order_id).await? {
                None => self.first(plan, caller, until).await?,
                Some(known) => self.known(plan, caller, known, until).await?,
            };
            if let Some(reply) = reply {
                return Ok(reply);
            }
        }
        Err(FlowFault::Busy)
    }

    async fn first(&self, plan: &Plan, caller: &Caller, until: Instant) -> Result<Option<Reply>, FlowFault> {
        let started = self.started();
        let order = &plan.order;
        let payment = Payment {
            tenant: order.tenant.clone(),
            id: PaymentId::new(self.clock.as_ref(), self.entropy.as_ref()),
            order_id: order.order_id.clone(),
            version: 0,
            status: PaymentStatus::Pending,
            review: None,
            amount: order.amount,
            description: order.description.clone(),
            return_url: order.return_url.clone(),
            notify_url: order.notify_url.clone(),
            metadata: order.metadata.clone(),
            attempts: Vec::new(),
            captures: Vec::new(),
            refunds: Vec::new(),
            surpluses: Vec::new(),
            switching_until: None,
            audit_len: 0,
            audit_head: [0; 32],
            created_at: started.now,
            updated_at: started.now,
        };
        let mut draft = Draft::new(payment, started.now);
        let detail = json!({ "order_id": order.order_id, "amount": order.amount.minor, "currency": order.amount.currency });
        draft.note("created", None, detail);
        self.add_attempt(plan, caller, draft, started, until).await
    }

    /// Adds an attempt to the draft, stores it with its reference, content and send lease (I2, I3), and sends it. `None`: somebody else was faster.
    async fn add_attempt(
        &self,
        plan: &Plan,
        caller: &Caller,
        mut draft: Draft,
        started: Started,
        until: Instant,
    ) -> Result<Option<Reply>, FlowFault> {
        let id = AttemptId::new(self.clock.as_ref(), self.entropy.as_ref());
        let channel_ref = ChannelRef::new(plan.method.reference, started.now, self.entropy.as_ref());
        let content = match plan.account.account.prepare_charge(&self.charge_order(plan, &channel_ref, id.as_str())) {
            Ok(content) => content,
            Err(why) => return Err(FlowFault::Account(plan.account.name.to_string(), why.to_string())),
        };
        let step = plan.account.account.charge(plan.method.name, &content, started.now);
        let is_local = matches!(step, Step::Local(_));
        let attempt = Attempt {
            n: u32::try_from(draft.after.attempts.len() + 1).unwrap_or(u32::MAX),
            channel: plan.account.channel.clone(),
            account: plan.account.name.clone(),
            method: plan.method.name.to_owned(),
            amount: plan.order.amount,
            manual_capture: plan.order.manual_capture,
            status: AttemptStatus::Prepared,
            released: false,
            channel_txn: None,
            failure: None,
            content: self.seal_content(id.as_str(), &content),
            action: None,
            send: (!is_local).then(|| self.lease(None, started)),
            made_by: caller.key.clone(),
            created_at: started.now,
            expires_at: plan.expires_at,
            looks: 0,
            due_at: Some(started.now.plus(self.timing.channel_deadline + self.timing.first_look_up)),
            id: id.clone(),
            channel_ref,
        };
        let detail = json!({ "attempt": id, "channel": attempt.channel, "account": attempt.account, "method": attempt.method, "channel_ref": attempt.channel_ref });
        draft.note("attempt_created", None, detail);
        if attempt.was_sent() {
            draft.note("sending", None, sending("attempt", id.as_str(), attempt.send.as_ref()));
        }
        draft.after.amount = plan.order.amount;
        draft.after.switching_until = None;
        draft.after.attempts.push(attempt.clone());
        let call = match step {
            Step::Local(outcome) => return self.store_local(draft, &id, outcome, started).await,
            Step::Call(call) => call,
        };
        let Some(change) = draft.finish(None) else { return Ok(None) };
        if !self.stored(&change).await? {
            return Ok(None);
        }
        failpoint::hit("charge.intent_stored").await;
        let mut payment = self.send_attempt(&change.payment, &attempt, Step::Call(call), started).await?;
        if is_unresolved(&payment, &id) {
            payment = self.settle_now(payment, &id, until).await?;
        }
        Ok(Some(reply_for(payment, &id)))
    }

    /// An attempt that needs no call: intent and outcome are one change, because no byte of ours leaves.
    async fn store_local(&self, mut draft: Draft, id: &AttemptId, outcome: Outcome, started: Started) -> Result<Option<Reply>, FlowFault> {
        let action = self.seal_action(id.as_str(), &outcome);
        observe::observe(&mut draft, &Observation { attempt: id.clone(), outcome, source: Source::Answer, action }, self.surplus);
        if let Some(row) = draft.after.attempts.last_mut() {
            row.due_at = Some(self.timing.attempt_due(row, started.now));
        }
        let Some(change) = draft.finish(None) else { return Ok(None) };
        Ok(if self.stored(&change).await? { Some(reply_for(change.payment, id)) } else { None })
    }

    /// Stores an attempt with its reference. False: somebody else was faster, and the order is to be looked at again.
    async fn stored(&self, change: &Change) -> Result<bool, FlowFault> {
        match self.apply(change).await? {
            Applied::Done => Ok(true),
            Applied::Conflict | Applied::OrderTaken(_) | Applied::Violates(Rule::OneLiveAttempt) => Ok(false),
            Applied::Violates(rule) => Err(FlowFault::Violates(rule)),
        }
    }

    /// The order is known: the table of the contract.
    async fn known(&self, plan: &Plan, caller: &Caller, mut payment: Payment, until: Instant) -> Result<Option<Reply>, FlowFault> {
        // The key that made an attempt resumes to its own answer, after a crash too.
        if let Some(own) = payment.attempts.iter().rev().find(|attempt| attempt.made_by == caller.key).map(|attempt| attempt.id.clone()) {
            if is_unresolved(&payment, &own) {
                payment = self.settle_now(payment, &own, until).await?;
            }
            return Ok(Some(reply_for(payment, &own)));
        }
        let Some(newest) = payment.newest().cloned() else { return Ok(None) };
        let ended = match payment.status {
            PaymentStatus::Failed | PaymentStatus::Closed => payment.captured().minor == 0,
            // Without a live attempt it is pending only because a switch broke off.
            PaymentStatus::Pending => payment.live().is_none() || (newest.is_live() && newest.failure.is_some()),
            PaymentStatus::Authorized | PaymentStatus::Paid | PaymentStatus::Review => false,
        };
        if ended {
            return self.again(plan, caller, payment, until).await;
        }
        if payment.amount != plan.order.amount {
            return Ok(Some(Reply::OrderConflict(payment)));
        }
        let other_account = plan.order.account.as_ref().is_some_and(|name| *name != newest.account);
        let other_method = plan.order.method.as_deref().is_some_and(|method| method != newest.method);
        if newest.channel != plan.order.channel || other_account || other_method {
            return Ok(Some(Reply::OrderOpen(payment)));
        }
        match newest.status {
            AttemptStatus::Prepared | AttemptStatus::Unknown if newest.is_live() => Ok(Some(Reply::Unresolved(payment))),
            AttemptStatus::Prepared
            | AttemptStatus::Unknown
            | AttemptStatus::Pending
            | AttemptStatus::Authorized
            | AttemptStatus::Succeeded
            | AttemptStatus::Declined
            | AttemptStatus::Closed => Ok(Some(Reply::Existing(payment))),
        }
    }

    /// A new attempt for an order that ended without money: what is left of the old one is closed and proved dead first (I4).
    async fn again(&self, plan: &Plan, caller: &Caller, payment: Payment, until: Instant) -> Result<Option<Reply>, FlowFault> {
        let payment = match self.end_live(payment, Then::NewAttempt, until).await? {
            Ended::Dead(payment) => payment,
            Ended::Money(payment) => return Ok(Some(Reply::Existing(payment))),
            Ended::Unresolved { payment, retry_at } => return Ok(Some(Reply::AttemptUnresolved { payment, retry_at })),
        };
        self.next_attempt(plan, caller, Draft::of(payment, self.now()), until).await
    }

    /// A new attempt on whatever channel, after the caller has made sure that the live one is dead or released.
    pub(crate) async fn next_attempt(
        &self,
        plan: &Plan,
        caller: &Caller,
        draft: Draft,
        until: Instant,
    ) -> Result<Option<Reply>, FlowFault> {
        let started = self.started();
        self.add_attempt(plan, caller, draft, started, until).await
    }

    /// Resolves an attempt while the caller waits: at once, and again with growing pauses while there is time.
    pub(crate) async fn settle_now(&self, mut payment: Payment, id: &AttemptId, until: Instant) -> Result<Payment, FlowFault> {
        let mut pause = Duration::from_millis(200);
        for _ in 0..3 {
            payment = self.resolve_attempt(payment, id, until).await?;
            if !is_unresolved(&payment, id) || Instant::now() + pause >= until {
                break;
            }
            tokio::time::sleep(pause + self.jitter().min(pause)).await;
            pause *= 4;
        }
        Ok(payment)
    }
}

impl Plan {
    /// The order.
    pub const fn order(&self) -> &Order {
        &self.order
    }

    /// The account that it goes to.
    pub const fn account(&self) -> &Opened {
        &self.account
    }

    /// The method.
    pub const fn method(&self) -> &'static str {
        self.method.name
    }
}

/// Whether nobody knows what became of an attempt, or the buyer's action is still missing.
pub(crate) fn is_unresolved(payment: &Payment, id: &AttemptId) -> bool {
    payment.attempt(id).is_some_and(|attempt| match attempt.status {
        AttemptStatus::Prepared | AttemptStatus::Unknown => attempt.is_live(),
        AttemptStatus::Pending | AttemptStatus::Authorized | AttemptStatus::Succeeded | AttemptStatus::Declined | AttemptStatus::Closed => {
            false
        }
    })
}

/// The reply to the request that made an attempt.
pub(crate) fn reply_for(payment: Payment, id: &AttemptId) -> Reply {
    let Some(attempt) = payment.attempt(id) else { return Reply::Existing(payment) };
    match attempt.status {
        AttemptStatus::Prepared | AttemptStatus::Unknown => Reply::Unresolved(payment),
        AttemptStatus::Declined => Reply::Declined(payment),
        AttemptStatus::Pending if attempt.failure.is_some() => Reply::Declined(payment),
        AttemptStatus::Pending | AttemptStatus::Authorized | AttemptStatus::Succeeded | AttemptStatus::Closed => Reply::Created(payment),
    }
}
