//! Settle: an inbox row becomes a transition, with the row's mark in the same change.
//!
//! In: rows that were verified when they came. Out: a report. Never: acting on a notification twice.

use std::time::Duration;

use payonce_core::clock::Timestamp;
use payonce_core::failure::Failure;
use payonce_core::notification::{Booked, Facts, Notification, Reason, bind};
use payonce_core::outcome::{Outcome, Source, Taken};
use payonce_core::payment::change::InboxMark;
use payonce_core::payment::draft::Draft;
use payonce_core::payment::observe::{self, Observation};
use payonce_core::payment::refunds::{self, RefundSeen};
use payonce_core::payment::{Payment, Review};
use payonce_core::ports::inbox::{InboxRow, InboxStatus, InboxVerdict};
use payonce_failpoint as failpoint;
use serde_json::json;

use crate::ledger::{FlowFault, Ledger};

/// Rows of one round.
const BATCH: usize = 64;
/// How long a refund notice may wait for its payment to be known as paid.
const REFUND_WAITS_FOR_PAYMENT: Duration = Duration::from_secs(600);

/// What one round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Rows that changed a payment or were found to be of no consequence.
    pub settled: usize,
    /// Rows that match no payment yet.
    pub unmatched: usize,
    /// Rows that are not ours.
    pub foreign: usize,
    /// Rows to be tried again.
    pub again: usize,
}

impl Report {
    /// Whether a full batch was taken, so that more may wait.
    pub const fn is_full(&self) -> bool {
        self.settled + self.unmatched + self.foreign + self.again >= BATCH
    }
}

impl Ledger {
    /// One round over waiting rows.
    pub async fn settle_once(&self) -> Result<Report, FlowFault> {
        let mut report = Report::default();
        for row in self.store.take_waiting(self.now(), self.timing.hold, BATCH).await? {
            let done = match self.settle_row(&row).await {
                Ok(status) => status,
                Err(why) => {
                    tracing::warn!(inbox = %row.id, %why, "a notification could not be settled yet");
                    self.postpone(&row, &why.to_string()).await?
                }
            };
            match done {
                InboxStatus::Settled => report.settled += 1,
                InboxStatus::Unmatched => report.unmatched += 1,
                InboxStatus::Foreign => report.foreign += 1,
                InboxStatus::Waiting => report.again += 1,
            }
        }
        Ok(report)
    }

    async fn settle_row(&self, row: &InboxRow) -> Result<InboxStatus, FlowFault> {
        let event = &row.notification;
        let account = self.accounts.required(&row.account).await?;
        let ours = account.account.merchant();
        let found = match &event.channel_ref {
            Some(channel_ref) => self.store.find_attempt(&row.tenant, &row.account, channel_ref).await?,
            None => None,
        };
        let payment = match &found {
            Some(id) => self.store.load(&row.tenant, id).await?,
            None => None,
        };
        let attempt = payment
            .as_ref()
            .zip(event.channel_ref.as_deref())
            .and_then(|(payment, channel_ref)| payment.attempt_by_ref(&row.account, channel_ref));
        let booked = attempt.map(|attempt| Booked { amount: attempt.amount });
        let fit = bind(event, &ours, booked, account.account.capability().single_currency);
        let (Some(payment), Some(attempt)) = (payment.as_ref(), attempt) else {
            return match fit {
                Err(Reason::WrongMerchant) => self.judge(row, InboxStatus::Foreign, "addressed to another merchant", None).await,
                Ok(()) | Err(_) => self.unmatched(row).await,
            };
        };
        let mismatch = match fit {
            Ok(()) => None,
            Err(Reason::WrongMerchant) => {
                // B057: authentic, but somebody else was paid. Both values are kept for a person to look at; nothing moves.
                return self.judge(row, InboxStatus::Foreign, &other_merchant(event, &ours), None).await;
            }
            Err(reason) => Some(reason),
        };
        if self.must_wait_for_payment(row, payment, attempt.status.is_live()) {
            self.look_soon(payment, &attempt.id).await?;
            return self
                .judge(
                    row,
                    InboxStatus::Waiting,
                    "a refund notice that came before the payment was known",
                    Some(self.now().plus(Duration::from_secs(2))),
                )
                .await;
        }
        let id = attempt.id.clone();
        let mark = InboxMark { id: row.id.clone(), note: mismatch.map(|reason| format!("{reason:?}")) };
        self.change(&row.tenant, &payment.id, Some(&mark), |draft| apply(draft, &id, event, mismatch, self.surplus)).await?;
        failpoint::hit("settle.applied").await;
        Ok(InboxStatus::Settled)
    }

    /// A refund notice for an attempt that is still open with us: the payment's own notice is late or lost. The channel is asked, and the
    /// notice waits for a while; in the end it is booked as it is.
    fn must_wait_for_payment(&self, row: &InboxRow, payment: &Payment, attempt_is_live: bool) -> bool {
        let refund = matches!(row.notification.facts, Facts::Refund { .. });
        refund && attempt_is_live && payment.paid_attempt().is_none() && self.now() < row.received_at.plus(REFUND_WAITS_FOR_PAYMENT)
    }

    async fn look_soon(&self, payment: &Payment, attempt: &payonce_core::id::AttemptId) -> Result<(), FlowFault> {
        let now = self.now();
        self.change(&payment.tenant, &payment.id, None, |draft| {
            if let Some(row) = draft.after.attempts.iter_mut().find(|row| &row.id == attempt && row.is_live()) {
                row.due_at = Some(now);
            }
        })
        .await?;
        Ok(())
    }

