//! Orders and refunds: what is stored, what is sent, and which settings and options are refused.

use std::collections::BTreeMap;
use std::time::Duration;

use payonce_channels::alipay::{Parameter, canonical_request};
use payonce_channels::contract::{
    Account, Call, ChargeOrder, CloseKind, ConfigFault, Idempotency, OrderFacts, RefundFacts, RefundOrder, Step,
};
use payonce_channels::crypto::base64;
use payonce_channels::crypto::rsa::VerifyingKey;
use payonce_channels::registry;
use payonce_channels::transport::WireRequest;
use payonce_core::channel_ref::ChannelRef;
use payonce_core::clock::Timestamp;
use payonce_core::money::{Currency, Money};
use payonce_core::outcome::{Action, Outcome};
use serde_json::{Value, json};

use super::{Fixture, fixture, pairs};

fn now() -> Timestamp {
    Timestamp::parse_rfc3339("2026-12-01T13:45:36Z").expect("a time")
}

fn order(method: &'static str) -> ChargeOrder {
    let options = if method == "barcode" { json!({ "auth_code": "284927461234567890" }) } else { json!({}) };
    ChargeOrder {
        channel_ref: ChannelRef::parse("o1").expect("a number"),
        method,
        amount: Money::new(1990, Currency::CNY),
        description: "双十一 手机壳📱+充电线 & 数据线=套装 50% off".to_owned(),
        expires_at: Timestamp::parse_rfc3339("2026-03-08T02:30:00-05:00").expect("a time"),
        return_url: Some("https://shop.example.test/back?x=1&y=2".to_owned()),
        notify_url: "https://pay.example.test/webhooks/alipay/main".to_owned(),
        manual_capture: false,
        options,
        attempt_id: "att_1".to_owned(),
    }
}

pub(crate) fn content(fixture: &Fixture, method: &'static str) -> Vec<u8> {
    fixture.account.prepare_charge(&order(method)).expect("content")
}

/// The parameters of a request, out of its address and its body, and that their signature is ours.
fn sent(fixture: &Fixture, request: &WireRequest) -> BTreeMap<String, String> {
    let (_, query) = request.url.split_once('?').expect("a query");
    let mut all = pairs(query.as_bytes());
    if !request.body.is_empty() {
        all.extend(pairs(&request.body));
    }
    authentic(fixture, all)
}

fn authentic(fixture: &Fixture, all: Vec<Parameter>) -> BTreeMap<String, String> {
    let key = VerifyingKey::parse(fixture.file.text("/keys/merchant_app_public_key")).expect("a key");
    let parameters: BTreeMap<String, String> = all.iter().cloned().collect();
    assert_eq!(parameters.len(), all.len(), "no parameter twice");
    let sign = base64::decode(parameters["sign"].as_bytes()).expect("Base64");
    assert!(key.fits(canonical_request(&all).as_bytes(), &sign));
    parameters
}

fn biz(parameters: &BTreeMap<String, String>) -> Value {
    serde_json::from_str(&parameters["biz_content"]).expect("JSON")
}

fn call(fixture: &Fixture, method: &'static str, content: &[u8], now: Timestamp) -> Call<Outcome> {
    match fixture.account.charge(method, content, now) {
        Step::Call(call) => call,
        Step::Local(outcome) => panic!("no call: {outcome:?}"),
    }
}

#[test]
fn a_repeat_sends_the_same_content_under_a_new_envelope() {
    let fixture = fixture();
    let content = content(fixture, "qr");
    let first = sent(fixture, &call(fixture, "qr", &content, now()).request);
    let later = sent(fixture, &call(fixture, "qr", &content, now().plus(Duration::from_secs(3600))).request);
    assert_eq!((first["timestamp"].as_str(), later["timestamp"].as_str()), ("2026-12-01 21:45:36", "2026-12-01 22:45:36"));
    for (name, value) in &first {
        if name != "timestamp" && name != "sign" {
            assert_eq!(later.get(name), Some(value), "{name}");
        }
    }
    for (name, value) in [
        ("method", "alipay.trade.precreate"),
        ("charset", "utf-8"),
        ("sign_type", "RSA2"),
        ("version", "1.0"),
        ("notify_url", "https://pay.example.test/webhooks/alipay/main"),
    ] {
        assert_eq!(first[name], value);
    }
    let biz = biz(&first);
    assert_eq!(
        (&biz["out_trade_no"], &biz["total_amount"], &biz["subject"]),
        (&json!("o1"), &json!("19.90"), &json!(order("qr").description))
    );
}

