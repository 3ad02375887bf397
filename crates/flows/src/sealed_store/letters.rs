//! How a text is sealed in the member in which it stood.
//!
//! In: values of the core. Out: the same values with sealed texts, or opened again. A sealed text begins with [`MARK`], which tells it from one
//! that was stored before there was sealing; what carries the mark opens or is refused.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use payonce_core::event::Event;
use payonce_core::id::{EventId, PaymentId, RefundId};
use payonce_core::payment::Payment;
use payonce_core::payment::change::Change;
use payonce_core::ports::StoreFault;
use payonce_core::ports::outbox::Delivery;
use payonce_core::refund::Refund;
use payonce_core::secret::{OpenFault, Sealed};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::SealedStore;

/// What a sealed text begins with. Base64 follows.
const MARK: &str = "payonce.sealed.v1:";
/// The one member of a sealed map.
const MEMBER: &str = "sealed";

/// What a payment's `metadata` holds when it is sealed.
#[derive(Serialize, Deserialize)]
struct Texts {
    metadata: BTreeMap<String, String>,
    description: Option<String>,
    return_url: Option<String>,
}

fn of_payment(id: &PaymentId) -> String {
    format!("payment/{id}")
}

fn of_refund(id: &RefundId) -> String {
    format!("refund/{id}")
}

fn of_event(id: &EventId) -> String {
    format!("event/{id}")
}

/// Apart from the payment's other texts: stores copy it into the event's row, and it is opened there.
fn of_notify(id: &PaymentId) -> String {
    format!("notify/{id}")
}

impl SealedStore {
    pub(super) fn sealed_change(&self, change: &Change) -> Result<Change, StoreFault> {
        Ok(Change {
            seen: change.seen,
            payment: self.sealed_payment(&change.payment)?,
            attempts: change.attempts.clone(),
            captures: change.captures.clone(),
            refunds: change.refunds.iter().map(|refund| self.sealed_refund(refund)).collect(),
            surpluses: change.surpluses.clone(),
            events: change.events.iter().map(|event| self.sealed_event(event)).collect::<Result<_, _>>()?,
            audit: change.audit.clone(),
            inbox: change.inbox.clone(),
        })
    }

    fn sealed_payment(&self, payment: &Payment) -> Result<Payment, StoreFault> {
        let mut sealed = payment.clone();
        let texts = Texts {
            metadata: std::mem::take(&mut sealed.metadata),
            description: sealed.description.take(),
            return_url: sealed.return_url.take(),
        };
        let text = self.seal(&of_payment(&payment.id), &bytes(&texts)?);
        sealed.metadata.insert(MEMBER.to_owned(), text);
        sealed.notify_url = payment.notify_url.as_ref().map(|url| self.seal(&of_notify(&payment.id), url.as_bytes()));
        // Stores write the change's refunds; these here tell them the order, and stay sealed for one that keeps the aggregate whole.
        sealed.refunds = payment.refunds.iter().map(|refund| self.sealed_refund(refund)).collect();
        Ok(sealed)
    }

    fn sealed_refund(&self, refund: &Refund) -> Refund {
        let reason = refund.reason.as_ref().map(|reason| self.seal(&of_refund(&refund.id), reason.as_bytes()));
        Refund { reason, ..refund.clone() }
    }

    fn sealed_event(&self, event: &Event) -> Result<Event, StoreFault> {
        let text = self.seal(&of_event(&event.id), &bytes(&event.data)?);
        Ok(Event { data: json!({ MEMBER: text }), ..event.clone() })
    }

    pub(super) fn opened_payment(&self, mut payment: Payment) -> Result<Payment, StoreFault> {
        if let Some(text) = only(payment.metadata.len(), payment.metadata.get(MEMBER).map(String::as_str)) {
            let place = of_payment(&payment.id);
            let texts: Texts = self.value(&place, text)?;
            payment.metadata = texts.metadata;
            payment.description = texts.description;
            payment.return_url = texts.return_url;
        }
        payment.notify_url = self.text(&of_notify(&payment.id), payment.notify_url)?;
        for refund in &mut payment.refunds {
            refund.reason = self.text(&of_refund(&refund.id), refund.reason.take())?;
        }
        Ok(payment)
    }

    pub(super) fn opened_event(&self, mut event: Event) -> Result<Event, StoreFault> {
        let members = event.data.as_object().map_or(0, serde_json::Map::len);
        if let Some(text) = only(members, event.data.get(MEMBER).and_then(Value::as_str)) {
            event.data = self.value(&of_event(&event.id), text)?;
        }
        Ok(event)
    }

    pub(super) fn opened_delivery(&self, delivery: Delivery) -> Result<Delivery, StoreFault> {
        let notify_url = self.text(&of_notify(&delivery.event.payment_id), delivery.notify_url)?;
        Ok(Delivery { event: self.opened_event(delivery.event)?, tries: delivery.tries, notify_url })
    }

    fn seal(&self, place: &str, plain: &[u8]) -> String {
        format!("{MARK}{}", BASE64.encode(self.keyring.seal(self.entropy.as_ref(), place, plain).as_bytes()))
    }

    /// A text of its own: opened where it carries the mark, else as it was stored.
    fn text(&self, place: &str, stored: Option<String>) -> Result<Option<String>, StoreFault> {
        match stored.as_deref().and_then(|text| text.strip_prefix(MARK)) {
            Some(sealed) => String::from_utf8(self.open(place, sealed)?).map(Some).map_err(|_| refused(place, OpenFault::Damaged)),
            None => Ok(stored),
        }
    }

    fn value<T: for<'de> Deserialize<'de>>(&self, place: &str, sealed: &str) -> Result<T, StoreFault> {
        serde_json::from_slice(&self.open(place, sealed)?).map_err(|_| refused(place, OpenFault::Damaged))
    }

    fn open(&self, place: &str, sealed: &str) -> Result<Vec<u8>, StoreFault> {
        let bytes = BASE64.decode(sealed).map_err(|_| refused(place, OpenFault::Damaged))?;
        self.keyring.open(place, &Sealed::from_bytes(bytes)).map_err(|fault| refused(place, fault))
    }
}

/// The sealed text of a map that has this one member and nothing else.
fn only(members: usize, text: Option<&str>) -> Option<&str> {
    text.filter(|_| members == 1).and_then(|text| text.strip_prefix(MARK))
}

fn bytes(value: &impl Serialize) -> Result<Vec<u8>, StoreFault> {
    serde_json::to_vec(value).map_err(|error| StoreFault::Refused(format!("a document cannot be stored: {error}")))
}

/// Names the row and never its content.
fn refused(place: &str, fault: OpenFault) -> StoreFault {
    StoreFault::Refused(match fault {
        OpenFault::UnknownKey => {
            format!("{place} does not open: the key ring does not belong to this database, or an old key was dropped too early")
        }
        OpenFault::Damaged => format!("{place} does not open: the sealed text was changed, cut, or moved from another row"),
    })
}
