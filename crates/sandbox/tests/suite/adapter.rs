//! The product's own adapter against the channel's own side: what was written twice, apart, must fit together.

use std::sync::Arc;
use std::time::Duration;

use payonce_channels::contract::{Account, Call, ChargeOrder, FromFault, OrderFacts, RefundFacts, RefundOrder, Step};
use payonce_channels::driver;
use payonce_channels::registry;
use payonce_channels::transport::Deadlines;
use payonce_channels::transport::http::{HttpOptions, HttpTransport};
use payonce_core::channel_ref::ChannelRef;
use payonce_core::money::{Currency, Money};
use payonce_core::notification::{Facts, RawRequest, Verified};
use payonce_core::outcome::{Action, CloseOutcome, Outcome, RefundOutcome};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::receiver::Receiver;
use crate::world::{START, World};

const AMOUNT: Money = Money::new(8880, Currency::CNY);

struct Shop {
    account: Arc<dyn Account>,
    transport: HttpTransport,
    notify_url: String,
}

impl Shop {
    fn new(world: &World, notify_url: &str) -> Self {
        let settings = &world.running.accounts()[0].settings;
        let account = registry::adapter("alipay").expect("an adapter").account(settings).expect("an account");
        Self { account, transport: HttpTransport::new(&HttpOptions::default()).expect("a transport"), notify_url: notify_url.to_owned() }
    }

    async fn run<T: FromFault>(&self, call: Call<T>) -> T {
        let end = Instant::now() + Duration::from_secs(20);
        driver::run(&self.transport, call, Deadlines { write_by: end, answer_by: end }).await.outcome
    }

    async fn charge(&self, reference: &str, method: &'static str, options: Value) -> Outcome {
        let order = ChargeOrder {
            channel_ref: ChannelRef::parse(reference).expect("a reference"),
            method,
            amount: AMOUNT,
            description: "手机壳📱 \"50% off\" {+&=}".to_owned(),
            expires_at: START.plus(Duration::from_secs(3600)),
            return_url: None,
            notify_url: self.notify_url.clone(),
            manual_capture: false,
            options,
            attempt_id: "att_1".to_owned(),
        };
        let content = self.account.prepare_charge(&order).expect("an order");
        match self.account.charge(method, &content, START) {
            Step::Local(outcome) => outcome,
            Step::Call(call) => self.run(call).await,
        }
    }

    fn facts(&self, reference: &str, method: &str) -> OrderFacts {
        OrderFacts {
            channel_ref: ChannelRef::parse(reference).expect("a reference"),
            channel_txn: None,
            method: method.to_owned(),
            amount: AMOUNT,
        }
    }

    async fn query(&self, reference: &str, method: &str) -> Outcome {
        let call = self.account.query(&self.facts(reference, method), START).expect("a look-up");
        self.run(call).await
    }

    async fn close(&self, reference: &str, method: &str) -> CloseOutcome {
        let call = self.account.close(&self.facts(reference, method), START).expect("a close");
        self.run(call).await
    }

    async fn refund(&self, reference: &str, refund: &str, fen: i64) -> RefundOutcome {
        let order = RefundOrder {
            refund_ref: ChannelRef::parse(refund).expect("a reference"),
            channel_ref: ChannelRef::parse(reference).expect("a reference"),
            channel_txn: None,
            of: AMOUNT,
            amount: Money::new(fen, Currency::CNY),
            reason: Some("尺码不对 %2B".to_owned()),
            notify_url: self.notify_url.clone(),
        };
        let content = self.account.prepare_refund(&order).expect("a refund");
        self.run(self.account.refund(&content, START)).await
    }

    async fn query_refund(&self, reference: &str, refund: &str, fen: i64) -> RefundOutcome {
        let facts = RefundFacts {
            refund_ref: ChannelRef::parse(refund).expect("a reference"),
            channel_refund_id: None,
            order: self.facts(reference, "qr"),
            amount: Money::new(fen, Currency::CNY),
        };
        let call = self.account.query_refund(&facts, START).expect("a look-up");
        self.run(call).await
    }

    /// The events of the next notification, verified by the adapter.
    async fn told(&self, receiver: &mut Receiver) -> Verified {
        let came = receiver.next().await;
        let raw = RawRequest {
            method: "POST".to_owned(),
            path_and_query: "/webhooks/alipay/alipay".to_owned(),
            headers: vec![("content-type".to_owned(), came.content_type.into_bytes())],
            body: came.body,
        };
        let verified = Verified::by(self.account.as_ref(), &raw, START).expect("authentic");
        let merchant = self.account.merchant();
        assert!(verified.events().iter().all(|event| merchant.iter().all(|pair| event.merchant.contains(pair))));
        verified
    }
}

