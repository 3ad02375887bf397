//! Sample values: payments, attempts, refunds, changes, notifications and claims, all from one seed.
//!
//! What comes in: a seed and the few particulars that a test is about. What goes out: whole values with every member filled, so that
//! a store that forgets a column shows. It never reads a clock: time goes on by a millisecond with each id, so ids sort by age.

use std::collections::BTreeMap;
use std::time::Duration;

use payonce_core::attempt::{Attempt, AttemptStatus, SendLease};
use payonce_core::channel::{AccountName, ChannelName};
use payonce_core::channel_ref::{ChannelRef, RefForm};
use payonce_core::clock::{Clock, Fixed, Timestamp, random};
use payonce_core::failure::Failure;
use payonce_core::id::{AttemptId, CaptureId, EventId, InboxId, MerchantRef, PaymentId, RefundId, TenantId};
use payonce_core::key::IdempotencyKey;
use payonce_core::money::{Currency, Money};
use payonce_core::notification::{Facts, Notification, RawRequest, Rejection, Verified, Verify};
use payonce_core::outcome::{Outcome, Source, Taken};
use payonce_core::payment::change::{Change, InboxMark};
use payonce_core::payment::draft::Draft;
use payonce_core::payment::observe::{Observation, observe};
use payonce_core::payment::{Capture, Payment, PaymentStatus, SurplusPolicy};
use payonce_core::ports::records::NewClaim;
use payonce_core::record::{ClaimId, RecordKey};
use payonce_core::refund::{Origin, Refund, RefundOf, RefundStatus};
use payonce_core::secret::{KeyId, KeyedDigest, Sealed, sha256};

/// The moment at which every builder starts.
pub const START: Timestamp = Timestamp::from_unix(1_767_225_600);

/// The tenant of this name.
pub fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).expect("a tenant's name")
}

/// The account of this name.
pub fn account(name: &str) -> AccountName {
    AccountName::parse(name).expect("an account's name")
}

/// The channel of this name.
pub fn channel(name: &str) -> ChannelName {
    ChannelName::parse(name).expect("a channel's name")
}

/// The merchant's own number.
pub fn merchant_ref(text: &str) -> MerchantRef {
    MerchantRef::parse(text).expect("a merchant's number")
}

/// So many fen.
pub const fn cny(minor: i64) -> Money {
    Money::new(minor, Currency::CNY)
}

/// Sealed bytes that no text column survives: NUL, high bytes, and the text itself.
pub fn sealed(text: &str) -> Sealed {
    let mut bytes = vec![0, 0xff, 0xc3, 0x28, b'\\', b'\''];
    bytes.extend_from_slice(text.as_bytes());
    bytes.extend_from_slice(&[0, 0x80]);
    Sealed::from_bytes(bytes)
}

/// Makes values from one seed.
#[derive(Debug)]
pub struct Build {
    clock: Fixed,
}

impl Build {
    /// The same seed makes the same values in the same order.
    pub const fn new(seed: u64) -> Self {
        Self { clock: Fixed::new(START, seed) }
    }

