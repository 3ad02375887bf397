//! A payment in the making, for tests: every step goes through the rules, and after every step the invariants of the design hold.

use std::collections::{BTreeMap, BTreeSet};

use payonce_core::attempt::{Attempt, AttemptStatus, SendLease};
use payonce_core::channel::{AccountName, ChannelName};
use payonce_core::channel_ref::ChannelRef;
use payonce_core::clock::Timestamp;
use payonce_core::event::{Event, EventKind};
use payonce_core::failure::Failure;
use payonce_core::id::{AttemptId, MerchantRef, PaymentId, RefundId, TenantId};
use payonce_core::money::{Currency, Money};
use payonce_core::outcome::{Outcome, RefundOutcome, Source, Taken};
use payonce_core::payment::change::{AuditEntry, Change};
use payonce_core::payment::draft::Draft;
use payonce_core::payment::observe::{Observation, observe};
use payonce_core::payment::refunds::{RefundRefusal, RefundSeen, RefundStand, judge, observe_refund, observe_refund_facts, reserve};
use payonce_core::payment::{Payment, PaymentStatus, SurplusPolicy};
use payonce_core::refund::{Origin, Refund, RefundOf, RefundStatus};
use payonce_core::secret::{Sealed, sha256};

pub(crate) fn cny(minor: i64) -> Money {
    Money::new(minor, Currency::CNY)
}

pub(crate) fn paid(txn: &str) -> Outcome {
    Outcome::Paid(Taken { txn: txn.to_owned(), amount: Some(cny(10_000)), at: None })
}

pub(crate) fn paid_over(txn: &str, amount: Option<Money>) -> Outcome {
    Outcome::Paid(Taken { txn: txn.to_owned(), amount, at: None })
}

pub(crate) fn authorized(txn: &str) -> Outcome {
    Outcome::Authorized(Taken { txn: txn.to_owned(), amount: Some(cny(10_000)), at: None })
}

pub(crate) fn waiting() -> Outcome {
    Outcome::Waiting { action: None, txn: None }
}

pub(crate) fn no() -> Failure {
    Failure::new("declined", "the card was refused").with_channel_code("51")
}

pub(crate) fn refunded() -> RefundOutcome {
    RefundOutcome::Succeeded { channel_refund_id: None }
}

/// A payment of 100.00 CNY and all that was told and noted of it.
pub(crate) struct Story {
    pub(crate) payment: Payment,
    pub(crate) events: Vec<Event>,
    pub(crate) timeline: Vec<AuditEntry>,
    policy: SurplusPolicy,
    drawn: u64,
    now: Timestamp,
}

impl Story {
    /// With one prepared attempt on `wechat`.
    pub(crate) fn new() -> Self {
        Self::under(SurplusPolicy::Refund)
    }

    pub(crate) fn under(policy: SurplusPolicy) -> Self {
        let now = Timestamp::from_unix(1_767_225_600);
        let payment = Payment {
            tenant: TenantId::parse("m1").expect("a tenant"),
            id: PaymentId::derived(&sha256(b"payment")),
            order_id: MerchantRef::parse("O1").expect("an order"),
            version: 0,
            status: PaymentStatus::Pending,
            review: None,
            amount: cny(10_000),
            description: None,
            return_url: None,
            notify_url: None,
            metadata: BTreeMap::new(),
            attempts: Vec::new(),
            captures: Vec::new(),
            refunds: Vec::new(),
            surpluses: Vec::new(),
            switching_until: None,
            audit_len: 0,
            audit_head: [0; 32],
            created_at: now,
            updated_at: now,
        };
        let mut story = Self { payment: payment.clone(), events: Vec::new(), timeline: Vec::new(), policy, drawn: 0, now };
        let first = story.attempt("wechat");
        let mut draft = Draft::new(payment, now);
        draft.after.attempts.push(first);
        draft.note("created", None, serde_json::json!({}));
        let change = draft.finish(None).expect("a new payment is a change");
        assert_eq!((change.seen, change.payment.version), (None, 1));
        story.land(change);
        story
    }

    /// With its first attempt paid.
    pub(crate) fn paid() -> Self {
        let mut story = Self::new();
        story.see(0, paid("T1"));
        assert_eq!(story.payment.status, PaymentStatus::Paid);
        story
    }

