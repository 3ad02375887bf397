//! Refund: the amount is reserved, the reference and content stored, then it is sent, and its outcome found out.
//!
//! In: a validated request, inside the guard. Out: the refund, or why there is none. Never: more than was captured; a lost reference.

use payonce_channels::contract::RefundOrder;
use payonce_core::attempt::Attempt;
use payonce_core::channel_ref::{ChannelRef, RefForm};
use payonce_core::id::{MerchantRef, PaymentId, RefundId, TenantId};
use payonce_core::money::Money;
use payonce_core::payment::Payment;
use payonce_core::payment::draft::Draft;
use payonce_core::payment::refunds::{self, RefundRefusal, RefundStand};
use payonce_core::ports::payments::{Applied, Rule};
use payonce_core::refund::{Origin, Refund, RefundOf, RefundStatus};
use payonce_failpoint as failpoint;
use tokio::time::Instant;

use crate::charge::Caller;
use crate::ledger::{FlowFault, Ledger};
use crate::send::sending;

/// What the merchant asks for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Whose.
    pub tenant: TenantId,
    /// Of which payment.
    pub payment: PaymentId,
    /// The merchant's own number.
    pub refund_id: MerchantRef,
    /// How much, in the payment's minor units; all that is left where it is not said.
    pub amount_minor: Option<i64>,
    /// Why.
    pub reason: Option<String>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The request made this refund (201).
    Created(Payment, RefundId),
    /// The merchant's number names it already (200).
    Existing(Payment, RefundId),
    /// Made, and its outcome is not known yet (202); to be parked.
    Unresolved(Payment, RefundId),
    /// There is no such payment (404).
    NoPayment,
    /// Refused by the books; nothing is stored.
    Refused(Payment, RefundRefusal),
    /// Refused by the channel's rules; nothing is stored.
    Rule(payonce_channels::contract::Refusal),
}

impl Ledger {
    /// `POST …/refunds`.
    pub async fn refund(&self, wanted: &Wanted, caller: &Caller) -> Result<Reply, FlowFault> {
        let until = Instant::now() + self.timing.answer_due;
        for _ in 0..32 {
            let Some(payment) = self.store.load(&wanted.tenant, &wanted.payment).await? else { return Ok(Reply::NoPayment) };
            if let Some(reply) = self.refund_once(payment, wanted, caller, until).await? {
                return Ok(reply);
            }
        }
        Err(FlowFault::Busy)
    }

    async fn refund_once(&self, payment: Payment, wanted: &Wanted, caller: &Caller, until: Instant) -> Result<Option<Reply>, FlowFault> {
        let known = payment.refund_by_merchant(&wanted.refund_id);
        let amount = match (wanted.amount_minor, known) {
            (Some(minor), _) => Money::new(minor, payment.currency()),
            (None, Some(known)) => known.amount,
            (None, None) => payment.refundable(),
        };
        match refunds::judge(&payment, &wanted.refund_id, amount) {
            Err(refusal) => return Ok(Some(Reply::Refused(payment, refusal))),
            Ok(RefundStand::Exists(id)) => return self.refund_known(payment, id, caller, until).await.map(Some),
            Ok(RefundStand::Free) => {}
        }
        if amount.minor <= 0 {
            let left = payment.refundable();
            return Ok(Some(Reply::Refused(payment, RefundRefusal::Exceeds { left })));
        }
        let Some(attempt) = payment.paid_attempt().cloned() else {
            return Ok(Some(Reply::Refused(payment, RefundRefusal::NotPaid)));
        };
        let account = self.accounts.required(&attempt.account).await?;
        let started = self.started();
        let mut refund = self.new_refund(&payment, &attempt, wanted, amount, caller, started);
        match account.account.prepare_refund(&refund_order(self, &attempt, &refund)) {
            Ok(content) => refund.content = Some(self.seal_content(refund.id.as_str(), &content)),
            Err(rule) => return Ok(Some(Reply::Rule(rule))),
        }
        let mut draft = Draft::of(payment, started.now);
        refunds::reserve(&mut draft, refund.clone());
        draft.note("sending", None, sending("refund", refund.id.as_str(), refund.send.as_ref()));
        let Some(change) = draft.finish(None) else { return Ok(None) };
        match self.apply(&change).await? {
            Applied::Done => {}
            Applied::Conflict | Applied::OrderTaken(_) | Applied::Violates(Rule::RefundId) => return Ok(None),
            Applied::Violates(rule) => return Err(FlowFault::Violates(rule)),
        }
        failpoint::hit("refund.intent_stored").await;
        let payment = self.send_refund(&change.payment, &refund, &account, started).await?;
        let payment = self.resolve_unknown_refund(payment, &refund.id, until).await?;
        Ok(Some(reply_for(payment, refund.id, true)))
    }

