//! Sending an attempt (and, in `refund`, a refund), and asking what became of it. One sender at a time (I3): the lease is part of the payment and stored
//! before a byte is written.
//!
//! In: a payment whose attempt or refund is to be resolved. Out: the payment as it then is. Never: a new reference.

mod refund;

use std::time::Duration;

use payonce_channels::contract::{Idempotency, MethodCapability, OrderFacts, Step};
use payonce_channels::driver;
use payonce_channels::transport::Deadlines;
use payonce_core::attempt::{Attempt, AttemptStatus, SendLease};
use payonce_core::clock::Timestamp;
use payonce_core::id::AttemptId;
use payonce_core::outcome::{Outcome, Source};
use payonce_core::payment::Payment;
use payonce_core::payment::observe::{self, Observation};
use payonce_failpoint as failpoint;
use serde_json::json;
use tokio::time::Instant;

use crate::accounts::Opened;
use crate::ledger::{FlowFault, Ledger};

/// The moment a lease was decided on, by both clocks: the monotonic one is read first, so that writing ends before the lease does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    monotonic: Instant,
    /// The wall clock.
    pub(crate) now: Timestamp,
}

/// Whether a look-up is one of the growing schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looks {
    /// It is: the next one comes later.
    Counted,
    /// Somebody asked out of turn: the schedule stays as it is.
    Asked,
}

/// What a look-up saw.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The observation.
    pub(crate) seen: Observation,
    /// Whether the channel answered that there is no such order.
    pub(crate) absent: bool,
    /// How long the channel asked to be left alone.
    wait: Duration,
}

impl Ledger {
    pub(crate) fn started(&self) -> Started {
        Started { monotonic: Instant::now(), now: self.now() }
    }

    /// Spreads what would otherwise come at once: up to a fifth of the first look-up's interval.
    pub(crate) fn jitter(&self) -> Duration {
        let share = u32::from(payonce_core::clock::random::<1>(self.entropy.as_ref())[0]);
        self.timing.first_look_up / 5 * share / 256
    }

    fn deadlines(&self, started: Started) -> Deadlines {
        let end = started.monotonic + self.timing.channel_deadline;
        Deadlines { write_by: end, answer_by: end }
    }

    /// A lease that follows on `before`.
    pub(crate) fn lease(&self, before: Option<&SendLease>, started: Started) -> SendLease {
        SendLease {
            sender: format!("{}/{}", self.node, hex_of(&payonce_core::clock::random::<6>(self.entropy.as_ref()))),
            first_sent_at: before.map_or(started.now, |lease| lease.first_sent_at),
            send_until: started.now.plus(self.timing.channel_deadline),
            sends: before.map_or(1, |lease| lease.sends.saturating_add(1)),
            // Until the answer is there, and for ever if it does not come.
            unanswered: before.map_or(1, |lease| lease.unanswered.saturating_add(1)),
            not_before: None,
        }
    }

    /// The first send of an attempt whose lease was stored with it, or a resend whose lease was just taken; `step` was made of its stored
    /// content. Stores what came of it.
    pub(crate) async fn send_attempt(
        &self,
        payment: &Payment,
        attempt: &Attempt,
        step: Step<Outcome>,
        started: Started,
    ) -> Result<Payment, FlowFault> {
        let (outcome, wait) = match step {
            Step::Local(outcome) => (outcome, None),
            Step::Call(call) => {
                let ran = driver::run(self.transport.as_ref(), call, self.deadlines(started)).await;
                tracing::info!(payment = %payment.id, attempt = %attempt.id, channel = %attempt.channel, status = ran.status,
                    outcome = observe::name(&ran.outcome), "charge sent");
                failpoint::hit("charge.request_sent").await;
                (ran.outcome, ran.retry_after)
            }
        };
        // A refusal of a repeat says nothing of the first: the attempt is looked up instead.
        let repeat = attempt.send.as_ref().is_some_and(|lease| lease.sends > 1);
        let outcome = match outcome {
            Outcome::NotAccepted(failure) if repeat => Outcome::Unknown(format!("a repeat was refused: {}", failure.message)),
            other => other,
        };
        failpoint::hit("charge.answer_read").await;
        let payment = self.store_answer(payment, attempt, outcome, wait).await?;
        failpoint::hit("charge.result_stored").await;
        Ok(payment)
    }

