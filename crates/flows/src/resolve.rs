//! Resolve: an operator ends an unknown, with evidence. Audited; the rules of the transition hold for operators too.
//!
//! In: a payment or refund, an outcome, evidence. Out: the payment as it then is. Never: anything but an unknown outcome or a review ended.

use payonce_core::attempt::AttemptStatus;
use payonce_core::failure::Failure;
use payonce_core::id::{PaymentId, RefundId, TenantId};
use payonce_core::outcome::{Outcome, RefundOutcome, Source, Taken};
use payonce_core::payment::Payment;
use payonce_core::payment::observe::{self, Observation};
use payonce_core::payment::refunds;
use payonce_core::refund::RefundStatus;
use serde_json::json;

use crate::ledger::{FlowFault, Ledger};

/// What the operator found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The channel has done it.
    Succeeded,
    /// The channel has not done it and never will.
    NeverHappened,
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum Resolved {
    /// Ended.
    Done(Payment),
    /// There was nothing unknown to end.
    NothingToResolve(Payment),
    /// A request may still be on its way to the channel, until then.
    Sending {
        /// The payment.
        payment: Payment,
        /// Until when.
        until: payonce_core::Timestamp,
    },
    /// There is no such payment or refund.
    Missing,
}

impl Ledger {
    /// Ends the live attempt of a payment whose outcome is unknown, or a review whose attempt is not.
    pub async fn resolve_payment(
        &self,
        tenant: &TenantId,
        id: &PaymentId,
        verdict: Verdict,
        evidence: &str,
    ) -> Result<Resolved, FlowFault> {
        let Some(payment) = self.store.load(tenant, id).await? else { return Ok(Resolved::Missing) };
        let live = payment.live().cloned();
        if live.as_ref().is_none_or(|attempt| !may_be_resolved(attempt.status)) && payment.review.is_none() {
            return Ok(Resolved::NothingToResolve(payment));
        }
        if let Some(until) =
            live.as_ref().and_then(|attempt| attempt.send.as_ref()).map(|lease| lease.send_until).filter(|until| *until > self.now())
        {
            return Ok(Resolved::Sending { payment, until });
        }
        let after = self
            .change(tenant, id, None, |draft| {
                draft.note("resolved", Some(Source::Operator), json!({ "outcome": format!("{verdict:?}"), "evidence": evidence }));
                draft.after.review = None;
                let Some(attempt) = draft.after.live().filter(|attempt| may_be_resolved(attempt.status)).cloned() else { return };
                let outcome = match verdict {
                    Verdict::Succeeded => {
                        let txn = attempt.channel_txn.clone().unwrap_or_else(|| format!("{}{}", observe::OPERATOR_TXN, attempt.id));
                        Outcome::Paid(Taken { txn, amount: Some(attempt.amount), at: None })
                    }
                    Verdict::NeverHappened => Outcome::Closed,
                };
                let seen = Observation { attempt: attempt.id, outcome, source: Source::Operator, action: None };
                observe::observe(draft, &seen, self.surplus);
            })
            .await?;
        Ok(after.map_or(Resolved::Missing, Resolved::Done))
    }

    /// Ends a refund whose outcome is unknown.
    pub async fn resolve_refund_by_hand(
        &self,
        tenant: &TenantId,
        id: &RefundId,
        verdict: Verdict,
        evidence: &str,
    ) -> Result<Resolved, FlowFault> {
        let Some(payment_id) = self.store.find_refund(tenant, id).await? else { return Ok(Resolved::Missing) };
        let Some(payment) = self.store.load(tenant, &payment_id).await? else { return Ok(Resolved::Missing) };
        let Some(refund) = payment.refund(id).cloned() else { return Ok(Resolved::Missing) };
        if refund.status != RefundStatus::Unknown {
            return Ok(Resolved::NothingToResolve(payment));
        }
        if let Some(until) = refund.send.as_ref().map(|lease| lease.send_until).filter(|until| *until > self.now()) {
            return Ok(Resolved::Sending { payment, until });
        }
        let outcome = match verdict {
            Verdict::Succeeded => RefundOutcome::Succeeded { channel_refund_id: None },
            Verdict::NeverHappened => RefundOutcome::Failed(Failure::new("never_happened", "an operator found that it never happened")),
        };
        let after = self
            .change(tenant, &payment_id, None, |draft| {
                draft.note(
                    "resolved",
                    Some(Source::Operator),
                    json!({ "refund": id, "outcome": format!("{verdict:?}"), "evidence": evidence }),
                );
                refunds::observe_refund(draft, id, &outcome, Source::Operator, false);
            })
            .await?;
        Ok(after.map_or(Resolved::Missing, Resolved::Done))
    }
}

/// Only what nobody knows is an operator's to decide; a pending order is closed at the channel instead.
const fn may_be_resolved(status: AttemptStatus) -> bool {
    match status {
        AttemptStatus::Prepared | AttemptStatus::Unknown => true,
        AttemptStatus::Pending | AttemptStatus::Authorized | AttemptStatus::Succeeded | AttemptStatus::Declined | AttemptStatus::Closed => {
            false
        }
    }
}
