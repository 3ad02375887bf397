//! Sending a refund, and asking what became of it: the same lease and the same rules as for an attempt.
//!
//! In: a payment whose refund is to be resolved. Out: the payment as it then is. Never: a new reference.

use std::time::Duration;

use payonce_channels::contract::RefundFacts;
use payonce_channels::driver;
use payonce_core::id::RefundId;
use payonce_core::outcome::{RefundOutcome, Source};
use payonce_core::payment::{Payment, refunds};
use payonce_core::refund::{Refund, RefundStatus};
use payonce_failpoint as failpoint;
use serde_json::json;
use tokio::time::Instant;

use super::{Started, order_facts, sender_of, sending};
use crate::accounts::Opened;
use crate::ledger::{FlowFault, Ledger};

impl Ledger {
    /// Sends a refund whose lease was just stored, and stores what came of it.
    pub(crate) async fn send_refund(
        &self,
        payment: &Payment,
        refund: &Refund,
        account: &Opened,
        started: Started,
    ) -> Result<Payment, FlowFault> {
        let Some(sealed) = &refund.content else { return Ok(payment.clone()) };
        let content = self.open_content(refund.id.as_str(), sealed)?;
        let call = account.account.refund(&content, self.now());
        let ran = driver::run(self.transport.as_ref(), call, self.deadlines(started)).await;
        tracing::info!(payment = %payment.id, refund = %refund.id, channel = %refund.channel, status = ran.status, outcome = ?ran.outcome, "refund sent");
        failpoint::hit("refund.request_sent").await;
        failpoint::hit("refund.answer_read").await;
        let payment = self.store_refund(payment, refund, &ran.outcome, Source::Answer, ran.retry_after).await?;
        failpoint::hit("refund.result_stored").await;
        Ok(payment)
    }

    /// Finds out what became of a refund that we send: sends it if it was not sent, asks the channel, sends the same again where nothing is there.
    pub(crate) async fn resolve_refund(&self, payment: Payment, id: &RefundId, until: Instant) -> Result<Payment, FlowFault> {
        let Some(refund) = payment.refund(id).cloned() else { return Ok(payment) };
        if !refund.status.is_open() {
            return Ok(payment);
        }
        let account = self.accounts.required(&refund.account).await?;
        let (payment, may_send) =
            if refund.send.is_some() { self.look_up_refund(payment, &refund, &account).await? } else { (payment, true) };
        let capability = account.account.capability();
        let Some(refund) = payment.refund(id).cloned() else { return Ok(payment) };
        let resend = refund.send.is_some();
        let safe = !resend || (capability.refund.is_safe_to_resend() && self.is_inside(refund.send.as_ref(), capability.refund_window));
        if !may_send || !safe || !refund.status.is_open() || Instant::now() >= until {
            return Ok(payment);
        }
        let started = self.started();
        let Some((payment, refund)) = self.take_refund_lease(&payment, id, &account, started).await? else {
            return self.reload(payment).await;
        };
        self.send_refund(&payment, &refund, &account, started).await
    }

    async fn look_up_refund(&self, payment: Payment, refund: &Refund, account: &Opened) -> Result<(Payment, bool), FlowFault> {
        let Some(attempt) = payment.attempt(&refund.attempt_id) else { return Ok((payment, false)) };
        let facts = RefundFacts {
            refund_ref: refund.channel_ref.clone(),
            channel_refund_id: refund.channel_refund_id.clone(),
            order: order_facts(attempt),
            amount: refund.amount,
        };
        let Some(call) = account.account.query_refund(&facts, self.now()) else {
            // Without a look-up the resend is the look-up, inside its window.
            return Ok((payment, refund.status == RefundStatus::Unknown));
        };
        let ran = driver::run(self.transport.as_ref(), call, self.deadlines(self.started())).await;
        tracing::info!(payment = %payment.id, refund = %refund.id, channel = %refund.channel, status = ran.status, outcome = ?ran.outcome, "refund looked up");
        let outcome = match ran.outcome {
            RefundOutcome::NotAccepted(failure) => RefundOutcome::Unknown(failure.message),
            other => other,
        };
        let absent = matches!(outcome, RefundOutcome::Absent);
        let payment = self.store_refund(&payment, refund, &outcome, Source::LookUp, ran.retry_after).await?;
        Ok((payment, absent))
    }