    fn draw(&mut self, what: &str) -> [u8; 32] {
        self.drawn += 1;
        sha256(format!("{what}/{}", self.drawn).as_bytes())
    }

    fn attempt(&mut self, channel: &str) -> Attempt {
        let digest = self.draw("attempt");
        Attempt {
            id: AttemptId::derived(&digest),
            n: u32::try_from(self.payment.attempts.len() + 1).expect("few attempts"),
            channel: ChannelName::parse(channel).expect("a channel"),
            account: AccountName::parse(&format!("{channel}-1")).expect("an account"),
            method: "qr".to_owned(),
            channel_ref: ChannelRef::parse(&hex(&digest)).expect("a reference"),
            amount: self.payment.amount,
            manual_capture: false,
            status: AttemptStatus::Prepared,
            released: false,
            channel_txn: None,
            failure: None,
            content: Sealed::from_bytes(vec![1]),
            action: None,
            send: Some(self.lease()),
            made_by: "k1".to_owned(),
            created_at: self.now,
            expires_at: Timestamp(self.now.0 + 900_000),
            looks: 0,
            due_at: Some(self.now),
        }
    }

    fn lease(&self) -> SendLease {
        SendLease {
            sender: "n/1".to_owned(),
            first_sent_at: self.now,
            send_until: Timestamp(self.now.0 + 20_000),
            sends: 1,
            unanswered: 1,
            not_before: None,
        }
    }

    /// One step. The invariants hold after it, or the test fails. The change, if there was one.
    pub(crate) fn step(&mut self, edit: impl FnOnce(&mut Draft)) -> Option<Change> {
        self.now = Timestamp(self.now.0 + 1_000);
        let mut draft = Draft::of(self.payment.clone(), self.now);
        edit(&mut draft);
        let change = draft.finish(None)?;
        assert_eq!((change.seen, change.payment.version), (Some(self.payment.version), self.payment.version + 1), "I5");
        self.land(change.clone());
        Some(change)
    }

    fn land(&mut self, change: Change) {
        assert_whole(&self.payment, &change);
        assert_monotonic(&self.payment, &change.payment);
        self.events.extend(change.events.clone());
        self.timeline.extend(change.audit.clone());
        self.payment = change.payment;
        self.assert_invariants();
    }

    /// What is seen of the attempt of this index, and again: told twice it changes nothing.
    pub(crate) fn see(&mut self, index: usize, outcome: Outcome) {
        let attempt = self.payment.attempts[index].id.clone();
        let policy = self.policy;
        let seen = Observation { attempt, outcome, source: Source::Notification, action: None };
        self.twice(|draft| observe(draft, &seen, policy));
    }

    /// Applies what was seen twice; the second time nothing moves, nothing is told, and nothing at all is written if the first moved something.
    fn twice(&mut self, edit: impl Fn(&mut Draft)) {
        let first = self.step(&edit);
        let before = self.payment.clone();
        let told = self.events.len();
        let second = self.step(&edit);
        let mut after = self.payment.clone();
        (after.version, after.audit_len, after.audit_head, after.updated_at) =
            (before.version, before.audit_len, before.audit_head, before.updated_at);
        assert_eq!(after, before, "told twice, moved twice");
        assert_eq!(self.events.len(), told, "told twice, and so was the merchant");
        let only_noted = |change: &Change| change.audit.iter().all(|entry| matches!(entry.kind.as_str(), "ignored" | "foreign_refund"));
        if let Some(second) = second {
            assert!(only_noted(&second) && first.as_ref().is_some_and(only_noted), "told twice, written twice: {second:?}");
        }
    }

    /// Whether a new attempt may start now (I4).
    pub(crate) fn may_start(&self) -> bool {
        self.payment.live().is_none() && self.payment.paid_attempt().is_none()
    }

    /// Starts a new attempt; its index.
    pub(crate) fn start(&mut self, channel: &str) -> usize {
        assert!(self.may_start(), "I4");
        let next = self.attempt(channel);
        self.step(|draft| draft.after.attempts.push(next));
        self.payment.attempts.len() - 1
    }

