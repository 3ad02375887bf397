//! Switch: a new attempt on another channel, or again after a decline. The live attempt is ended first; a second live one cannot be stored (I1).
//!
//! In: a planned charge for a payment that exists. Out: the new attempt, "already paid", or unresolved.

use payonce_core::id::PaymentId;
use payonce_core::payment::draft::Draft;
use payonce_core::payment::{Payment, PaymentStatus};
use serde_json::json;
use tokio::time::Instant;

use crate::charge::{Caller, Plan, Reply, is_unresolved, reply_for};
use crate::close::{Ended, Then};
use crate::ledger::{FlowFault, Ledger};

impl Ledger {
    /// `POST …/attempts`. `None` where there is no such payment. `force`: the merchant takes the risk that the old attempt still charges.
    pub async fn switch(&self, id: &PaymentId, plan: &Plan, force: bool, caller: &Caller) -> Result<Option<Reply>, FlowFault> {
        let until = Instant::now() + self.timing.answer_due;
        for _ in 0..8 {
            let Some(payment) = self.store.load(&plan.order().tenant, id).await? else { return Ok(None) };
            if let Some(reply) = self.switch_once(payment, plan, force, caller, until).await? {
                return Ok(Some(reply));
            }
        }
        Err(FlowFault::Busy)
    }

    async fn switch_once(
        &self,
        mut payment: Payment,
        plan: &Plan,
        force: bool,
        caller: &Caller,
        until: Instant,
    ) -> Result<Option<Reply>, FlowFault> {
        let made =
            payment.attempts.iter().rev().find(|attempt| attempt.made_by == caller.key && attempt.n > 1).map(|attempt| attempt.id.clone());
        if let Some(own) = made {
            if is_unresolved(&payment, &own) {
                payment = self.settle_now(payment, &own, until).await?;
            }
            return Ok(Some(reply_for(payment, &own)));
        }
        match payment.status {
            PaymentStatus::Paid | PaymentStatus::Authorized => return Ok(Some(Reply::Existing(payment))),
            PaymentStatus::Pending | PaymentStatus::Closed | PaymentStatus::Failed | PaymentStatus::Review => {}
        }
        if let Some(live) = payment.live() {
            let same = live.channel == plan.account().channel && live.account == plan.account().name && live.method == plan.method();
            if same && live.failure.is_none() && live.amount == plan.order().amount {
                return Ok(Some(Reply::Existing(payment)));
            }
        }
        let draft = match self.end_live(payment, Then::NewAttempt, until).await? {
            Ended::Dead(payment) => Draft::of(payment, self.now()),
            Ended::Money(payment) => return Ok(Some(Reply::Existing(payment))),
            Ended::Unresolved { payment, .. } if force => {
                let mut draft = Draft::of(payment, self.now());
                let released = draft.after.attempts.iter_mut().find(|attempt| attempt.is_live()).map(|attempt| {
                    attempt.released = true;
                    attempt.id.clone()
                });
                draft.note("force_surplus", None, json!({ "released": released, "key": caller.key }));
                draft
            }
            Ended::Unresolved { payment, retry_at } => return Ok(Some(Reply::AttemptUnresolved { payment, retry_at })),
        };
        self.next_attempt(plan, caller, draft, until).await
    }
}