    /// Takes the send lease for a resend. `None` where somebody else holds it or the attempt has moved on.
    async fn take_lease(&self, payment: &Payment, id: &AttemptId, started: Started) -> Result<Option<(Payment, Attempt)>, FlowFault> {
        let mut taken = None;
        let after = self
            .change(&payment.tenant, &payment.id, None, |draft| {
                taken = None;
                let Some(index) = draft.after.attempts.iter().position(|attempt| &attempt.id == id) else { return };
                let attempt = &draft.after.attempts[index];
                let held = attempt.send.as_ref().is_some_and(|lease| !lease.is_free(started.now));
                if !attempt.is_live() || held {
                    return;
                }
                let lease = self.lease(attempt.send.as_ref(), started);
                draft.note("sending", None, sending("attempt", id.as_str(), Some(&lease)));
                draft.after.attempts[index].send = Some(lease);
                taken = Some(draft.after.attempts[index].clone());
            })
            .await?;
        Ok(after.zip(taken))
    }

    /// Stores what an answer says, and gives the send lease back: the request has ended, so the next resend need not wait for the lease's time,
    /// only for what the channel asked for.
    async fn store_answer(
        &self,
        payment: &Payment,
        sent: &Attempt,
        outcome: Outcome,
        wait: Option<Duration>,
    ) -> Result<Payment, FlowFault> {
        let (id, sender) = (&sent.id, sender_of(sent.send.as_ref()));
        let now = self.now();
        let action = self.seal_action(id.as_str(), &outcome);
        let seen = Observation { attempt: id.clone(), outcome, source: Source::Answer, action };
        let not_before = wait.map(|wait| now.plus(wait));
        let pause = self.jitter();
        let after = self
            .change(&payment.tenant, &payment.id, None, |draft| {
                draft.note(
                    "answered",
                    Some(Source::Answer),
                    json!({ "attempt": id, "outcome": observe::name(&seen.outcome), "retry_at": not_before }),
                );
                observe::observe(draft, &seen, self.surplus);
                let Some(attempt) = draft.after.attempts.iter_mut().find(|attempt| &attempt.id == id) else { return };
                if let Some(lease) = &mut attempt.send {
                    lease.ended(sender, now, not_before, is_definite(&seen.outcome));
                }
                if attempt.status.is_live() {
                    let due = self.timing.attempt_due(attempt, now).plus(pause);
                    attempt.due_at = Some(not_before.map_or(due, |wait| due.max(wait)));
                }
            })
            .await?;
        Ok(after.unwrap_or_else(|| payment.clone()))
    }

    /// Finds out what became of an attempt: asks the channel, and where nothing is there and a resend is safe, sends the same content again.
    /// `until`: the caller wants an answer by then.
    pub(crate) async fn resolve_attempt(&self, payment: Payment, id: &AttemptId, until: Instant) -> Result<Payment, FlowFault> {
        let Some(attempt) = payment.attempt(id).cloned() else { return Ok(payment) };
        let account = self.accounts.required(&attempt.account).await?;
        let Some(method) = account.account.capability().method(Some(&attempt.method)) else { return Ok(payment) };
        let (payment, absent) = self.look_up(payment, &attempt, &account, method).await?;
        let Some(attempt) = payment.attempt(id).cloned() else { return Ok(payment) };
        if Instant::now() >= until || !self.may_resend(&attempt, method, absent) {
            return Ok(payment);
        }
        let started = self.started();
        let Some((payment, attempt)) = self.take_lease(&payment, id, started).await? else { return self.reload(payment).await };
        let content = self.open_content(attempt.id.as_str(), &attempt.content)?;
        let step = account.account.charge(&attempt.method, &content, started.now);
        let payment = self.send_attempt(&payment, &attempt, step, started).await?;
        // The repeat may have met what the first one did ("already paid"): then one more look tells.
        match payment.attempt(id) {
            Some(after) if after.status == AttemptStatus::Unknown && Instant::now() < until => {
                let after = after.clone();
                Ok(self.look_up(payment, &after, &account, method).await?.0)
            }
            Some(_) | None => Ok(payment),
        }
    }