    /// The merchant's number is known: the key that made it resumes, any other gets what is there.
    async fn refund_known(&self, payment: Payment, id: RefundId, caller: &Caller, until: Instant) -> Result<Reply, FlowFault> {
        let own = payment.refund(&id).is_some_and(|refund| refund.made_by == caller.key);
        if !own {
            return Ok(reply_for(payment, id, false));
        }
        let payment = self.resolve_refund(payment, &id, until).await?;
        let payment = self.resolve_unknown_refund(payment, &id, until).await?;
        Ok(reply_for(payment, id, true))
    }

    async fn resolve_unknown_refund(&self, mut payment: Payment, id: &RefundId, until: Instant) -> Result<Payment, FlowFault> {
        let mut pause = std::time::Duration::from_millis(200);
        for _ in 0..3 {
            let unknown = payment.refund(id).is_some_and(is_unresolved);
            if !unknown || Instant::now() + pause >= until {
                break;
            }
            payment = self.resolve_refund(payment, id, until).await?;
            if payment.refund(id).is_some_and(is_unresolved) {
                tokio::time::sleep(pause + self.jitter().min(pause)).await;
                pause *= 4;
            }
        }
        Ok(payment)
    }

    fn new_refund(
        &self,
        payment: &Payment,
        attempt: &Attempt,
        wanted: &Wanted,
        amount: Money,
        caller: &Caller,
        started: crate::send::Started,
    ) -> Refund {
        Refund {
            id: RefundId::new(self.clock.as_ref(), self.entropy.as_ref()),
            n: u32::try_from(payment.refunds.len() + 1).unwrap_or(u32::MAX),
            refund_id: Some(wanted.refund_id.clone()),
            origin: Origin::Ours,
            of: RefundOf::Payment,
            attempt_id: attempt.id.clone(),
            channel: attempt.channel.clone(),
            account: attempt.account.clone(),
            channel_ref: ChannelRef::new(RefForm::COMMON, started.now, self.entropy.as_ref()),
            amount,
            reason: wanted.reason.clone(),
            status: RefundStatus::Pending,
            accepted: false,
            failure: None,
            channel_refund_id: None,
            content: None,
            send: Some(self.lease(None, started)),
            made_by: caller.key.clone(),
            created_at: started.now,
            updated_at: started.now,
            looks: 0,
            due_at: Some(started.now.plus(self.timing.channel_deadline + self.timing.first_look_up)),
        }
    }
}

fn reply_for(payment: Payment, id: RefundId, made: bool) -> Reply {
    if payment.refund(&id).is_some_and(is_unresolved) {
        return Reply::Unresolved(payment, id);
    }
    if made { Reply::Created(payment, id) } else { Reply::Existing(payment, id) }
}

/// Whether nobody knows what became of a refund: its outcome is unknown, or it is still on its way to the channel. One that the channel works
/// on is pending, and that is an answer.
fn is_unresolved(refund: &Refund) -> bool {
    match refund.status {
        RefundStatus::Unknown => true,
        RefundStatus::Pending => !refund.accepted,
        RefundStatus::Succeeded | RefundStatus::Failed => false,
    }
}

/// The order that an adapter prepares a refund's content from.
pub(crate) fn refund_order(ledger: &Ledger, attempt: &Attempt, refund: &Refund) -> RefundOrder {
    RefundOrder {
        refund_ref: refund.channel_ref.clone(),
        channel_ref: attempt.channel_ref.clone(),
        channel_txn: attempt.channel_txn.clone(),
        of: attempt.amount,
        amount: refund.amount,
        reason: refund.reason.clone(),
        notify_url: ledger.notify_url(attempt.channel.as_str(), attempt.account.as_str()),
    }
}