    /// The builder's moment.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Goes on by so much.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn tick(&self) -> &Fixed {
        self.clock.advance(Duration::from_millis(1));
        &self.clock
    }

    /// A new payment's id.
    pub fn payment_id(&self) -> PaymentId {
        PaymentId::new(self.tick(), &self.clock)
    }

    /// A new inbox row's id.
    pub fn inbox_id(&self) -> InboxId {
        InboxId::new(self.tick(), &self.clock)
    }

    /// An event's id that no store has.
    pub fn event_id(&self) -> EventId {
        EventId::new(self.tick(), &self.clock)
    }

    /// A new channel reference.
    pub fn channel_ref(&self) -> ChannelRef {
        ChannelRef::new(RefForm::COMMON, self.tick().now(), &self.clock)
    }

    /// A payment of 100.00 CNY with every member filled and no children.
    pub fn payment(&self, tenant: &TenantId, order: &str) -> Payment {
        let id = self.payment_id();
        let metadata = [("sku", "茶 42"), ("note", "it's \"quoted\" \\ 😀")];
        Payment {
            tenant: tenant.clone(),
            id,
            order_id: merchant_ref(order),
            version: 0,
            status: PaymentStatus::Pending,
            review: None,
            amount: cny(10_000),
            description: Some("two cups of 茶".to_owned()),
            return_url: Some("https://shop.example/back?o=1&x=é".to_owned()),
            notify_url: Some("https://shop.example/hook".to_owned()),
            metadata: metadata.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect::<BTreeMap<_, _>>(),
            attempts: Vec::new(),
            captures: Vec::new(),
            refunds: Vec::new(),
            surpluses: Vec::new(),
            switching_until: None,
            audit_len: 0,
            audit_head: [0; 32],
            created_at: self.now(),
            updated_at: self.now(),
        }
    }

    /// The payment's next attempt, prepared and not yet sent.
    pub fn attempt(&self, payment: &Payment, channel_name: &str, account_name: &str) -> Attempt {
        let id = AttemptId::new(self.tick(), &self.clock);
        let now = self.now();
        Attempt {
            id: id.clone(),
            n: u32::try_from(payment.attempts.len() + 1).expect("few attempts"),
            channel: channel(channel_name),
            account: account(account_name),
            method: "qr".to_owned(),
            channel_ref: self.channel_ref(),
            amount: payment.amount,
            manual_capture: false,
            status: AttemptStatus::Prepared,
            released: false,
            channel_txn: None,
            failure: None,
            content: sealed(id.as_str()),
            action: None,
            send: None,
            made_by: format!("key-of-{}", payment.order_id),
            created_at: now,
            expires_at: now.plus(Duration::from_secs(900)),
            looks: 0,
            due_at: Some(now.plus(Duration::from_secs(5))),
        }
    }

    /// The payment's next refund, reserved and not yet sent.
    pub fn refund(&self, payment: &Payment, refund_id: Option<&str>, minor: i64) -> Refund {
        let attempt = payment.paid_attempt().or(payment.newest()).expect("a refund needs an attempt");
        let id = RefundId::new(self.tick(), &self.clock);
        let now = self.now();
        Refund {
            id: id.clone(),
            n: u32::try_from(payment.refunds.len() + 1).expect("few refunds"),
            refund_id: refund_id.map(merchant_ref),
            origin: Origin::Ours,
            of: RefundOf::Payment,
            attempt_id: attempt.id.clone(),
            channel: attempt.channel.clone(),
            account: attempt.account.clone(),
            channel_ref: self.channel_ref(),
            amount: Money::new(minor, payment.currency()),
            reason: Some("不要了".to_owned()),
            status: RefundStatus::Pending,
            accepted: false,
            failure: None,
            channel_refund_id: None,
            content: Some(sealed(id.as_str())),
            send: None,
            made_by: "key-of-refund".to_owned(),
            created_at: now,
            updated_at: now,
            looks: 0,
            due_at: Some(now.plus(Duration::from_secs(5))),
        }
    }

    /// A capture of the payment's newest attempt.
    pub fn capture(&self, payment: &Payment, capture_id: Option<&str>, minor: i64) -> Capture {
        let attempt = payment.newest().expect("a capture needs an attempt");
        Capture {
            id: CaptureId::new(self.tick(), &self.clock),
            capture_id: capture_id.map(merchant_ref),
            attempt_id: attempt.id.clone(),
            channel_ref: self.channel_ref(),
            amount: Money::new(minor, payment.currency()),
            status: RefundStatus::Pending,
            created_at: self.now(),
        }
    }

    /// A lease of somebody who began to send just now.
    pub fn send_lease(&self) -> SendLease {
        let now = self.now();
        SendLease {
            sender: "node-1/7".to_owned(),
            first_sent_at: now,
            send_until: now.plus(Duration::from_secs(20)),
            sends: 3,
            unanswered: 2,
            not_before: None,
        }
    }

    /// A failure with a code of the channel.
    pub fn failure(&self) -> Failure {
        Failure::new("declined", "the card was refused: 余额不足").with_channel_code("NOTENOUGH")
    }

    /// The insert of a payment with one prepared attempt on `alipay`, account `ali`.
    pub fn created(&self, tenant: &TenantId, order: &str) -> Change {
        self.created_on(tenant, order, "alipay", "ali")
    }

    /// The insert of a payment with one prepared attempt.
    pub fn created_on(&self, tenant: &TenantId, order: &str, channel_name: &str, account_name: &str) -> Change {
        let mut payment = self.payment(tenant, order);
        let attempt = self.attempt(&payment, channel_name, account_name);
        payment.attempts.push(attempt);
        let mut draft = Draft::new(payment, self.now());
        draft.note("created", None, serde_json::json!({ "order_id": order }));
        draft.finish(None).expect("a new payment is a change")
    }

    /// A change of a payment that was loaded.
    pub fn change(&self, before: &Payment, edit: impl FnOnce(&mut Draft)) -> Change {
        self.settled_change(before, None, edit).expect("the edit changes something")
    }

    /// A change that may also settle an inbox row. `None` where nothing differs.
    pub fn settled_change(&self, before: &Payment, inbox: Option<InboxMark>, edit: impl FnOnce(&mut Draft)) -> Option<Change> {
        let mut draft = Draft::of(before.clone(), self.tick().now());
        edit(&mut draft);
        draft.finish(inbox)
    }

    /// The change that an outcome makes on the newest attempt.
    pub fn observed(&self, before: &Payment, outcome: Outcome) -> Change {
        let attempt = before.newest().expect("an attempt").id.clone();
        let seen = Observation { attempt, outcome, source: Source::LookUp, action: None };
        self.change(before, |draft| observe(draft, &seen, SurplusPolicy::Refund))
    }

    /// The change that pays the newest attempt.
    pub fn paid(&self, before: &Payment, txn: &str) -> Change {
        self.observed(before, paid(txn, before.amount))
    }

    /// A record's key.
    pub fn record_key(&self, tenant: &TenantId, scope: &str, key: &str) -> RecordKey {
        RecordKey { tenant: tenant.clone(), scope: scope.to_owned(), key: IdempotencyKey::parse(key).expect("a key") }
    }

    /// A new run's name.
    pub fn claim_id(&self) -> ClaimId {
        ClaimId(payonce_core::id::uuid_v7(self.tick(), &self.clock))
    }

    /// A claim with a lease of 60 s and a ttl of 24 h, on `POST /v1/payments`.
    pub fn claim(&self, tenant: &TenantId, key: &str) -> NewClaim {
        self.claim_in(tenant, "POST /v1/payments", key)
    }

    /// The same in another scope.
    pub fn claim_in(&self, tenant: &TenantId, scope: &str, key: &str) -> NewClaim {
        NewClaim {
            key: self.record_key(tenant, scope, key),
            fingerprint: fingerprint(key),
            claim_id: self.claim_id(),
            lease: Duration::from_secs(60),
            ttl: Duration::from_secs(24 * 3600),
        }
    }

    /// Random bytes of the seed.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        random(&self.clock)
    }
}