    async fn reload(&self, payment: Payment) -> Result<Payment, FlowFault> {
        Ok(self.store.load(&payment.tenant, &payment.id).await?.unwrap_or(payment))
    }

    /// One look-up, stored. The second value says whether the channel answered that there is no such order.
    pub(crate) async fn look_up(
        &self,
        payment: Payment,
        attempt: &Attempt,
        account: &Opened,
        method: &MethodCapability,
    ) -> Result<(Payment, bool), FlowFault> {
        match self.ask(&payment, attempt, account, method).await {
            Some(asked) => Ok((self.store_look_up(payment, &asked, Looks::Counted).await?, asked.absent)),
            None => Ok((payment, false)),
        }
    }

    /// Asks the channel what became of an attempt; nothing is stored. `None` where the channel has no look-up.
    pub(crate) async fn ask(&self, payment: &Payment, attempt: &Attempt, account: &Opened, method: &MethodCapability) -> Option<Asked> {
        let call = account.account.query(&order_facts(attempt), self.now())?;
        let ran = driver::run(self.transport.as_ref(), call, self.deadlines(self.started())).await;
        tracing::info!(payment = %payment.id, attempt = %attempt.id, channel = %attempt.channel, status = ran.status,
            outcome = observe::name(&ran.outcome), "looked up");
        let (outcome, absent) = match ran.outcome {
            Outcome::AbsentYet | Outcome::AbsentFinal if absence_is_final(attempt, method, self.now()) => (Outcome::AbsentFinal, true),
            Outcome::AbsentYet | Outcome::AbsentFinal => (Outcome::AbsentYet, true),
            // A look-up that failed says nothing about the order.
            Outcome::NotAccepted(failure) => (Outcome::Unknown(failure.message), false),
            other => (other, false),
        };
        let action = self.seal_action(attempt.id.as_str(), &outcome);
        let seen = Observation { attempt: attempt.id.clone(), action, outcome, source: Source::LookUp };
        Some(Asked { seen, absent, wait: ran.retry_after.unwrap_or(Duration::ZERO) })
    }

    /// Stores what a look-up saw.
    pub(crate) async fn store_look_up(&self, payment: Payment, asked: &Asked, looks: Looks) -> Result<Payment, FlowFault> {
        let (now, pause, seen) = (self.now(), self.jitter(), &asked.seen);
        let after = self
            .change(&payment.tenant, &payment.id, None, |draft| {
                draft.note("looked_up", Some(Source::LookUp), json!({ "attempt": seen.attempt, "outcome": observe::name(&seen.outcome) }));
                observe::observe(draft, seen, self.surplus);
                if let Some(attempt) = draft.after.attempts.iter_mut().find(|row| row.id == seen.attempt) {
                    if looks == Looks::Asked {
                        return;
                    }
                    attempt.looks = attempt.looks.saturating_add(1);
                    if attempt.status.is_live() {
                        attempt.due_at = Some(self.timing.attempt_due(attempt, now).plus(pause).max(now.plus(asked.wait)));
                    }
                }
            })
            .await?;
        Ok(after.unwrap_or(payment))
    }

