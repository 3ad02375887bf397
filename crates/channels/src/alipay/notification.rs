//! Notices. In: a request as it arrived. Out: one verified event. Never: a look at the content before the signature over the bytes as they
//! came fits; a second decoding; a judgement by age, because the last redelivery comes a day later.

use payonce_core::money::{Currency, Money};
use payonce_core::notification::{Facts, Notification, RawRequest, Reason, RefundFact, Rejection};

use super::beijing;
use super::config::Config;
use crate::crypto::base64;
use crate::form::{self, FormFault, Pair};

const FORM: &str = "application/x-www-form-urlencoded";

pub(super) fn verify(config: &Config, raw: &RawRequest) -> Result<Vec<Notification>, Rejection> {
    let pairs = envelope(raw)?;
    authenticate(config, &pairs)?;
    let notice = Notice::read(&pairs)?;
    Ok(vec![notice.event()?])
}

fn envelope(raw: &RawRequest) -> Result<Vec<Pair>, Rejection> {
    if raw.method != "POST" {
        return Err(Rejection::new(Reason::Malformed, "not a POST"));
    }
    match raw.count("content-type") {
        0 => return Err(Rejection::new(Reason::MissingHeader, "no Content-Type")),
        1 => {}
        _ => return Err(Rejection::new(Reason::DuplicateParameter, "Content-Type twice")),
    }
    let media = raw.header("content-type").and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    if !media.eq_ignore_ascii_case(FORM) {
        return Err(Rejection::new(Reason::Malformed, "the content is not a form"));
    }
    let pairs = form::decode(&raw.body).map_err(|fault| match fault {
        FormFault::Malformed | FormFault::TooMany => Rejection::new(Reason::Malformed, fault.to_string()),
        FormFault::Duplicate => Rejection::new(Reason::DuplicateParameter, fault.to_string()),
    })?;
    for name in ["sign", "sign_type"] {
        if find(&pairs, name).is_none_or(<[u8]>::is_empty) {
            return Err(Rejection::new(Reason::MissingField, format!("no {name}")));
        }
    }
    Ok(pairs)
}

fn authenticate(config: &Config, pairs: &[Pair]) -> Result<(), Rejection> {
    // Pinned: with SHA-1 allowed, whoever can make SHA-1 collide could write notices.
    if find(pairs, "sign_type") != Some(b"RSA2") {
        return Err(Rejection::new(Reason::AlgorithmNotAllowed, "sign_type is not RSA2"));
    }
    let bad = |why: &str| Rejection::new(Reason::BadSignature, why);
    let signature = find(pairs, "sign").and_then(base64::decode).ok_or_else(|| bad("sign is not Base64"))?;
    let text = signed_text(pairs);
    if config.channel_keys.iter().any(|key| key.fits(&text, &signature)) { Ok(()) } else { Err(bad("sign does not fit")) }
}

/// Every parameter but `sign` and `sign_type`, empty and unknown ones too, decoded once, by name, in the bytes that came: in a GBK notice
/// these are GBK.
fn signed_text(pairs: &[Pair]) -> Vec<u8> {
    let mut kept: Vec<&Pair> = pairs.iter().filter(|(name, _)| name != b"sign" && name != b"sign_type").collect();
    kept.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let joined: Vec<Vec<u8>> = kept.into_iter().map(|(name, value)| [name.as_slice(), b"=", value.as_slice()].concat()).collect();
    joined.join(&b'&')
}

fn find<'a>(pairs: &'a [Pair], name: &str) -> Option<&'a [u8]> {
    pairs.iter().find(|(given, _)| given == name.as_bytes()).map(|(_, value)| value.as_slice())
}

/// A verified notice, as text.
struct Notice {
    pairs: Vec<(String, String)>,
}

impl Notice {
    /// The signed `charset` decides; a header that says otherwise is not signed (B060).
    fn read(pairs: &[Pair]) -> Result<Self, Rejection> {
        let unreadable = |why: &str| Rejection::new(Reason::Malformed, why);
        let encoding = match find(pairs, "charset") {
            None | Some(b"") => encoding_rs::UTF_8,
            Some(label) => encoding_rs::Encoding::for_label(label).ok_or_else(|| unreadable("a charset that is not known"))?,
        };
        let text = |bytes: &[u8]| encoding.decode_without_bom_handling(bytes).0.into_owned();
        Ok(Self { pairs: pairs.iter().map(|(name, value)| (text(name), text(value))).collect() })
    }