    /// Releases the live attempt at the merchant's risk, and starts another.
    pub(crate) fn force(&mut self, channel: &str) -> usize {
        let next = self.attempt(channel);
        self.step(|draft| {
            for attempt in draft.after.attempts.iter_mut().filter(|attempt| attempt.is_live()) {
                attempt.released = true;
            }
            draft.note("force_surplus", None, serde_json::json!({}));
            draft.after.attempts.push(next);
        });
        self.payment.attempts.len() - 1
    }

    /// The merchant asks for a refund; the one that was made or is known.
    pub(crate) fn refund(&mut self, number: &str, minor: i64) -> Result<RefundId, RefundRefusal> {
        let number = MerchantRef::parse(number).expect("a number");
        if let RefundStand::Exists(id) = judge(&self.payment, &number, cny(minor))? {
            return Ok(id);
        }
        let left = self.payment.refundable().minor;
        assert!(minor <= left, "I7: {minor} of {left}");
        let digest = self.draw("refund");
        let attempt = self.payment.paid_attempt().expect("judged").clone();
        let refund = Refund {
            id: RefundId::derived(&digest),
            n: u32::try_from(self.payment.refunds.len() + 1).expect("few refunds"),
            refund_id: Some(number),
            origin: Origin::Ours,
            of: RefundOf::Payment,
            attempt_id: attempt.id,
            channel: attempt.channel,
            account: attempt.account,
            channel_ref: ChannelRef::parse(&hex(&digest)).expect("a reference"),
            amount: cny(minor),
            reason: None,
            status: RefundStatus::Pending,
            accepted: false,
            failure: None,
            channel_refund_id: None,
            content: Some(Sealed::from_bytes(vec![2])),
            send: Some(self.lease()),
            made_by: "k2".to_owned(),
            created_at: self.now,
            updated_at: self.now,
            looks: 0,
            due_at: Some(self.now),
        };
        let id = refund.id.clone();
        self.step(|draft| reserve(draft, refund));
        assert_eq!(self.payment.refundable().minor, left - minor, "its amount is reserved (I7)");
        Ok(id)
    }

    /// What is seen of a refund, twice.
    pub(crate) fn see_refund(&mut self, id: &RefundId, outcome: &RefundOutcome, first_send: bool) {
        self.twice(|draft| observe_refund(draft, id, outcome, Source::Answer, first_send));
    }

    /// A notification of a refund on the attempt of this index, twice.
    pub(crate) fn notice(&mut self, index: usize, seen: &RefundSeen<'_>) {
        let attempt = self.payment.attempts[index].clone();
        self.twice(|draft| observe_refund_facts(draft, &attempt, seen, Source::Notification));
    }

    pub(crate) fn told(&self, kind: EventKind) -> usize {
        self.events.iter().filter(|event| event.kind == kind).count()
    }

    pub(crate) fn refund_row(&self, id: &RefundId) -> &Refund {
        self.payment.refund(id).expect("the refund")
    }