/// A fingerprint that follows from the text.
pub fn fingerprint(text: &str) -> KeyedDigest {
    KeyedDigest { key_id: KeyId([0, 0xff, 7, 0x80]), digest: sha256(text.as_bytes()) }
}

/// Money taken.
pub fn paid(txn: &str, amount: Money) -> Outcome {
    Outcome::Paid(Taken { txn: txn.to_owned(), amount: Some(amount), at: Some(START) })
}

/// Money reserved.
pub fn authorized(txn: &str, amount: Money) -> Outcome {
    Outcome::Authorized(Taken { txn: txn.to_owned(), amount: Some(amount), at: Some(START) })
}

/// A notification of a payment.
pub fn notification(identity: &str, channel_ref: &str) -> Notification {
    Notification {
        identity: identity.to_owned(),
        merchant: vec![("app_id".to_owned(), "2021000000000000".to_owned()), ("seller_id".to_owned(), "卖家".to_owned())],
        channel_ref: Some(channel_ref.to_owned()),
        amount: Some(cny(10_000)),
        currency_text: None,
        status: "TRADE_SUCCESS".to_owned(),
        facts: Facts::Paid { txn: format!("txn-{identity}"), at: Some(START) },
    }
}

/// The proof that these events were verified: by a verifier that takes everything.
pub fn verified(events: &[Notification]) -> Verified {
    struct TakesAll<'a>(&'a [Notification]);
    impl Verify for TakesAll<'_> {
        fn verify(&self, _: &RawRequest, _: Timestamp) -> Result<Vec<Notification>, Rejection> {
            Ok(self.0.to_vec())
        }
    }
    Verified::by(&TakesAll(events), &RawRequest::default(), START).expect("everything is taken")
}
