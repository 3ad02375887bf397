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
use payonce_core::payment::observe::{self, Observation};
use serde_json::json;
use tokio::time::Instant;

use crate::accounts::Opened;
use crate::ledger::{FlowFault, Ledger};
use crate::send::{Looks, order_facts};

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
        self.end_live(payment, Then::Nothing, until).await.map(Some)
    }

    /// Ends the live attempt, whatever it takes: a look-up first where its outcome is unknown, then the channel's close.
    pub(crate) async fn end_live(&self, mut payment: Payment, then: Then, until: Instant) -> Result<Ended, FlowFault> {
        let Some(attempt) = payment.live().cloned() else { return Ok(verdict(payment)) };
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
        let mut absent = false;
        if then == Then::NewAttempt {
            payment = self.begin_switch(payment).await?;
        }
        if let Some(asked) = self.ask(&payment, &attempt, &account, method).await {
            absent = asked.absent;
            payment = self.store_look_up(payment, &asked, Looks::Asked).await?;
        }
        let open = |payment: &Payment| {
            let attempt = payment.attempt(&attempt.id)?;
            (attempt.is_live() && attempt.status != AttemptStatus::Authorized).then(|| attempt.clone())
        };
        if let Some(attempt) = open(&payment)
            && let CloseKind::Close | CloseKind::CancelReturns = method.close
            && let Some(seen) = self.ask_to_close(&payment, &attempt, &account, until).await
        {
            payment = self.store_close(payment, &attempt, &account, seen).await?;
        }
        match open(&payment) {
            Some(attempt) => {
                let over = attempt.expires_at.plus(method.expiry_margin);
                // The channel does not know it yet and the buyer may still act: only expiry ends that.
                let retry_at = match method.not_found_final_after {
                    None if absent => over,
                    None | Some(_) => attempt.due_at.unwrap_or_else(|| self.now()).min(over),
                };
                Ok(Ended::Unresolved { payment, retry_at })
            }
            None => Ok(verdict(payment)),
        }
    }

    /// Says that a new attempt is to follow, so that the end of the old one, whoever tells it, is not told as the end of the payment. Should the
    /// switch not come to its end, the due list takes that back.
    async fn begin_switch(&self, payment: Payment) -> Result<Payment, FlowFault> {
        let until = self.now().plus(self.timing.answer_due + self.timing.channel_deadline);
        let after = self.change(&payment.tenant, &payment.id, None, |draft| draft.after.switching_until = Some(until)).await?;
        Ok(after.unwrap_or(payment))
    }

    /// One close call and what it says, stored.
    pub(crate) async fn close_call(
        &self,
        payment: Payment,
        attempt: &Attempt,
        account: &Opened,
        until: Instant,
    ) -> Result<Payment, FlowFault> {
        match self.ask_to_close(&payment, attempt, account, until).await {
            Some(seen) => self.store_close(payment, attempt, account, seen).await,
            None => Ok(payment),
        }
    }

    /// Asks the channel to end an order; nothing is stored. `None` where the channel has no such call.
    async fn ask_to_close(&self, payment: &Payment, attempt: &Attempt, account: &Opened, until: Instant) -> Option<Observation> {
        let call = account.account.close(&order_facts(attempt), self.now())?;
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
            // Paying won: a look-up tells the particulars.
            CloseOutcome::AlreadyPaid => Outcome::InProgress,
            CloseOutcome::Absent => Outcome::AbsentYet,
            CloseOutcome::Refused(failure) => Outcome::Unknown(failure.message),
            CloseOutcome::NotSent(why) => Outcome::NotSent(why),
            CloseOutcome::Unknown(why) => Outcome::Unknown(why),
        };
        Some(Observation { attempt: attempt.id.clone(), outcome, source: Source::Answer, action: None })
    }

    /// Stores what a close call said. Whatever it leaves open is looked up.
    async fn store_close(&self, payment: Payment, attempt: &Attempt, account: &Opened, seen: Observation) -> Result<Payment, FlowFault> {
        let after = self
            .change(&payment.tenant, &payment.id, None, |draft| {
                draft.note(
                    "close_answered",
                    Some(seen.source),
                    json!({ "attempt": seen.attempt, "outcome": observe::name(&seen.outcome) }),
                );
                if ends(&seen.outcome) {
                    observe::observe(draft, &seen, self.surplus);
                }
            })
            .await?;
        let payment = after.unwrap_or(payment);
        match account.account.capability().method(Some(&attempt.method)) {
            Some(method) if !ends(&seen.outcome) => match self.ask(&payment, attempt, account, method).await {
                Some(asked) => self.store_look_up(payment, &asked, Looks::Asked).await,
                None => Ok(payment),
            },
            Some(_) | None => Ok(payment),
        }
    }
}

/// What follows on an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The payment is closed.
    Nothing,
    /// A new attempt.
    NewAttempt,
}

/// Whether an outcome ends an attempt without money.
const fn ends(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Closed | Outcome::AbsentFinal | Outcome::Declined(_) => true,
        Outcome::Waiting { .. }
        | Outcome::Paid(_)
        | Outcome::Authorized(_)
        | Outcome::DeclinedOpen(_)
        | Outcome::AbsentYet
        | Outcome::NotAccepted(_)
        | Outcome::NotSent(_)
        | Outcome::InProgress
        | Outcome::Unknown(_) => false,
    }
}

fn verdict(payment: Payment) -> Ended {
    let money = payment.paid_attempt().is_some()
        || payment.attempts.iter().any(|attempt| attempt.status == AttemptStatus::Authorized && !attempt.released);
    if money { Ended::Money(payment) } else { Ended::Dead(payment) }
}