#[tokio::test]
async fn a_qr_order_is_paid_refunded_and_told_in_the_product_s_words() {
    let mut receiver = Receiver::start().await;
    let world = World::new().await;
    let shop = Shop::new(&world, &receiver.url);
    for _ in 0..2 {
        let outcome = shop.charge("q1", "qr", Value::Null).await;
        assert!(
            matches!(&outcome, Outcome::Waiting { action: Some(Action::QrCode { code_url }), .. } if code_url.contains("/alipay/qr/")),
            "{outcome:?}"
        );
    }
    let outcome = shop.query("q1", "qr").await;
    assert!(matches!(outcome, Outcome::AbsentYet), "{outcome:?}");
    let outcome = shop.close("q1", "qr").await;
    assert!(matches!(outcome, CloseOutcome::Absent), "{outcome:?}");

    world.buyer("q1", "pay").await;
    let outcome = shop.query("q1", "qr").await;
    assert!(matches!(&outcome, Outcome::Paid(taken) if taken.amount == Some(AMOUNT)), "{outcome:?}");
    let told = shop.told(&mut receiver).await;
    let event = &told.events()[0];
    assert!(
        matches!(event.facts, Facts::Paid { .. }) && event.amount == Some(AMOUNT) && event.channel_ref.as_deref() == Some("q1"),
        "{event:?}"
    );
    let outcome = shop.close("q1", "qr").await;
    assert!(matches!(outcome, CloseOutcome::AlreadyPaid), "{outcome:?}");

    let outcome = shop.refund("q1", "r1", 3000).await;
    assert!(matches!(outcome, RefundOutcome::Succeeded { .. }), "{outcome:?}");
    // A repeat moves nothing; whether it is a success is for the look-up to say.
    let outcome = shop.refund("q1", "r1", 3000).await;
    assert!(matches!(outcome, RefundOutcome::Succeeded { .. } | RefundOutcome::Unknown(_)), "{outcome:?}");
    let outcome = shop.query_refund("q1", "r1", 3000).await;
    assert!(matches!(outcome, RefundOutcome::Succeeded { .. }), "{outcome:?}");
    let outcome = shop.query_refund("q1", "r2", 3000).await;
    assert!(matches!(outcome, RefundOutcome::Absent), "{outcome:?}");
    let outcome = shop.refund("q1", "r2", 8880).await;
    assert!(matches!(outcome, RefundOutcome::Failed(_) | RefundOutcome::NotAccepted(_)), "{outcome:?}");
    let told = shop.told(&mut receiver).await;
    assert!(matches!(&told.events()[0].facts, Facts::Refund { refund_ref, .. } if refund_ref.as_deref() == Some("r1")), "{told:?}");
    assert_eq!((world.booked("q1", "charge").await.0, world.booked("r1", "refund").await), (1, (1, 2, Some(3000))));
}

#[tokio::test]
async fn a_page_order_is_signed_here_and_opened_there() {
    let world = World::new().await;
    let shop = Shop::new(&world, "http://127.0.0.1:1/");
    for (reference, method) in [("p1", "page"), ("p2", "wap")] {
        let Outcome::Waiting { action: Some(Action::Redirect { url }), .. } = shop.charge(reference, method, Value::Null).await else {
            panic!("no redirect")
        };
        assert!(world.get(&url).await.text().contains("Pay</button>"));
        world.buyer(reference, "pay").await;
        assert!(matches!(shop.query(reference, method).await, Outcome::Paid(_)));
    }
}

#[tokio::test]
async fn payment_codes_end_as_they_say_in_the_product_s_words() {
    let world = World::new().await;
    let shop = Shop::new(&world, "http://127.0.0.1:1/");
    let pay = async |reference: &str, code: &str| shop.charge(reference, "barcode", json!({ "auth_code": code })).await;
    assert!(matches!(pay("b0", "28763443825664394").await, Outcome::Paid(taken) if taken.amount == Some(AMOUNT)));
    assert!(matches!(pay("b1", "2800010000000000001234").await, Outcome::Waiting { .. } | Outcome::InProgress));
    assert!(matches!(shop.close("b1", "barcode").await, CloseOutcome::Closed));
    assert!(matches!(shop.close("b0", "barcode").await, CloseOutcome::Returned(_)));
    for (reference, code) in [("b2", "2800020000000000001234"), ("b3", "2800030000000000001234"), ("b7", "2800070000000000001234")] {
        let outcome = pay(reference, code).await;
        assert!(matches!(outcome, Outcome::Declined(_) | Outcome::DeclinedOpen(_) | Outcome::NotAccepted(_)), "{code}: {outcome:?}");
    }
    for (reference, code) in [("b4", "2800040000000000001234"), ("b5", "2800050000000000001234"), ("b6", "2800060000000000001234")] {
        let outcome = pay(reference, code).await;
        assert!(matches!(outcome, Outcome::Unknown(_) | Outcome::InProgress), "{code}: {outcome:?}");
    }
    assert!(matches!(shop.query("b4", "barcode").await, Outcome::Paid(_)));
    assert!(matches!(shop.query("b5", "barcode").await, Outcome::AbsentYet | Outcome::AbsentFinal));
}

#[tokio::test]
async fn whatever_goes_wrong_is_never_taken_for_yes_or_no() {
    let world = World::new().await;
    let shop = Shop::new(&world, "http://127.0.0.1:1/");
    let faults = [
        "refuse_connection",
        "drop_request",
        "drop_response",
        "error_before",
        "error_after",
        "malformed",
        "empty",
        "bad_signature",
        "in_progress",
    ];
    for fault in faults {
        let reference = fault.replace('_', "");
        world.fault("charge", fault).await;
        let outcome = shop.charge(&reference, "barcode", json!({ "auth_code": "28763443825664394" })).await;
        assert!(matches!(outcome, Outcome::Unknown(_) | Outcome::InProgress), "{fault}: {outcome:?}");
        world.fault("query", fault).await;
        let outcome = shop.query(&reference, "barcode").await;
        assert!(matches!(outcome, Outcome::Unknown(_) | Outcome::InProgress), "{fault}: {outcome:?}");
    }
    // A right answer that is only hard to read is no fault.
    world.fault("charge", "awkward").await;
    assert!(matches!(shop.charge("fine", "barcode", json!({ "auth_code": "28763443825664394" })).await, Outcome::Paid(_)));
}