#[test]
fn parameters_without_a_value_and_the_signature_itself_are_not_signed() {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let given = [pair("b", "2"), pair("empty", ""), pair("sign", "x"), pair("a", "1 &=%"), pair("sign_type", "RSA2"), pair("B", "0")];
    assert_eq!(canonical_request(&given), "B=0&a=1 &=%&b=2&sign_type=RSA2");
}

#[test]
fn a_page_needs_no_call_and_is_an_address_that_carries_the_signed_order() {
    let fixture = fixture();
    for (method, at_alipay) in [("page", "alipay.trade.page.pay"), ("wap", "alipay.trade.wap.pay")] {
        let step = fixture.account.charge(method, &content(fixture, method), now());
        let Step::Local(Outcome::Waiting { action: Some(Action::Redirect { url }), txn: None }) = step else {
            panic!("{method}: {step:?}")
        };
        let (gateway, query) = url.split_once('?').expect("a query");
        assert_eq!(gateway, "https://openapi.alipay.com/gateway.do");
        let parameters = authentic(fixture, pairs(query.as_bytes()));
        assert_eq!(parameters["method"], at_alipay);
        assert_eq!(parameters["return_url"], "https://shop.example.test/back?x=1&y=2");
    }
    assert!(matches!(fixture.account.charge("page", b"not ours", now()), Step::Local(Outcome::NotSent(_))));
}

#[test]
fn b069_the_expiry_that_is_sent_is_beijing_time() {
    let fixture = fixture();
    for method in ["qr", "barcode"] {
        let parameters = sent(fixture, &call(fixture, method, &content(fixture, method), now()).request);
        assert_eq!(biz(&parameters)["time_expire"], json!("2026-03-08 15:30:00"), "{method}");
    }
}

#[test]
fn b084_every_amount_is_sent_exactly() {
    let fixture = fixture();
    let amounts = (1..=100_000).step_by(7).chain([1990, 167, 268, 29, 57, 115, 819_283, 9_999_999_999, 10_000_000_000]);
    for minor in amounts {
        let amount = Money::new(minor, Currency::CNY);
        let expected = json!(format!("{}.{:02}", minor / 100, minor % 100));
        let content = fixture.account.prepare_charge(&ChargeOrder { amount, ..order("qr") }).expect("content");
        let content: Value = serde_json::from_slice(&content).expect("JSON");
        let biz: Value = serde_json::from_str(content["biz_content"].as_str().expect("a text")).expect("JSON");
        assert_eq!(biz["total_amount"], expected);
        let refund = fixture.account.prepare_refund(&RefundOrder { amount, of: amount, ..refund_order("r1") }).expect("content");
        let refund: Value = serde_json::from_slice(&refund).expect("JSON");
        let biz: Value = serde_json::from_str(refund["biz_content"].as_str().expect("a text")).expect("JSON");
        assert_eq!(biz["refund_amount"], expected);
    }
}

fn refund_order(refund_ref: &str) -> RefundOrder {
    RefundOrder {
        refund_ref: ChannelRef::parse(refund_ref).expect("a number"),
        channel_ref: ChannelRef::parse("o1").expect("a number"),
        channel_txn: Some("T1".to_owned()),
        of: Money::new(10_000, Currency::CNY),
        amount: Money::new(3000, Currency::CNY),
        reason: Some("礼盒🎁 \"引号\"\r\n第二行".to_owned()),
        notify_url: "https://pay.example.test/webhooks/alipay/main".to_owned(),
    }
}

#[test]
fn b024_every_refund_carries_its_own_number() {
    let fixture = fixture();
    for refund_ref in ["r1", "r2"] {
        let content = fixture.account.prepare_refund(&refund_order(refund_ref)).expect("content");
        let call = fixture.account.refund(&content, now());
        let parameters = sent(fixture, &call.request);
        assert_eq!(parameters["method"], "alipay.trade.refund");
        assert_eq!(
            biz(&parameters),
            json!({ "out_trade_no": "o1", "out_request_no": refund_ref, "refund_amount": "30.00", "refund_reason": "礼盒🎁 \"引号\"\r\n第二行" })
        );
    }
    let too_much = RefundOrder { amount: Money::new(10_001, Currency::CNY), ..refund_order("r1") };
    assert!(fixture.account.prepare_refund(&too_much).is_err());
}

