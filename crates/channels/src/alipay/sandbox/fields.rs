//! What `biz_content` says, field by field, with the gateway's own refusals.

use payonce_core::clock::Timestamp;
use serde_json::{Value, json};

use super::trade::Order;
use super::{auth_code, biz, when};
use crate::books::{Draft, Recognised};

/// A refusal in the gateway's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// `ACQ.…`
    pub(super) sub_code: &'static str,
    /// For people.
    pub(super) sub_msg: String,
}

impl Failure {
    pub(super) fn new(sub_code: &'static str, sub_msg: impl Into<String>) -> Self {
        Self { sub_code, sub_msg: sub_msg.into() }
    }

    fn parameter(name: &str, rule: &str) -> Self {
        Self::new("ACQ.INVALID_PARAMETER", format!("参数无效：{name} {rule}"))
    }
}

impl From<Failure> for Draft {
    fn from(failure: Failure) -> Self {
        super::answer::failure("40004", failure.sub_code, &failure.sub_msg)
    }
}

/// The longest amount: a hundred million yuan, in fen.
const TOTAL_MAX: i64 = 10_000_000_000;
const DAY_SECONDS: u64 = 24 * 3600;

/// A text, if it is there and not empty.
pub(super) fn text(biz: &Value, name: &str) -> Option<String> {
    biz.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Yuan with at most two places, as text or number, in fen. Written without the core's parser, on purpose.
pub(super) fn fen(biz: &Value, name: &str) -> Result<i64, Failure> {
    let refuse = || Failure::parameter(name, "must be 0.01 to 100000000 yuan with at most two decimal places");
    let text = match biz.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => return Err(refuse()),
    };
    let (whole, places) = text.split_once('.').unwrap_or((&text, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || whole.len() > 9 || places.len() > 2 || text.ends_with('.') || !digits(whole) || !digits(places) {
        return Err(refuse());
    }
    let amount: i64 = format!("{whole}{places:0<2}").parse().map_err(|_| refuse())?;
    if (1..=TOTAL_MAX).contains(&amount) { Ok(amount) } else { Err(refuse()) }
}

/// A merchant's number: letters, digits and the extra characters, 1 to 64.
pub(super) fn number(biz: &Value, name: &'static str, extra: &[u8]) -> Result<String, Failure> {
    let refuse = || Failure::parameter(name, "must be 1 to 64 letters, digits or underscores");
    let number = text(biz, name).ok_or_else(refuse)?;
    let fits = number.len() <= 64 && number.bytes().all(|b| b.is_ascii_alphanumeric() || extra.contains(&b));
    if fits { Ok(number) } else { Err(refuse()) }
}

/// Reads the order of a request that takes money.
pub(super) fn order(request: &Recognised, now: Timestamp) -> Result<Order, Failure> {
    let biz = biz(request);
    let public = |name: &str| request.content.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let method = public("method");
    let total = fen(&biz, "total_amount")?;
    let subject = text(&biz, "subject").ok_or_else(|| Failure::parameter("subject", "must not be empty"))?;
    if subject.chars().count() > 256 {
        return Err(Failure::parameter("subject", "must have at most 256 characters"));
    }
    let expires = expiry(&biz, &method, now)?;
    let mut agreed = biz.clone();
    if let Value::Object(members) = &mut agreed {
        // Who pays is compared apart, and the amount as a number.
        for name in ["auth_code", "buyer_id", "buyer_open_id", "op_buyer_open_id"] {
            members.remove(name);
        }
        members.insert("total_amount".to_owned(), json!(total));
        members.insert("method".to_owned(), json!(method));
    }
    let some = |text: String| (!text.is_empty()).then_some(text);
    Ok(Order {
        account: request.account.clone(),
        charset: public("charset"),
        out_trade_no: number(&biz, "out_trade_no", b"_")?,
        total,
        subject,
        body: text(&biz, "body"),
        passback_params: text(&biz, "passback_params"),
        notify_url: some(public("notify_url")),
        return_url: some(public("return_url")),
        agreed,
        expires,
        buyer: buyer(&biz, &method)?,
        method,
    })
}

fn expiry(biz: &Value, method: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    if let Some(given) = text(biz, "time_expire") {
        let at = when::parse(&given).ok_or_else(|| Failure::parameter("time_expire", "must be yyyy-MM-dd HH:mm:ss"))?;
        return if at > now { Ok(at) } else { Err(Failure::parameter("time_expire", "has passed")) };
    }
    for name in ["timeout_express", "qr_code_timeout_express"] {
        if let Some(given) = text(biz, name) {
            return when::parse_timeout(&given, now).ok_or_else(|| Failure::parameter(name, "must be like 90m, 2h, 1d or 1c"));
        }
    }
    // Without a word a QR code holds two hours, anything else fifteen days.
    let seconds = if method == "alipay.trade.precreate" { 2 * 3600 } else { 15 * DAY_SECONDS };
    Ok(now.plus(std::time::Duration::from_secs(seconds)))
}

fn buyer(biz: &Value, method: &str) -> Result<Option<String>, Failure> {
    match method {
        "alipay.trade.pay" => {
            let code = text(biz, "auth_code").ok_or_else(|| Failure::parameter("auth_code", "must not be empty"))?;
            let (_, buyer) =
                auth_code::read(&code).ok_or_else(|| Failure::new("ACQ.PAYMENT_AUTH_CODE_INVALID", "支付失败，获取顾客账户信息失败"))?;
            Ok(Some(buyer))
        }
        "alipay.trade.create" => {
            let named = ["buyer_id", "buyer_open_id", "op_buyer_open_id"].iter().find_map(|name| text(biz, name));
            named.map(Some).ok_or_else(|| Failure::parameter("buyer_id", "must name the buyer"))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_and_bounded() {
        for (given, expected) in [("0.01", 1), ("8.8", 880), ("8.80", 880), ("100000000.00", TOTAL_MAX), ("12", 1200), ("0019.90", 1990)] {
            assert_eq!(fen(&json!({ "a": given }), "a"), Ok(expected), "{given}");
        }
        assert_eq!(fen(&json!({ "a": 12.5 }), "a"), Ok(1250));
        for bad in ["0", "0.00", "1.001", "1.", ".5", "-1", "1e2", "", "100000000.01", "１", "99999999999999999999"] {
            assert!(fen(&json!({ "a": bad }), "a").is_err(), "{bad}");
        }
    }
}
