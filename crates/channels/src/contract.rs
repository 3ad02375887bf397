//! What every channel's folder provides: a capability value, accounts made from settings, and operations as values.
//!
//! An operation is "send this, read the reply so". Nothing here is asynchronous and nothing draws time or chance: the moment is a
//! parameter, and references were made and stored by the ledger before (I2).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use payonce_core::channel_ref::{ChannelRef, RefForm};
use payonce_core::clock::Timestamp;
use payonce_core::failure::Failure;
use payonce_core::money::{Currency, Money};
use payonce_core::notification::{Rejection, Verify};
use payonce_core::outcome::{CloseOutcome, Outcome, RefundOutcome};
use serde_json::Value;

use crate::transport::{WireReply, WireRequest};

/// What happens when an operation is sent again with its reference (design §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idempotency {
    /// The first answer comes again, for as long as the window holds.
    ReplayOriginal,
    /// The present state comes back.
    ReplayCurrent,
    /// Works again while unpaid, with the same parameters; paid or closed, it is an error.
    ReEntryWhileUnpaid,
    /// Refused as a duplicate: the first landed.
    RejectDuplicate,
    /// It would happen again: never resend.
    None,
}

impl Idempotency {
    /// Whether a resend of the same bytes inside the window cannot become new money.
    pub const fn is_safe_to_resend(self) -> bool {
        match self {
            Self::ReplayOriginal | Self::ReplayCurrent | Self::ReEntryWhileUnpaid | Self::RejectDuplicate => true,
            Self::None => false,
        }
    }
}

/// How an unpaid or ambiguous order is ended at the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseKind {
    /// Ends unpaid orders only; a paid one is reported as paid.
    Close,
    /// Ends whatever there is; money that was taken is returned in the same call.
    CancelReturns,
    /// There is no such call; the order ends by expiry.
    ExpiryOnly,
}

/// What a method of a channel can do, and when its silence is evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodCapability {
    /// The public name: `qr`, `page`, `barcode` …
    pub name: &'static str,
    /// What a repeated charge does.
    pub charge: Idempotency,
    /// How long after the first send a resend is still recognised. `None`: for ever.
    pub window: Option<Duration>,
    /// How long after the end of the send lease a look-up's "not found" is final. `None`: never (the buyer may still act).
    pub not_found_final_after: Option<Duration>,
    /// How its orders are ended.
    pub close: CloseKind,
    /// How long an order may be paid if the merchant does not say.
    pub default_ttl: Duration,
    /// The longest that a merchant may ask for.
    pub max_ttl: Duration,
    /// After the order's expiry and this margin the channel takes no money for it, and "not found" is final.
    pub expiry_margin: Duration,
    /// The room for references.
    pub reference: RefForm,
}

/// What a channel can do. Flows read this and never the channel's name.
#[derive(Clone, Copy, Debug)]
pub struct Capability {
    /// Its methods; the first is the default.
    pub methods: &'static [MethodCapability],
    /// Currencies it takes.
    pub currencies: &'static [&'static str],
    /// The smallest and largest amount in minor units.
    pub amount_range: (i64, i64),
    /// The one currency of a channel that has only one by contract.
    pub single_currency: Option<Currency>,
    /// Whether money can be reserved first and captured later.
    pub manual_capture: bool,
    /// What a repeated refund does.
    pub refund: Idempotency,
    /// How long a refund's reference is recognised. `None`: for ever.
    pub refund_window: Option<Duration>,
    /// How long the channel goes on delivering a notification: the inbox remembers at least so long.
    pub redelivery_horizon: Duration,
}

impl Capability {
    /// The method of this name, or the default.
    pub fn method(&self, name: Option<&str>) -> Option<&'static MethodCapability> {
        match name {
            None => self.methods.first(),
            Some(name) => self.methods.iter().find(|method| method.name == name),
        }
    }
}

/// A charge to be prepared.
#[derive(Clone, Debug)]
pub struct ChargeOrder {
    /// The reference that the channel will know it by.
    pub channel_ref: ChannelRef,
    /// One of the capability's methods.
    pub method: &'static str,
    /// How much.
    pub amount: Money,
    /// For the buyer.
    pub description: String,
    /// When the order stops being payable.
    pub expires_at: Timestamp,
    /// Where the channel sends the buyer back to.
    pub return_url: Option<String>,
    /// Where the channel sends notifications.
    pub notify_url: String,
    /// Whether the money is only reserved.
    pub manual_capture: bool,
    /// The merchant's options for this channel. Members that the channel does not know are refused.
    pub options: Value,
    /// Echoed by the channel where it has a field for that.
    pub attempt_id: String,
}

/// A refund to be prepared.
#[derive(Clone, Debug)]
pub struct RefundOrder {
    /// The refund's own reference.
    pub refund_ref: ChannelRef,
    /// The order that the money came by.
    pub channel_ref: ChannelRef,
    /// The channel's transaction, if known.
    pub channel_txn: Option<String>,
    /// The order's amount.
    pub of: Money,
    /// How much goes back.
    pub amount: Money,
    /// For the buyer.
    pub reason: Option<String>,
    /// Where the channel sends notifications.
    pub notify_url: String,
}

/// A stored order, as far as a look-up or a close needs it.
#[derive(Clone, Debug)]
pub struct OrderFacts {
    /// The reference.
    pub channel_ref: ChannelRef,
    /// The channel's transaction, if known.
    pub channel_txn: Option<String>,
    /// By which method.
    pub method: String,
    /// The order's amount.
    pub amount: Money,
}