    /// Whether the same content may be sent again now (I3): nobody else is sending, a repeat cannot become new money, it arrives inside the
    /// key window, and there is something to gain from it.
    fn may_resend(&self, attempt: &Attempt, method: &MethodCapability, absent: bool) -> bool {
        let now = self.now();
        let gains = match attempt.status {
            AttemptStatus::Prepared | AttemptStatus::Unknown => {
                absent || matches!(method.charge, Idempotency::ReplayOriginal | Idempotency::ReplayCurrent)
            }
            // The buyer's action was lost with the answer: entering again brings it back.
            AttemptStatus::Pending => {
                attempt.action.is_none() && attempt.failure.is_none() && method.charge == Idempotency::ReEntryWhileUnpaid && absent
            }
            AttemptStatus::Authorized | AttemptStatus::Succeeded | AttemptStatus::Declined | AttemptStatus::Closed => false,
        };
        let free = attempt.send.as_ref().is_none_or(|lease| lease.is_free(now));
        let payable = now < attempt.expires_at;
        gains
            && attempt.is_live()
            && free
            && payable
            && method.charge.is_safe_to_resend()
            && self.is_inside(attempt.send.as_ref(), method.window)
    }

    /// Whether a resend begun now arrives while the channel still recognises the reference.
    fn is_inside(&self, lease: Option<&SendLease>, window: Option<Duration>) -> bool {
        let (Some(lease), Some(window)) = (lease, window) else { return true };
        let latest = lease.first_sent_at.plus(window).minus(self.timing.resend_margin);
        self.now().plus(self.timing.channel_deadline) < latest
    }
}

/// The timeline's entry of a request that is about to be sent. The sender makes it unlike any other.
pub(crate) fn sending(what: &str, id: &str, lease: Option<&SendLease>) -> serde_json::Value {
    let (sender, sends) = lease.map_or(("", 0), |lease| (lease.sender.as_str(), lease.sends));
    json!({ what: id, "sender": sender, "sends": sends, "send_until": lease.map(|lease| lease.send_until.to_string()) })
}

/// What a look-up or close needs of an attempt.
pub(crate) fn order_facts(attempt: &Attempt) -> OrderFacts {
    OrderFacts {
        channel_ref: attempt.channel_ref.clone(),
        channel_txn: attempt.channel_txn.clone(),
        method: attempt.method.clone(),
        amount: attempt.amount,
    }
}

/// When "not found" is final (I3): after the send lease and the method's time, or once the channel takes no money for the order any more.
pub(crate) fn absence_is_final(attempt: &Attempt, method: &MethodCapability, now: Timestamp) -> bool {
    let sending = attempt.send.as_ref().map(|lease| lease.send_until);
    if sending.is_some_and(|until| now <= until) {
        return false;
    }
    let expired = now >= attempt.expires_at.plus(method.expiry_margin);
    let Some((after, until)) = method.not_found_final_after.zip(sending) else { return expired };
    let under_way = attempt.send.as_ref().is_none_or(|lease| lease.unanswered > 0) && now < until.plus(after);
    // Declined, every send of it answered, and nothing left at the channel: that was the end of it.
    let declined = attempt.failure.is_some() && !under_way;
    // While the content may still be sent again, absence only means that it has to be.
    expired || declined || (!under_way && !method.charge.is_safe_to_resend())
}

fn sender_of(lease: Option<&SendLease>) -> &str {
    lease.map_or("", |lease| lease.sender.as_str())
}

/// Whether an answer says what became of the order, so that its request is no longer under way.
fn is_definite(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Waiting { .. }
        | Outcome::Paid(_)
        | Outcome::Authorized(_)
        | Outcome::Declined(_)
        | Outcome::DeclinedOpen(_)
        | Outcome::Closed
        | Outcome::NotAccepted(_)
        | Outcome::NotSent(_) => true,
        Outcome::AbsentFinal | Outcome::AbsentYet | Outcome::InProgress | Outcome::Unknown(_) => false,
    }
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