    async fn store_refund(
        &self,
        payment: &Payment,
        sent: &Refund,
        outcome: &RefundOutcome,
        source: Source,
        wait: Option<Duration>,
    ) -> Result<Payment, FlowFault> {
        let (id, sender) = (&sent.id, sender_of(sent.send.as_ref()));
        let now = self.now();
        let not_before = wait.map(|wait| now.plus(wait));
        let pause = self.jitter();
        let kind = if source == Source::Answer { "answered" } else { "looked_up" };
        let after = self
            .change(&payment.tenant, &payment.id, None, |draft| {
                draft.note(kind, Some(source), json!({ "refund": id, "outcome": refunds::name(outcome), "retry_at": not_before }));
                // A refusal is proof only while the one request that it answers is the only one there was.
                let lease = draft.after.refund(id).and_then(|refund| refund.send.as_ref());
                let first_send = source == Source::Answer && lease.is_none_or(|lease| lease.sends <= 1);
                refunds::observe_refund(draft, id, outcome, source, first_send);
                if let Some(refund) = draft.after.refunds.iter_mut().find(|refund| &refund.id == id) {
                    if source == Source::Answer
                        && let Some(lease) = &mut refund.send
                    {
                        lease.ended(sender, now, not_before, is_definite_refund(outcome));
                    }
                    if source == Source::LookUp {
                        refund.looks = refund.looks.saturating_add(1);
                    }
                    if refund.status.is_open() {
                        let due = self.timing.next_look_up(refund.looks, now).plus(pause);
                        refund.due_at = Some(not_before.map_or(due, |wait| due.max(wait)));
                    }
                }
            })
            .await?;
        Ok(after.unwrap_or_else(|| payment.clone()))
    }

    /// Takes the send lease of a refund, preparing its content first where that was not done yet (refunds of a surplus).
    async fn take_refund_lease(
        &self,
        payment: &Payment,
        id: &RefundId,
        account: &Opened,
        started: Started,
    ) -> Result<Option<(Payment, Refund)>, FlowFault> {
        let mut taken = None;
        let after = self
            .change(&payment.tenant, &payment.id, None, |draft| {
                taken = None;
                let Some(index) = draft.after.refunds.iter().position(|refund| &refund.id == id) else { return };
                let refund = draft.after.refunds[index].clone();
                let held = refund.send.as_ref().is_some_and(|lease| !lease.is_free(started.now));
                if !refund.status.is_open() || held {
                    return;
                }
                let content = match &refund.content {
                    Some(content) => Some(content.clone()),
                    None => self.refund_content(&draft.after, &refund, account),
                };
                let Some(content) = content else { return };
                let lease = self.lease(refund.send.as_ref(), started);
                draft.note("sending", None, sending("refund", id.as_str(), Some(&lease)));
                let row = &mut draft.after.refunds[index];
                row.content = Some(content);
                row.send = Some(lease);
                taken = Some(row.clone());
            })
            .await?;
        Ok(after.zip(taken))
    }

    fn refund_content(&self, payment: &Payment, refund: &Refund, account: &Opened) -> Option<payonce_core::secret::Sealed> {
        let attempt = payment.attempt(&refund.attempt_id)?;
        let order = crate::refund::refund_order(self, attempt, refund);
        match account.account.prepare_refund(&order) {
            Ok(content) => Some(self.seal_content(refund.id.as_str(), &content)),
            Err(why) => {
                tracing::error!(payment = %payment.id, refund = %refund.id, %why, "a refund cannot be prepared");
                None
            }
        }
    }
}

/// Whether an answer says what became of the refund, so that its request is no longer under way.
const fn is_definite_refund(outcome: &RefundOutcome) -> bool {
    match outcome {
        RefundOutcome::Processing
        | RefundOutcome::Succeeded { .. }
        | RefundOutcome::Failed(_)
        | RefundOutcome::NotAccepted(_)
        | RefundOutcome::NotSent(_) => true,
        RefundOutcome::Absent | RefundOutcome::InProgress | RefundOutcome::Unknown(_) => false,
    }
}