/// A stored refund, as far as a look-up needs it.
#[derive(Clone, Debug)]
pub struct RefundFacts {
    /// The refund's reference.
    pub refund_ref: ChannelRef,
    /// The channel's id of the refund, if known.
    pub channel_refund_id: Option<String>,
    /// The order that the money came by.
    pub order: OrderFacts,
    /// How much.
    pub amount: Money,
}

/// Why an order is refused before anything is stored or sent: the request is at fault, and no money moves.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {rule}")]
pub struct Refusal {
    /// `channel_options.auth_code`, `currency` …
    pub field: String,
    /// The rule and the fix.
    pub rule: String,
}

/// Why an account's settings do not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {rule}")]
pub struct ConfigFault {
    /// Which setting.
    pub setting: String,
    /// The rule and the fix. Never the value.
    pub rule: String,
}

/// What is called. The sandbox's faults are set by these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Take money.
    Charge,
    /// What became of a charge.
    Query,
    /// End an order.
    Close,
    /// Take reserved money.
    Capture,
    /// Let reserved money go.
    Void,
    /// Give money back.
    Refund,
    /// What became of a refund.
    RefundQuery,
    /// Get an access token.
    Token,
    /// Get the channel's certificates.
    Certificates,
}

/// One request and how its reply is read.
pub struct Call<T> {
    /// What it does.
    pub operation: Operation,
    /// The bytes.
    pub request: WireRequest,
    /// Reads a reply: checks its signature, then its meaning. Total: any bytes give an outcome, and what does not verify or parse is unknown.
    pub read: Box<dyn Fn(&WireReply) -> T + Send + Sync>,
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call({:?} {} {})", self.operation, self.request.method, self.request.url_without_query())
    }
}

/// How an operation is done.
#[derive(Debug)]
pub enum Step<T> {
    /// Without the network: the outcome follows from the content (a signed address for the buyer's browser).
    Local(T),
    /// By one call.
    Call(Call<T>),
}

/// The channel's answer to a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// HTTP status.
    pub status: u16,
    /// Media type; none for an empty body.
    pub content_type: Option<&'static str>,
    /// Exactly these bytes.
    pub body: &'static [u8],
}

/// A configured set of credentials. Pure: every method is a function of its arguments.
pub trait Account: Verify + Send + Sync + fmt::Debug {
    /// What the channel can do.
    fn capability(&self) -> &'static Capability;

    /// The merchant's identifiers that notifications must name: field and value.
    fn merchant(&self) -> Vec<(String, String)>;

    /// The exact content of a charge: what is stored, and sent as often as needed without a change (I2).
    fn prepare_charge(&self, order: &ChargeOrder) -> Result<Vec<u8>, Refusal>;

    /// Sends the stored content; only a signature and its timestamp are made anew.
    fn charge(&self, method: &str, content: &[u8], now: Timestamp) -> Step<Outcome>;

    /// Asks what became of an order. `None` where the channel has no look-up by our reference or its transaction.
    fn query(&self, order: &OrderFacts, now: Timestamp) -> Option<Call<Outcome>>;

    /// Ends an order. `None` where it ends by expiry only.
    fn close(&self, order: &OrderFacts, now: Timestamp) -> Option<Call<CloseOutcome>>;

    /// The exact content of a refund.
    fn prepare_refund(&self, refund: &RefundOrder) -> Result<Vec<u8>, Refusal>;

    /// Sends the stored content of a refund.
    fn refund(&self, content: &[u8], now: Timestamp) -> Call<RefundOutcome>;

    /// Asks what became of a refund. `None` where the channel has no look-up.
    fn query_refund(&self, refund: &RefundFacts, now: Timestamp) -> Option<Call<RefundOutcome>>;

    /// Takes reserved money. `None` where the channel knows no capture.
    fn capture(&self, order: &OrderFacts, capture_ref: &ChannelRef, amount: Money, now: Timestamp) -> Option<Call<Outcome>> {
        let _ = (order, capture_ref, amount, now);
        None
    }

    /// What the channel takes as "stored, do not send again".
    fn acknowledge(&self) -> Acknowledgement;

    /// What the channel takes as "not taken".
    fn refuse(&self, why: &Rejection) -> Acknowledgement;

    /// What the channel takes as "send it again later".
    fn try_again(&self) -> Acknowledgement;
}

/// A channel.
pub trait Adapter: Send + Sync + fmt::Debug {
    /// Its public name.
    fn name(&self) -> &'static str;

    /// What it can do.
    fn capability(&self) -> &'static Capability;

    /// Makes an account of settings. Everything that can be checked without the network is checked here; an empty secret is refused.
    fn account(&self, settings: &Value) -> Result<Arc<dyn Account>, ConfigFault>;
}

/// Outcomes that a fault of the network turns into.
pub trait FromFault {
    /// Not one byte left.
    fn not_sent(why: String) -> Self;
    /// Bytes may have left; no answer came.
    fn lost(why: String) -> Self;
}

impl FromFault for Outcome {
    fn not_sent(why: String) -> Self {
        Self::NotSent(why)
    }
    fn lost(why: String) -> Self {
        Self::Unknown(why)
    }
}

impl FromFault for RefundOutcome {
    fn not_sent(why: String) -> Self {
        Self::NotSent(why)
    }
    fn lost(why: String) -> Self {
        Self::Unknown(why)
    }
}

impl FromFault for CloseOutcome {
    fn not_sent(why: String) -> Self {
        Self::NotSent(why)
    }
    fn lost(why: String) -> Self {
        Self::Unknown(why)
    }
}

/// A failure for an order that the channel's rules or our set-up stand against.
pub fn misconfigured(channel_code: &str, message: &str) -> Failure {
    Failure::new("channel_misconfigured", message).with_channel_code(channel_code)
}
