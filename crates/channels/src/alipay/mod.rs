//! Alipay, mainland open platform: RSA2, key mode, the gateway's form interface. Its peculiarities are in `QUIRKS.md`.
//!
//! In: orders of the ledger, replies and notices of Alipay. Out: signed requests, outcomes and verified facts. Never: a decision on state.

mod beijing;
mod charge;
mod close;
mod config;
mod notification;
mod outcome;
mod query;
mod refund;
mod reply;
pub mod sandbox;
mod sign;

use std::sync::Arc;
use std::time::Duration;

use payonce_core::channel_ref::RefForm;
use payonce_core::clock::Timestamp;
use payonce_core::money::Currency;
use payonce_core::notification::{Notification, RawRequest, Rejection, Verify};
use payonce_core::outcome::{CloseOutcome, Outcome, RefundOutcome};
use serde_json::Value;

use crate::contract::{
    Account, Acknowledgement, Adapter, Call, Capability, ChargeOrder, CloseKind, ConfigFault, Idempotency, MethodCapability, OrderFacts,
    RefundFacts, RefundOrder, Refusal, Step,
};
use config::Config;

pub use sign::{Parameter, canonical_request, signed_request};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A page, or a code that is scanned later: the trade exists at Alipay only once the buyer acts, so absence is never final (I3).
const fn by_the_buyer(name: &'static str) -> MethodCapability {
    MethodCapability {
        name,
        charge: Idempotency::ReEntryWhileUnpaid,
        window: None,
        not_found_final_after: None,
        close: CloseKind::Close,
        default_ttl: Duration::from_secs(2 * 3600),
        max_ttl: Duration::from_secs(15 * 24 * 3600),
        expiry_margin: Duration::from_secs(5 * 60),
        reference: RefForm::COMMON,
    }
}

static METHODS: [MethodCapability; 4] = [
    by_the_buyer("qr"),
    by_the_buyer("page"),
    by_the_buyer("wap"),
    // The buyer's code is read by the merchant: the trade exists at once, is looked up for about a minute, and then cancelled.
    MethodCapability {
        name: "barcode",
        charge: Idempotency::ReEntryWhileUnpaid,
        window: None,
        not_found_final_after: Some(Duration::from_secs(60)),
        close: CloseKind::CancelReturns,
        default_ttl: Duration::from_secs(90),
        max_ttl: HOUR,
        expiry_margin: Duration::from_secs(5 * 60),
        reference: RefForm::COMMON,
    },
];

static CAPABILITY: Capability = Capability {
    methods: &METHODS,
    currencies: &["CNY"],
    amount_range: (1, 10_000_000_000),
    single_currency: Some(Currency::CNY),
    manual_capture: false,
    refund: Idempotency::ReplayCurrent,
    refund_window: None,
    // Eight deliveries, the last of them about 24 h 24 min after the first.
    redelivery_horizon: DAY.saturating_add(HOUR),
};

/// The channel.
#[derive(Clone, Copy, Debug)]
pub struct Alipay;

impl Adapter for Alipay {
    fn name(&self) -> &'static str {
        "alipay"
    }

    fn capability(&self) -> &'static Capability {
        &CAPABILITY
    }

    fn account(&self, settings: &Value) -> Result<Arc<dyn Account>, ConfigFault> {
        Ok(Arc::new(AlipayAccount { config: Config::read(settings)? }))
    }
}

/// One application of one seller.
#[derive(Debug)]
struct AlipayAccount {
    config: Config,
}

impl Verify for AlipayAccount {
    fn verify(&self, raw: &RawRequest, _now: Timestamp) -> Result<Vec<Notification>, Rejection> {
        // There is no freshness to judge: the last redelivery comes a day after the payment.
        notification::verify(&self.config, raw)
    }
}

impl Account for AlipayAccount {
    fn capability(&self) -> &'static Capability {
        &CAPABILITY
    }

    fn merchant(&self) -> Vec<(String, String)> {
        vec![("app_id".to_owned(), self.config.app_id.clone()), ("seller_id".to_owned(), self.config.seller_id.clone())]
    }

    fn prepare_charge(&self, order: &ChargeOrder) -> Result<Vec<u8>, Refusal> {
        charge::prepare(order)
    }

    fn charge(&self, _method: &str, content: &[u8], now: Timestamp) -> Step<Outcome> {
        charge::send(&self.config, content, now)
    }

    fn query(&self, order: &OrderFacts, now: Timestamp) -> Option<Call<Outcome>> {
        Some(query::send(&self.config, order, now))
    }

    fn close(&self, order: &OrderFacts, now: Timestamp) -> Option<Call<CloseOutcome>> {
        Some(close::send(&self.config, order, now))
    }

    fn prepare_refund(&self, refund: &RefundOrder) -> Result<Vec<u8>, Refusal> {
        refund::prepare(refund)
    }

    fn refund(&self, content: &[u8], now: Timestamp) -> Call<RefundOutcome> {
        refund::send(&self.config, content, now)
    }

    fn query_refund(&self, refund: &RefundFacts, now: Timestamp) -> Option<Call<RefundOutcome>> {
        Some(refund::query(&self.config, refund, now))
    }

    fn acknowledge(&self) -> Acknowledgement {
        answer(b"success")
    }

    fn refuse(&self, _why: &Rejection) -> Acknowledgement {
        answer(b"fail")
    }

    fn try_again(&self) -> Acknowledgement {
        answer(b"fail")
    }
}

/// Alipay reads the body alone: anything but the seven bytes of `success` means "again" (B065).
const fn answer(body: &'static [u8]) -> Acknowledgement {
    Acknowledgement { status: 200, content_type: Some("text/plain"), body }
}
