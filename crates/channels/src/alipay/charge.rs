//! Taking money. In: an order. Out: the content that is stored, and the call or the address made of it. Never: a new number, a new expiry
//! or another notice address on a repeat: Alipay compares them (I2).

use payonce_core::clock::Timestamp;
use payonce_core::money::Currency;
use payonce_core::outcome::{Action, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::config::Config;
use super::{CAPABILITY, beijing, outcome, reply, sign};
use crate::contract::{Call, ChargeOrder, Operation, Refusal, Step};

pub(super) const PRECREATE: &str = "alipay.trade.precreate";
pub(super) const PAGE: &str = "alipay.trade.page.pay";
pub(super) const WAP: &str = "alipay.trade.wap.pay";
pub(super) const PAY: &str = "alipay.trade.pay";

const SUBJECT_MAX_CHARS: usize = 256;
const URL_MAX_BYTES: usize = 256;
const OPTION_MAX_CHARS: usize = 128;

/// What is stored and sent as often as needed: everything but the public parameters that only envelope it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    method: String,
    biz_content: String,
    out_trade_no: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notify_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    return_url: Option<String>,
}

/// What a method is at Alipay, and the options that a merchant may set for it.
struct Shape {
    method: &'static str,
    product_code: &'static str,
    options: &'static [&'static str],
}

fn shape(method: &str) -> Option<Shape> {
    match method {
        "qr" => Some(Shape {
            method: PRECREATE,
            product_code: "FACE_TO_FACE_PAYMENT",
            options: &["store_id", "operator_id", "terminal_id", "body"],
        }),
        "page" => Some(Shape {
            method: PAGE,
            product_code: "FAST_INSTANT_TRADE_PAY",
            options: &["store_id", "body", "qr_pay_mode", "qrcode_width"],
        }),
        "wap" => Some(Shape { method: WAP, product_code: "QUICK_WAP_WAY", options: &["store_id", "body", "quit_url"] }),
        "barcode" => Some(Shape {
            method: PAY,
            product_code: "FACE_TO_FACE_PAYMENT",
            options: &["auth_code", "scene", "store_id", "operator_id", "terminal_id", "body"],
        }),
        _ => None,
    }
}

pub(super) fn refusal(field: &str, rule: impl Into<String>) -> Refusal {
    Refusal { field: field.to_owned(), rule: rule.into() }
}

/// Alipay's numbers: letters, digits and `_`, at most 64.
pub(super) fn number<'a>(field: &str, text: &'a str) -> Result<&'a str, Refusal> {
    let fits = (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if fits { Ok(text) } else { Err(refusal(field, "must be 1–64 letters, digits and underscores")) }
}

fn url(field: &str, text: &str) -> Result<String, Refusal> {
    let fits = (text.starts_with("https://") || text.starts_with("http://"))
        && text.len() <= URL_MAX_BYTES
        && !text.chars().any(|c| c.is_whitespace() || c.is_control());
    if fits { Ok(text.to_owned()) } else { Err(refusal(field, format!("must be an http(s) address of at most {URL_MAX_BYTES} bytes"))) }
}

pub(super) fn prepare(order: &ChargeOrder) -> Result<Vec<u8>, Refusal> {
    let shape = shape(order.method).ok_or_else(|| refusal("method", "must be qr, page, wap or barcode"))?;
    if order.manual_capture {
        return Err(refusal("capture", "must be automatic: these methods take the money at once"));
    }
    if order.amount.currency != Currency::CNY {
        return Err(refusal("currency", "must be CNY"));
    }
    let (least, most) = CAPABILITY.amount_range;
    if !(least..=most).contains(&order.amount.minor) {
        return Err(refusal("amount", format!("must be {least}–{most} fen")));
    }
    let subject = if order.description.trim().is_empty() { order.channel_ref.as_str() } else { order.description.as_str() };
    if subject.chars().count() > SUBJECT_MAX_CHARS {
        return Err(refusal("description", format!("must have at most {SUBJECT_MAX_CHARS} characters")));
    }
    let out_trade_no = number("channel_ref", order.channel_ref.as_str())?.to_owned();
    let expiry = beijing::text(order.expires_at).ok_or_else(|| refusal("expires_at", "must lie in the years 0–9999"))?;

    let mut biz = options(&order.options, &shape)?;
    let members = [
        ("out_trade_no", out_trade_no.clone()),
        ("total_amount", order.amount.to_decimal()),
        ("subject", subject.to_owned()),
        ("product_code", shape.product_code.to_owned()),
        ("time_expire", expiry),
    ];
    biz.extend(members.map(|(name, value)| (name.to_owned(), Value::String(value))));

    let content = Content {
        method: shape.method.to_owned(),
        biz_content: Value::Object(biz).to_string(),
        out_trade_no,
        notify_url: Some(url("notify_url", &order.notify_url)?),
        return_url: order.return_url.as_deref().map(|text| url("return_url", text)).transpose()?,
    };
    serde_json::to_vec(&content).map_err(|_| refusal("channel_options", "cannot be written as JSON"))
}

fn options(given: &Value, shape: &Shape) -> Result<Map<String, Value>, Refusal> {
    let mut biz = Map::new();
    match given {
        Value::Null => {}
        Value::Object(members) => {
            for (name, value) in members {
                let field = format!("channel_options.{name}");
                if !shape.options.contains(&name.as_str()) {
                    return Err(refusal(&field, format!("is not known here; the options are {}", shape.options.join(", "))));
                }
                let text = value.as_str().filter(|text| !text.trim().is_empty() && text.chars().count() <= OPTION_MAX_CHARS);
                let text = text.ok_or_else(|| refusal(&field, format!("must be a text of 1–{OPTION_MAX_CHARS} characters")))?;
                biz.insert(name.clone(), Value::String(text.to_owned()));
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(refusal("channel_options", "must be an object"));
        }
    }
    if shape.method == PAY {
        let code = biz.get("auth_code").and_then(Value::as_str).unwrap_or_default();
        if !(16..=32).contains(&code.len()) || !code.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(refusal("channel_options.auth_code", "is needed: the 16–32 characters of the code that the buyer shows"));
        }
        biz.entry("scene").or_insert_with(|| Value::String("bar_code".to_owned()));
    }
    Ok(biz)
}

pub(super) fn send(config: &Config, content: &[u8], now: Timestamp) -> Step<Outcome> {
    let Ok(content) = serde_json::from_slice::<Content>(content) else {
        return Step::Local(Outcome::NotSent("the stored content is not one of this channel's".to_owned()));
    };
    let mut parameters = sign::parameters(config, &content.method, &content.biz_content, now);
    for (name, value) in [("notify_url", &content.notify_url), ("return_url", &content.return_url)] {
        if let Some(value) = value {
            parameters.push((name.to_owned(), value.clone()));
        }
    }
    if content.method == PAGE || content.method == WAP {
        // No server of Alipay is asked: the buyer's browser brings the order.
        let url = sign::address(config, parameters);
        return Step::Local(Outcome::Waiting { action: Some(Action::Redirect { url }), txn: None });
    }
    let keys = config.channel_keys.clone();
    let Content { method, out_trade_no, .. } = content;
    Step::Call(Call {
        operation: Operation::Charge,
        request: sign::post(config, parameters),
        read: Box::new(move |wire| outcome::charge(reply::read(wire, &method, &keys), &method, &out_trade_no)),
    })
}