#[test]
fn look_ups_and_closes_name_the_order_by_our_number() {
    let fixture = fixture();
    let facts = |method: &str| OrderFacts {
        channel_ref: ChannelRef::parse("o1").expect("a number"),
        channel_txn: None,
        method: method.to_owned(),
        amount: Money::new(1990, Currency::CNY),
    };
    let close = |method: &str| sent(fixture, &fixture.account.close(&facts(method), now()).expect("a close").request);
    assert_eq!(close("qr")["method"], "alipay.trade.close");
    assert_eq!(close("page")["method"], "alipay.trade.close");
    assert_eq!(close("barcode")["method"], "alipay.trade.cancel");
    assert_eq!(biz(&close("qr")), json!({ "out_trade_no": "o1" }));
    let refund = RefundFacts {
        refund_ref: ChannelRef::parse("r1").expect("a number"),
        channel_refund_id: None,
        order: facts("qr"),
        amount: Money::new(3000, Currency::CNY),
    };
    let asked = sent(fixture, &fixture.account.query_refund(&refund, now()).expect("a look-up").request);
    assert_eq!(asked["method"], "alipay.trade.fastpay.refund.query");
    assert_eq!(biz(&asked), json!({ "out_trade_no": "o1", "out_request_no": "r1" }));
}

#[test]
fn what_alipay_would_refuse_is_refused_before_anything_is_stored() {
    let fixture = fixture();
    let refused = |order: ChargeOrder| fixture.account.prepare_charge(&order).map_err(|refusal| refusal.field);
    let usd = Currency::parse("USD").expect("a currency");
    let cases = [
        (ChargeOrder { amount: Money::new(0, Currency::CNY), ..order("qr") }, "amount"),
        (ChargeOrder { amount: Money::new(10_000_000_001, Currency::CNY), ..order("qr") }, "amount"),
        (ChargeOrder { amount: Money::new(100, usd), ..order("qr") }, "currency"),
        (ChargeOrder { manual_capture: true, ..order("qr") }, "capture"),
        (ChargeOrder { description: "x".repeat(257), ..order("qr") }, "description"),
        (ChargeOrder { channel_ref: ChannelRef::parse("o-1").expect("a number"), ..order("qr") }, "channel_ref"),
        (ChargeOrder { notify_url: "ftp://x".to_owned(), ..order("qr") }, "notify_url"),
        (ChargeOrder { return_url: Some("javascript:alert(1)".to_owned()), ..order("qr") }, "return_url"),
        (ChargeOrder { options: json!({ "timeout_express": "1m" }), ..order("qr") }, "channel_options.timeout_express"),
        (ChargeOrder { options: json!({ "total_amount": "0.01" }), ..order("qr") }, "channel_options.total_amount"),
        (ChargeOrder { options: json!({ "store_id": 7 }), ..order("qr") }, "channel_options.store_id"),
        (ChargeOrder { options: json!([]), ..order("qr") }, "channel_options"),
        (ChargeOrder { options: json!({}), ..order("barcode") }, "channel_options.auth_code"),
        (ChargeOrder { options: json!({ "auth_code": "12 34" }), ..order("barcode") }, "channel_options.auth_code"),
        (ChargeOrder { method: "app", ..order("qr") }, "method"),
    ];
    for (order, field) in cases {
        assert_eq!(refused(order), Err(field.to_owned()));
    }
    assert!(refused(ChargeOrder { description: String::new(), options: Value::Null, ..order("qr") }).is_ok());
}

fn fault(settings: &Value) -> ConfigFault {
    registry::adapter("alipay").expect("built").account(settings).map(|_| ()).expect_err("refused")
}