    /// What holds of every payment at every moment.
    fn assert_invariants(&self) {
        let payment = &self.payment;
        assert_eq!(payment.status, payment.rolled_up());
        assert!(payment.attempts.iter().filter(|attempt| attempt.is_live()).count() <= 1, "I1");
        let succeeded: Vec<&Attempt> = payment.attempts.iter().filter(|attempt| attempt.status == AttemptStatus::Succeeded).collect();
        assert!(succeeded.len() <= 1, "two attempts count as paid (I9)");
        assert_eq!(self.told(EventKind::Paid), succeeded.len(), "the merchant is told of the money once, and only if it is there");

        let mut money: BTreeSet<(&AccountName, &str)> =
            payment.surpluses.iter().map(|surplus| (&surplus.account, surplus.channel_txn.as_str())).collect();
        assert_eq!(money.len(), payment.surpluses.len(), "a surplus is booked once (I9)");
        let counted = succeeded.iter().filter_map(|attempt| attempt.channel_txn.as_deref().map(|txn| (&attempt.account, txn)));
        assert!(counted.into_iter().all(|row| money.insert(row)), "the same money is paid and surplus");
        assert_eq!(self.told(EventKind::Surplus), payment.surpluses.len());
        for surplus in &payment.surpluses {
            let of = RefundOf::Surplus(surplus.id.clone());
            let ours = payment.refunds.iter().filter(|refund| refund.of == of && refund.origin == Origin::Ours).count();
            assert!(ours <= 1, "a surplus is refunded by us at most once (I9)");
        }

        assert!((0..=payment.captured().minor).contains(&payment.refundable().minor), "I7: {}", payment.refundable());
        assert!(!payment.is_over_refunded() || payment.review.is_some(), "I7: an overlap is shown to a person");
        assert!(payment.refunds.iter().all(|refund| refund.amount.currency == payment.currency() && refund.amount.minor > 0), "I11");
        for refund in &payment.refunds {
            let told = self.events.iter().filter(|event| event.kind == EventKind::RefundSucceeded);
            let of_it = told.filter(|event| event.data["refund"]["id"] == refund.id.as_str()).count();
            assert!(of_it <= 1, "refund.succeeded is told once per refund");
            assert!(refund.status != RefundStatus::Succeeded || of_it == 1);
        }
        let refs: BTreeSet<&str> = payment.refunds.iter().map(|refund| refund.channel_ref.as_str()).collect();
        assert_eq!(refs.len(), payment.refunds.len(), "each refund has its own reference (I7)");

        let ids: BTreeSet<&str> = self.events.iter().map(|event| event.id.as_str()).collect();
        assert_eq!(ids.len(), self.events.len(), "event ids are dedupe keys");
        let mut prev = [0; 32];
        for (entry, n) in self.timeline.iter().zip(1..) {
            assert_eq!((entry.n, entry.prev, entry.hash), (n, prev, entry.expected_hash(&payment.id)), "the timeline is a chain");
            prev = entry.hash;
        }
        assert_eq!((payment.audit_len, payment.audit_head), (self.timeline.len() as u64, prev));
    }
}

/// The change names every child that is new or differs, and no other, and its events belong to its version.
fn assert_whole(before: &Payment, change: &Change) {
    fn differing<T: Clone + PartialEq>(before: &[T], after: &[T]) -> Vec<T> {
        after.iter().filter(|row| !before.contains(row)).cloned().collect()
    }
    assert_eq!(change.attempts, differing(&before.attempts, &change.payment.attempts));
    assert_eq!(change.refunds, differing(&before.refunds, &change.payment.refunds));
    assert_eq!(change.surpluses, differing(&before.surpluses, &change.payment.surpluses));
    assert_eq!(change.captures, differing(&before.captures, &change.payment.captures));
    for (event, n) in change.events.iter().zip(0..) {
        assert_eq!((event.version, event.n, &event.payment_id), (change.payment.version, n, &change.payment.id));
        assert_eq!(event.data["payment"]["status"], serde_json::json!(change.payment.status));
    }
}

/// What never goes back.
fn assert_monotonic(before: &Payment, after: &Payment) {
    for (was, is) in before.attempts.iter().zip(&after.attempts) {
        assert_eq!((&was.id, &was.channel_ref, &was.content, was.amount), (&is.id, &is.channel_ref, &is.content, is.amount), "I2");
        assert!(was.is_live() || !is.is_live(), "an attempt that ended is live again: {was:?} {is:?}");
        assert!(was.status != AttemptStatus::Succeeded || is.status == AttemptStatus::Succeeded, "paid goes back");
    }
    for (was, is) in before.refunds.iter().zip(&after.refunds) {
        assert_eq!((&was.id, &was.channel_ref, was.amount, &was.of), (&is.id, &is.channel_ref, is.amount, &is.of), "I7");
        assert!(was.status.is_open() || !is.status.is_open(), "a refund that ended is open again: {was:?} {is:?}");
    }
    assert!(before.surpluses.iter().eq(after.surpluses.iter().take(before.surpluses.len())), "money is never dropped (I9)");
    if before.paid_attempt().is_some() {
        assert!(matches!(after.status, PaymentStatus::Paid | PaymentStatus::Review), "paid goes back to {:?}", after.status);
    }
}

fn hex(digest: &[u8; 32]) -> String {
    digest[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}
