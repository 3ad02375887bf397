//! Reconcile: what is due is asked for, finished or ended. Several nodes share the list.
//!
//! In: a tick. Out: a report. Never: silence treated as failure.

use payonce_channels::contract::CloseKind;
use payonce_core::attempt::{Attempt, AttemptStatus};
use payonce_core::id::{AttemptId, PaymentId, RefundId, TenantId};
use payonce_core::outcome::{Outcome, Source};
use payonce_core::payment::{Payment, Review};
use serde_json::json;
use tokio::time::Instant;

use crate::ledger::{FlowFault, Ledger};
use crate::send::Looks;

/// Payments of one round.
const BATCH: usize = 32;

/// What one round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Payments that were looked at.
    pub looked: usize,
    /// Of these, those that moved.
    pub moved: usize,
    /// Those that could not be looked at now.
    pub failed: usize,
}

impl Report {
    /// Whether a full batch was taken, so that more may be due.
    pub const fn is_full(&self) -> bool {
        self.looked >= BATCH
    }
}

impl Ledger {
    /// One round over due payments, side by side.
    pub async fn reconcile_once(&self) -> Result<Report, FlowFault> {
        let due = self.store.take_due(self.now(), self.timing.hold, BATCH).await?;
        let mut report = Report { looked: due.len(), ..Report::default() };
        let rounds = due.iter().map(|(tenant, id)| self.reconcile_held(tenant, id));
        for result in futures_util::future::join_all(rounds).await {
            match result {
                Ok(true) => report.moved += 1,
                Ok(false) => {}
                Err(why) => {
                    report.failed += 1;
                    tracing::warn!(%why, "a due payment could not be looked at");
                }
            }
        }
        Ok(report)
    }

    async fn reconcile_held(&self, tenant: &TenantId, id: &PaymentId) -> Result<bool, FlowFault> {
        // After a fault it stays held: without a new due time it would come again at once.
        let moved = self.reconcile_payment(tenant, id).await?;
        self.store.let_go(tenant, id).await?;
        Ok(moved)
    }

    /// Everything of one payment that is due. Whether its status moved.
    pub async fn reconcile_payment(&self, tenant: &TenantId, id: &PaymentId) -> Result<bool, FlowFault> {
        let Some(payment) = self.store.load(tenant, id).await? else { return Ok(false) };
        let now = self.now();
        let until = Instant::now() + self.timing.channel_deadline;
        let was = payment.version;
        let attempts: Vec<AttemptId> =
            payment.attempts.iter().filter(|row| row.due_at.is_some_and(|due| due <= now)).map(|row| row.id.clone()).collect();
        let refunds: Vec<RefundId> =
            payment.refunds.iter().filter(|row| row.due_at.is_some_and(|due| due <= now)).map(|row| row.id.clone()).collect();
        let mut payment = if payment.switching_until.is_some_and(|until| until <= now) { self.end_switch(payment).await? } else { payment };
        for attempt in &attempts {
            payment = self.reconcile_attempt(payment, attempt, until).await?;
        }
        for refund in &refunds {
            payment = self.resolve_refund(payment, refund, until).await?;
            payment = self.postpone_refund(payment, refund).await?;
        }
        Ok(payment.version != was)
    }

    /// `POST …/sync`: asks the channel now, due or not. `None` where there is no such payment.
    pub async fn sync(&self, tenant: &TenantId, id: &PaymentId) -> Result<Option<Payment>, FlowFault> {
        let Some(mut payment) = self.store.load(tenant, id).await? else { return Ok(None) };
        let until = Instant::now() + self.timing.answer_due;
        if let Some(attempt) = payment.live().map(|attempt| attempt.id.clone()) {
            payment = self.reconcile_attempt(payment, &attempt, until).await?;
        }
        if let Some(paid) = payment.paid_attempt().cloned() {
            payment = self.look_at_paid(payment, &paid).await?;
        }
        let open: Vec<RefundId> = payment.open_refunds().map(|refund| refund.id.clone()).collect();
        for refund in &open {
            payment = self.resolve_refund(payment, refund, until).await?;
        }
        Ok(Some(payment))
    }

