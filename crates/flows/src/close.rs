//! Close: an unpaid attempt is ended at the channel, and only what the channel confirms counts. Paying can win.
//!
//! In: a payment. Out: dead, money, or unresolved with the time from which it may be tried again. Never: closed on our word alone.

use payonce_channels::contract::CloseKind;
use payonce_channels::driver;
use payonce_channels::transport::Deadlines;
use payonce_core::attempt::{Attempt, AttemptStatus};
use payonce_core::clock::Timestamp;
use payonce_core::id::{PaymentId, TenantId};
use payonce_core::outcome::{CloseOutcome, Outcome, Source};
use payonce_core::payment::Payment;
use payonce_core::payment::observe::Observation;
use tokio::time::Instant;

use crate::accounts::Opened;
use crate::ledger::{FlowFault, Ledger};
use crate::send::order_facts;

/// How ending the live attempt came out.
#[derive(Clone, Debug)]
pub enum Ended {
    /// Nothing of the payment can take money any more.
    Dead(Payment),
    /// The payment has money: paid or authorised.
    Money(Payment),
    /// An attempt may still charge.
    Unresolved {
        /// The payment.
        payment: Payment,
        /// From when it may be tried again.
        retry_at: Timestamp,
    },
}

impl Ledger {
    /// `POST …/close`. `None` where there is no such payment.
    pub async fn close(&self, tenant: &TenantId, id: &PaymentId) -> Result<Option<Ended>, FlowFault> {
        let until = Instant::now() + self.timing.answer_due;
        let Some(payment) = self.store.load(tenant, id).await? else { return Ok(None) };
        self.end_live(payment, until).await.map(Some)
    }

    /// Ends the live attempt, whatever it takes: a look-up first where its outcome is unknown, then the channel's close.
    pub(crate) async fn end_live(&self, mut payment: Payment, until: Instant) -> Result<Ended, FlowFault> {
        let Some(id) = payment.live().map(|attempt| attempt.id.clone()) else { return Ok(verdict(payment)) };
        let Some(attempt) = payment.attempt(&id).cloned() else { return Ok(verdict(payment)) };
        if attempt.status == AttemptStatus::Authorized {
            return Ok(Ended::Money(payment));
        }
        // Somebody is sending this very moment: whatever the channel says now may be overtaken.
        let sending = attempt.send.as_ref().map(|lease| lease.send_until).filter(|send_until| *send_until > self.now());
        if let Some(send_until) = sending {
            return Ok(Ended::Unresolved { payment, retry_at: send_until });
        }
        let account = self.accounts.required(&attempt.account).await?;
        let Some(method) = account.account.capability().method(Some(&attempt.method)) else { return Ok(verdict(payment)) };
        payment = self.look_up(payment, &attempt, &account, method).await?.0;
        if let Some(attempt) = payment.attempt(&id).filter(|attempt| attempt.is_live() && attempt.status != AttemptStatus::Authorized).cloned() {
            payment = match method.close {
                CloseKind::Close | CloseKind::CancelReturns => self.close_call(payment, &attempt, &account, until).await?,
                CloseKind::ExpiryOnly => payment,
            };
        }
        if let Some(attempt) = payment.attempt(&id).filter(|attempt| attempt.is_live() && attempt.status != AttemptStatus::Authorized) {
            let retry_at = match attempt.status {
                // The channel does not know it yet and the buyer may still act: only expiry ends that.
                AttemptStatus::Prepared | AttemptStatus::Pending | AttemptStatus::Unknown => {
                    attempt.due_at.unwrap_or_else(|| self.now()).min(attempt.expires_at.plus(method.expiry_margin))
                }
                AttemptStatus::Authorized | AttemptStatus::Succeeded | AttemptStatus::Declined | AttemptStatus::Closed => self.now(),
            };
            return Ok(Ended::Unresolved { payment, retry_at });
        }
        Ok(verdict(payment))
    }

    /// One close call and what it says. "Already paid" is looked up and adopted.
    pub(crate) async fn close_call(&self, payment: Payment, attempt: &Attempt, account: &Opened, until: Instant) -> Result<Payment, FlowFault> {
        let facts = order_facts(attempt);
        let Some(call) = account.account.close(&facts, self.now()) else { return Ok(payment) };
        let end = (Instant::now() + self.timing.channel_deadline).min(until.max(Instant::now()));
        let ran = driver::run(self.transport.as_ref(), call, Deadlines { write_by: end, answer_by: end }).await;
        tracing::info!(payment = %payment.id, attempt = %attempt.id, channel = %attempt.channel, status = ran.status, outcome = ?ran.outcome, "close sent");
        let outcome = match ran.outcome {
            CloseOutcome::Closed => Outcome::Closed,
            CloseOutcome::Returned(taken) => {
                // The money that had been taken went back in the same call: for us it never came.
                tracing::info!(payment = %payment.id, attempt = %attempt.id, txn = %taken.txn, "cancel returned the money");
                Outcome::Closed
            }
            CloseOutcome::AlreadyPaid => {
                let Some(method) = account.account.capability().method(Some(&attempt.method)) else { return Ok(payment) };
                return Ok(self.look_up(payment, attempt, account, method).await?.0);
            }
            CloseOutcome::Absent => Outcome::AbsentYet,
            CloseOutcome::Refused(failure) => Outcome::Unknown(failure.message),
            CloseOutcome::NotSent(why) => Outcome::NotSent(why),
            CloseOutcome::Unknown(why) => Outcome::Unknown(why),
        };
        let seen = Observation { attempt: attempt.id.clone(), outcome, source: Source::Answer, action: None };
        let after = self.observe(&payment.tenant, &payment.id, &seen).await?;
        Ok(after.unwrap_or(payment))
    }
}

fn verdict(payment: Payment) -> Ended {
    let money = payment.paid_attempt().is_some()
        || payment.attempts.iter().any(|attempt| attempt.status == AttemptStatus::Authorized && !attempt.released);
    if money { Ended::Money(payment) } else { Ended::Dead(payment) }
}