#[test]
fn b056_an_account_without_sound_keys_is_not_made() {
    let fixture = fixture();
    let with = |name: &str, value: Value| {
        let mut settings = fixture.settings.clone();
        settings[name] = value;
        settings
    };
    let without = |name: &str| {
        let mut settings = fixture.settings.clone();
        settings.as_object_mut().expect("object").remove(name);
        settings
    };
    for name in ["app_id", "seller_id", "private_key", "alipay_public_key"] {
        assert_eq!(fault(&without(name)).setting, name);
        for blank in ["", "   ", "\n"] {
            assert_eq!(fault(&with(name, json!(blank))).setting, name, "{blank:?}");
        }
    }
    let own = fixture.file.text("/keys/merchant_app_public_key");
    for (name, value) in [
        ("private_key", json!(own)),
        ("alipay_public_key", json!(own)),
        ("alipay_public_keys", json!([])),
        ("alipay_public_keys", json!([""])),
        ("app_id", json!("2021…")),
        ("app_id", json!("YOUR_APP_ID")),
        ("seller_id", json!("2088 1001")),
        ("seller_id", json!("1".repeat(33))),
        ("gateway_url", json!("openapi.alipay.com")),
        ("gateway_url", json!("https://x/?a=b")),
        ("app_secret", json!("hunter2")),
        ("private_key_file", json!("/does/not/exist")),
    ] {
        let settings = if value == json!([]) {
            let mut s = without("alipay_public_key");
            s[name] = value;
            s
        } else {
            with(name, value)
        };
        let fault = fault(&settings);
        assert!(!fault.to_string().contains("hunter2") && !fault.to_string().contains("MII"), "{fault}");
    }
    let shown = format!("{:?}", fixture.account);
    assert!(!shown.contains("MII") && shown.contains("[private key]"), "{shown}");
}

#[test]
fn keys_are_taken_in_every_form_in_which_they_are_pasted() {
    let fixture = fixture();
    let bare = |pem: &str| pem.lines().filter(|line| !line.starts_with("-----")).collect::<String>();
    let private = fixture.file.text("/keys/merchant_app_private_key_pkcs8_TEST_ONLY");
    let public = fixture.file.text("/keys/alipay_public_key");
    let mut settings = fixture.settings.clone();
    settings["private_key"] = json!(format!("  {}\n", bare(private)));
    settings["alipay_public_key"] = json!(bare(public));
    let account = super::open(&settings);
    let case = fixture.file.case("alipay-s01");
    assert!(account.verify(&case.raw, case.now).is_ok());
    // PKCS#1, which Alipay's key tool gives to users of languages other than Java: the octets inside the PKCS#8 wrapping.
    let pkcs8 = base64::decode(bare(private).as_bytes()).expect("Base64");
    let pkcs1 = base64::encode(&pkcs8[26..]);
    settings["private_key"] = json!(pkcs1);
    let account: std::sync::Arc<dyn Account> = super::open(&settings);
    let Step::Call(one) = account.charge("qr", &content(fixture, "qr"), now()) else { panic!("a call") };
    assert_eq!(one.request.body, call(fixture, "qr", &content(fixture, "qr"), now()).request.body, "the same key signs the same");
}

#[test]
fn the_capability_says_what_silence_proves() {
    let capability = fixture().account.capability();
    assert_eq!(capability.method(None).map(|method| method.name), Some("qr"));
    for name in ["qr", "page", "wap"] {
        let method = capability.method(Some(name)).expect("a method");
        assert_eq!((method.not_found_final_after, method.close, method.charge), (None, CloseKind::Close, Idempotency::ReEntryWhileUnpaid));
    }
    let barcode = capability.method(Some("barcode")).expect("a method");
    assert_eq!((barcode.not_found_final_after, barcode.close), (Some(Duration::from_secs(60)), CloseKind::CancelReturns));
    assert!(capability.redelivery_horizon >= Duration::from_secs(24 * 3600 + 24 * 60));
    assert!(capability.methods.iter().all(|method| method.default_ttl <= method.max_ttl));
}

/// The simulated gateway reads and checks requests with code of its own.
#[test]
fn the_channel_s_own_side_finds_our_requests_authentic() {
    let fixture = fixture();
    let key = VerifyingKey::parse(fixture.file.text("/keys/merchant_app_public_key")).expect("a key");
    let request = call(fixture, "qr", &content(fixture, "qr"), now()).request;
    let (_, query) = request.url.split_once('?').expect("a query");
    let mut params = payonce_channels::form::decode(query.as_bytes()).expect("a form");
    params.extend(payonce_channels::form::decode(&request.body).expect("a form"));
    assert!(payonce_channels::alipay::sandbox::request_is_authentic(&params, key.der()));
    params[0].1.push(b'x');
    assert!(!payonce_channels::alipay::sandbox::request_is_authentic(&params, key.der()));
}