    /// A switch that never came to its new attempt: what the payment is without it counts again.
    async fn end_switch(&self, payment: Payment) -> Result<Payment, FlowFault> {
        let now = self.now();
        let after = self
            .change(&payment.tenant, &payment.id, None, |draft| {
                draft.after.switching_until = draft.after.switching_until.filter(|until| *until > now);
            })
            .await?;
        Ok(after.unwrap_or(payment))
    }

    /// A paid order that the channel calls closed has gone back whole or been taken back, without a word that we know of: a person has to look.
    async fn look_at_paid(&self, payment: Payment, paid: &Attempt) -> Result<Payment, FlowFault> {
        let account = self.accounts.required(&paid.account).await?;
        let Some(method) = account.account.capability().method(Some(&paid.method)) else { return Ok(payment) };
        let Some(asked) = self.ask(&payment, paid, &account, method).await else { return Ok(payment) };
        let payment = self.store_look_up(payment, &asked, Looks::Asked).await?;
        let all_back = payment.refunded().minor >= payment.captured().minor;
        if !matches!(asked.seen.outcome, Outcome::Closed) || all_back {
            return Ok(payment);
        }
        let after = self
            .change(&payment.tenant, &payment.id, None, |draft| {
                if draft.after.review.is_some() {
                    return;
                }
                let detail = format!("attempt {} is paid here and closed at the channel: look for a refund made there", paid.id);
                draft.note("review", Some(Source::LookUp), json!({ "code": "closed_after_paid", "detail": detail }));
                draft.after.review = Some(Review { code: "closed_after_paid".to_owned(), detail });
            })
            .await?;
        Ok(after.unwrap_or(payment))
    }

    async fn reconcile_attempt(&self, payment: Payment, id: &AttemptId, until: Instant) -> Result<Payment, FlowFault> {
        let mut payment = self.resolve_attempt(payment, id, until).await?;
        let Some(attempt) = payment.attempt(id).filter(|attempt| attempt.status.is_live()).cloned() else { return Ok(payment) };
        let now = self.now();
        if now >= attempt.expires_at && matches!(attempt.status, AttemptStatus::Pending | AttemptStatus::Unknown) {
            let account = self.accounts.required(&attempt.account).await?;
            let method = account.account.capability().method(Some(&attempt.method));
            payment = match method.map(|method| method.close) {
                Some(CloseKind::Close | CloseKind::CancelReturns) => self.close_call(payment, &attempt, &account, until).await?,
                Some(CloseKind::ExpiryOnly) | None => payment,
            };
        }
        self.postpone_attempt(payment, id).await
    }

    /// Whatever came of the look: the next one is later, and an outcome that stays unknown too long is shown to a person (it stays live).
    async fn postpone_attempt(&self, payment: Payment, id: &AttemptId) -> Result<Payment, FlowFault> {
        let now = self.now();
        let after = self
            .change(&payment.tenant, &payment.id, None, |draft| {
                let stale = self.timing.unresolved_after;
                let Some(index) = draft.after.attempts.iter().position(|row| &row.id == id) else { return };
                let row = &mut draft.after.attempts[index];
                if row.due_at.is_some_and(|due| due <= now) {
                    row.looks = row.looks.saturating_add(1);
                    row.due_at = row.status.is_live().then(|| self.timing.attempt_due(row, now));
                }
                let unresolved = matches!(row.status, AttemptStatus::Prepared | AttemptStatus::Unknown) && row.is_live();
                if unresolved && now >= row.created_at.plus(stale) && draft.after.review.is_none() {
                    let detail = format!("attempt {id} has had no known outcome since {}", draft.after.attempts[index].created_at);
                    draft.note("review", None, json!({ "code": "unresolved", "detail": detail }));
                    draft.after.review = Some(Review { code: "unresolved".to_owned(), detail });
                }
            })
            .await?;
        Ok(after.unwrap_or(payment))
    }

    async fn postpone_refund(&self, payment: Payment, id: &RefundId) -> Result<Payment, FlowFault> {
        let now = self.now();
        let after = self
            .change(&payment.tenant, &payment.id, None, |draft| {
                let Some(row) = draft.after.refunds.iter_mut().find(|row| &row.id == id) else { return };
                if row.due_at.is_some_and(|due| due <= now) {
                    row.looks = row.looks.saturating_add(1);
                    row.due_at = row.status.is_open().then(|| self.timing.next_look_up(row.looks, now));
                }
            })
            .await?;
        Ok(after.unwrap_or(payment))
    }
}