    async fn unmatched(&self, row: &InboxRow) -> Result<InboxStatus, FlowFault> {
        let now = self.now();
        if now >= row.received_at.plus(self.timing.unmatched_for) {
            return self.judge(row, InboxStatus::Foreign, "matched no payment for 24 hours", None).await;
        }
        let next = self.backoff(row.tries, now);
        self.judge(row, InboxStatus::Unmatched, "matches no payment", Some(next)).await
    }

    async fn postpone(&self, row: &InboxRow, why: &str) -> Result<InboxStatus, FlowFault> {
        let next = self.backoff(row.tries, self.now());
        self.judge(row, InboxStatus::Waiting, why, Some(next)).await
    }

    /// 1 s, doubling, to ten minutes at most.
    fn backoff(&self, tries: u32, now: Timestamp) -> Timestamp {
        now.plus(Duration::from_secs(2u64.saturating_pow(tries.min(10)).min(600)))
    }

    async fn judge(
        &self,
        row: &InboxRow,
        status: InboxStatus,
        note: &str,
        next_try_at: Option<Timestamp>,
    ) -> Result<InboxStatus, FlowFault> {
        let verdict = InboxVerdict { status, note: note.to_owned(), next_try_at };
        self.store.judge(&row.tenant, &row.id, &verdict).await?;
        Ok(status)
    }

    /// Tries a row again now, for an operator.
    pub async fn retry_inbox(&self, row: &InboxRow) -> Result<InboxStatus, FlowFault> {
        match row.status {
            InboxStatus::Settled => Ok(InboxStatus::Settled),
            InboxStatus::Waiting | InboxStatus::Unmatched | InboxStatus::Foreign => self.settle_row(row).await,
        }
    }
}

fn other_merchant(event: &Notification, ours: &[(String, String)]) -> String {
    format!("addressed to {:?}, we are {ours:?}", event.merchant)
}

/// The rule: what a bound notification does to its payment.
fn apply(
    draft: &mut Draft,
    attempt: &payonce_core::id::AttemptId,
    event: &Notification,
    mismatch: Option<Reason>,
    policy: payonce_core::payment::SurplusPolicy,
) {
    draft.note("notified", Some(Source::Notification), json!({ "attempt": attempt, "event": event.identity, "status": event.status }));
    if let Some(reason) = mismatch {
        review(draft, attempt, event, reason);
        return;
    }
    let outcome = match &event.facts {
        Facts::Paid { txn, at } => Outcome::Paid(Taken { txn: txn.clone(), amount: event.amount, at: *at }),
        Facts::Authorized { txn } => Outcome::Authorized(Taken { txn: txn.clone(), amount: event.amount, at: None }),
        Facts::Failed { channel_code, message, open } => {
            let failure = Failure::new("declined", message.clone()).with_channel_code(channel_code.clone());
            if *open { Outcome::DeclinedOpen(failure) } else { Outcome::Declined(failure) }
        }
        Facts::Closed => Outcome::Closed,
        Facts::Waiting => Outcome::Waiting { action: None, txn: None },
        Facts::Refund { refund_ref, channel_refund_id, amount, total, status } => {
            let seen = RefundSeen {
                refund_ref: refund_ref.as_deref(),
                channel_refund_id: channel_refund_id.as_deref(),
                amount: *amount,
                total: *total,
                status,
            };
            if let Some(attempt) = draft.after.attempt(attempt).cloned() {
                refunds::observe_refund_facts(draft, &attempt, &seen, Source::Notification);
            }
            return;
        }
        Facts::Other { what } => {
            draft.note("notification", Some(Source::Notification), json!({ "attempt": attempt, "what": what }));
            return;
        }
    };
    let seen = Observation { attempt: attempt.clone(), outcome, source: Source::Notification, action: None };
    observe::observe(draft, &seen, policy);
}

fn review(draft: &mut Draft, attempt: &payonce_core::id::AttemptId, event: &Notification, reason: Reason) {
    let code = match reason {
        Reason::AmountMismatch => "amount_mismatch",
        Reason::CurrencyMismatch => "currency_mismatch",
        Reason::MissingHeader
        | Reason::MissingField
        | Reason::Malformed
        | Reason::DuplicateParameter
        | Reason::Stale
        | Reason::Future
        | Reason::UnknownKey
        | Reason::CertUrlNotAllowed
        | Reason::UntrustedCertificate
        | Reason::AlgorithmNotAllowed
        | Reason::BadSignature
        | Reason::DecryptFailed
        | Reason::WrongMerchant
        | Reason::WrongIssuer
        | Reason::WrongMode
        | Reason::UnknownOrder
        | Reason::ReplayedTransmission => "notification_mismatch",
    };
    let booked = draft.after.attempt(attempt).map(|attempt| attempt.amount.to_string()).unwrap_or_default();
    let told =
        event.amount.map_or_else(|| event.currency_text.clone().unwrap_or_else(|| "nothing".to_owned()), |amount| amount.to_string());
    let detail = format!("attempt {attempt} is over {booked}, the channel says {told}");
    draft.note(
        "mismatch",
        Some(Source::Notification),
        json!({ "attempt": attempt, "code": code, "detail": detail, "status": event.status }),
    );
    draft.after.review = Some(Review { code: code.to_owned(), detail });
}