    /// A field that is there and not empty.
    fn field(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(given, value)| given == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    fn needed(&self, name: &str) -> Result<&str, Rejection> {
        self.field(name).ok_or_else(|| Rejection::new(Reason::MissingField, format!("no {name}")))
    }

    fn yuan(&self, name: &str) -> Result<Option<Money>, Rejection> {
        let amount = self.field(name).map(|text| Money::from_decimal(text, Currency::CNY)).transpose();
        amount.map_err(|fault| Rejection::new(Reason::Malformed, format!("{name}: {fault}")))
    }

    fn event(&self) -> Result<Notification, Rejection> {
        let app_id = self.needed("app_id")?;
        let about_a_trade =
            self.field("trade_status").is_some() || self.field("notify_type").is_none_or(|kind| kind == "trade_status_sync");
        if !about_a_trade {
            return self.other(app_id);
        }
        let (status, trade_no) = (self.needed("trade_status")?, self.needed("trade_no")?);
        let merchant = vec![("app_id".to_owned(), app_id.to_owned()), ("seller_id".to_owned(), self.needed("seller_id")?.to_owned())];
        // The currencies of a cross-border product: an amount in them is not the order's.
        let foreign = ["trans_currency", "settle_currency"].iter().filter_map(|name| self.field(name)).find(|text| *text != "CNY");
        let amount = self.yuan("total_amount")?;
        let facts = self.facts(status, trade_no)?;
        // Money whose amount nobody names is never taken as the order's.
        if matches!(facts, Facts::Paid { .. }) && amount.is_none() {
            return Err(Rejection::new(Reason::MissingField, "total_amount is missing"));
        }
        Ok(Notification {
            identity: format!("{app_id}|{trade_no}|{}", identity(status, &facts)),
            merchant,
            channel_ref: Some(self.needed("out_trade_no")?.to_owned()),
            amount: amount.filter(|_| foreign.is_none()),
            currency_text: foreign.map(|text| text.chars().take(16).collect()),
            status: status.chars().take(64).collect(),
            facts,
        })
    }

    /// A payment, a close and every refund of an order share its numbers and two statuses; only the refund's own fields tell them apart.
    /// `refund_fee=0.00` stands on ordinary payments too.
    fn facts(&self, status: &str, trade_no: &str) -> Result<Facts, Rejection> {
        let total = self.yuan("refund_fee")?;
        if self.field("gmt_refund").is_some() || total.is_some_and(|total| total.minor > 0) {
            return Ok(Facts::Refund {
                refund_ref: self.field("out_biz_no").map(str::to_owned),
                channel_refund_id: None,
                amount: None,
                total,
                status: RefundFact::Succeeded,
            });
        }
        Ok(match status {
            "TRADE_SUCCESS" | "TRADE_FINISHED" => {
                Facts::Paid { txn: trade_no.to_owned(), at: self.field("gmt_payment").and_then(beijing::moment) }
            }
            "TRADE_CLOSED" => Facts::Closed,
            "WAIT_BUYER_PAY" => Facts::Waiting,
            other => Facts::Other { what: other.chars().take(64).collect() },
        })
    }

    /// Authentic, and not about a trade.
    fn other(&self, app_id: &str) -> Result<Notification, Rejection> {
        let (kind, id) = (self.needed("notify_type")?, self.needed("notify_id")?);
        let what: String = kind.chars().take(64).collect();
        Ok(Notification {
            identity: format!("{app_id}|{id}|other"),
            merchant: vec![("app_id".to_owned(), app_id.to_owned())],
            channel_ref: None,
            amount: None,
            currency_text: None,
            status: what.clone(),
            facts: Facts::Other { what },
        })
    }
}

/// What makes an event of a trade different from its others. The status takes part, so that a notice of an unpaid trade does not use up the
/// payment's identity (B052); the number and the running total make refunds different, because one without a number of ours shares the trade's.
fn identity(status: &str, facts: &Facts) -> String {
    match facts {
        Facts::Refund { refund_ref, total, .. } => {
            let total = total.map(|total| total.minor.to_string()).unwrap_or_default();
            format!("refund|{}|{total}", refund_ref.as_deref().unwrap_or_default())
        }
        Facts::Paid { .. } => format!("paid|{status}"),
        Facts::Closed => "closed".to_owned(),
        Facts::Waiting => "waiting".to_owned(),
        Facts::Authorized { .. } | Facts::Failed { .. } | Facts::Other { .. } => format!("other|{status}"),
    }
}
