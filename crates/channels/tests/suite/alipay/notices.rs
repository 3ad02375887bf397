//! Notices: what is refused, what is read, and what tells events apart.

use payonce_channels::contract::Account;
use payonce_channels::crypto::base64;
use payonce_channels::crypto::rsa::SigningKey;
use payonce_channels::form;
use payonce_core::clock::Timestamp;
use payonce_core::money::{Currency, Money};
use payonce_core::notification::{Booked, Facts, Notification, RawRequest, Reason, bind};
use payonce_core::secret::Secret;
use serde_json::json;

use super::{Fixture, fixture, open, pairs};

type Raw = (&'static str, Vec<u8>);

const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

fn at() -> Timestamp {
    Timestamp::from_unix(1_796_132_736)
}

fn delivered(content_type: &str, body: Vec<u8>) -> RawRequest {
    RawRequest {
        method: "POST".to_owned(),
        path_and_query: "/webhooks/alipay/main".to_owned(),
        headers: vec![("content-type".to_owned(), content_type.as_bytes().to_vec())],
        body,
    }
}

/// Signed by `key` over the bytes, and encoded byte by byte: written here and not taken from the adapter.
fn signed(key: &SigningKey, fields: &[Raw]) -> Vec<u8> {
    let mut sorted = fields.to_vec();
    sorted.sort();
    let text: Vec<Vec<u8>> = sorted.iter().map(|(name, value)| [name.as_bytes(), b"=", value].concat()).collect();
    let sign = base64::encode(&key.sign(&text.join(&b'&')).expect("a signature"));
    let mut whole = fields.to_vec();
    whole.extend([("sign", sign.into_bytes()), ("sign_type", b"RSA2".to_vec())]);
    encoded(&whole)
}

fn encoded(fields: &[Raw]) -> Vec<u8> {
    let escaped = |bytes: &[u8]| bytes.iter().map(|b| format!("%{b:02X}")).collect::<String>();
    let whole: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    whole.join("&").into_bytes()
}

fn notice(fixture: &Fixture, more: &[(&'static str, &str)]) -> Vec<Raw> {
    let own = [
        ("app_id", fixture.file.text("/own/app_id")),
        ("seller_id", fixture.file.text("/own/seller_id")),
        ("out_trade_no", "O1"),
        ("trade_no", "T1"),
        ("total_amount", "100.00"),
        ("trade_status", "TRADE_SUCCESS"),
        ("notify_type", "trade_status_sync"),
        ("charset", "utf-8"),
    ];
    let mut fields: Vec<Raw> = own.iter().map(|(name, value)| (*name, value.as_bytes().to_vec())).collect();
    for (name, value) in more {
        fields.retain(|(given, _)| given != name);
        fields.push((name, value.as_bytes().to_vec()));
    }
    fields
}

fn read(account: &dyn Account, body: Vec<u8>) -> Result<Notification, Reason> {
    let events = account.verify(&delivered(FORM, body), at()).map_err(|rejection| rejection.reason)?;
    assert_eq!(events.len(), 1);
    Ok(events[0].clone())
}

fn event(fixture: &Fixture, more: &[(&'static str, &str)]) -> Notification {
    read(fixture.account.as_ref(), signed(&fixture.alipay, &notice(fixture, more))).expect("verified")
}

#[test]
fn any_changed_byte_of_a_signed_notice_is_refused() {
    let fixture = fixture();
    let case = fixture.file.case("alipay-s03");
    let genuine = pairs(&case.raw.body);
    let (mut refused, mut same) = (0, 0);
    for at in 0..case.raw.body.len() {
        for mask in [0x01, 0x20, 0x80] {
            let mut raw = case.raw.clone();
            raw.body[at] ^= mask;
            // `%2b` and `%2B` are one byte: such a change changes nothing.
            let means = form::decode(&raw.body).ok();
            if means.is_some_and(|means| {
                means.iter().zip(&genuine).all(|(m, g)| m.0 == g.0.as_bytes() && m.1 == g.1.as_bytes()) && means.len() == genuine.len()
            }) {
                same += 1;
                continue;
            }
            assert!(fixture.account.verify(&raw, case.now).is_err(), "byte {at} ^ {mask:#x}");
            refused += 1;
        }
    }
    assert!(refused > 3000 && same < 400, "{refused} refused, {same} the same");
}

#[test]
fn b054_notices_without_the_fields_that_trigger_the_check_are_refused() {
    let fixture = fixture();
    let account = fixture.account.as_ref();
    let fields = notice(fixture, &[]);
    let without = |name: &str| fields.iter().filter(|(given, _)| *given != name).cloned().collect::<Vec<Raw>>();
    let with_type = |fields: &[Raw], more: &[(&'static str, &str)]| {
        let mut fields = fields.to_vec();
        fields.extend(more.iter().map(|(name, value)| (*name, value.as_bytes().to_vec())));
        encoded(&fields)
    };
    assert_eq!(read(account, with_type(&fields, &[("sign_type", "RSA2")])), Err(Reason::MissingField), "no sign");
    assert_eq!(read(account, with_type(&fields, &[("sign", ""), ("sign_type", "RSA2")])), Err(Reason::MissingField), "empty sign");
    assert_eq!(read(account, with_type(&fields, &[("sign", "AAAA"), ("sign_type", "RSA2")])), Err(Reason::BadSignature));
    for name in ["app_id", "seller_id", "trade_status", "trade_no", "out_trade_no", "total_amount"] {
        assert_eq!(read(account, signed(&fixture.alipay, &without(name))), Err(Reason::MissingField), "signed without {name}");
    }
    let genuine = signed(&fixture.alipay, &fields);
    let no_sign_type: Vec<u8> = String::from_utf8(genuine.clone()).expect("ASCII").replace("&sign_type=%52%53%41%32", "").into_bytes();
    assert_eq!(read(account, no_sign_type), Err(Reason::MissingField));
    for content_type in ["text/plain", "application/json", "", "multipart/form-data; boundary=x"] {
        assert!(account.verify(&delivered(content_type, genuine.clone()), at()).is_err(), "{content_type:?}");
    }
    let mut bare = delivered(FORM, genuine.clone());
    bare.headers.clear();
    assert_eq!(account.verify(&bare, at()).map_err(|rejection| rejection.reason), Err(Reason::MissingHeader));
    let query = RawRequest {
        path_and_query: format!("/webhooks/alipay/main?{}", String::from_utf8(genuine.clone()).expect("ASCII")),
        ..delivered(FORM, Vec::new())
    };
    assert!(account.verify(&query, at()).is_err(), "sign in the query string");
    let get = RawRequest { method: "GET".to_owned(), ..delivered(FORM, genuine.clone()) };
    assert!(account.verify(&get, at()).is_err());
    assert!(read(account, genuine).is_ok(), "the genuine one is accepted after all of them");
}

#[test]
fn b057_genuine_notices_of_another_context_do_not_bind_and_equal_amounts_do() {
    let fixture = fixture();
    let ours = fixture.account.merchant();
    let booked = Some(Booked { amount: Money::new(10_000, Currency::CNY) });
    let bound = |more: &[(&'static str, &str)], booked| bind(&event(fixture, more), &ours, booked, Some(Currency::CNY));
    assert_eq!(bound(&[("app_id", "2021000000000000")], booked), Err(Reason::WrongMerchant));
    assert_eq!(bound(&[("seller_id", "2088000000000000")], booked), Err(Reason::WrongMerchant));
    assert_eq!(bound(&[("total_amount", "0.01")], booked), Err(Reason::AmountMismatch));
    assert_eq!(bound(&[("trans_currency", "USD")], booked), Err(Reason::CurrencyMismatch));
    assert_eq!(bound(&[], None), Err(Reason::UnknownOrder));
    for amount in ["100", "100.0", "100.00"] {
        assert_eq!(bound(&[("total_amount", amount)], booked), Ok(()), "{amount}");
    }
    let empty = signed(&fixture.alipay, &notice(fixture, &[("total_amount", "")]));
    assert!(read(fixture.account.as_ref(), empty).is_err(), "money of no amount");
    let signed = signed(&fixture.alipay, &notice(fixture, &[("total_amount", "100.001")]));
    assert_eq!(read(fixture.account.as_ref(), signed), Err(Reason::Malformed), "no amount of fen");
}

#[test]
fn b060_gbk_and_gb18030_are_verified_in_their_own_bytes_and_the_signed_charset_wins() {
    let fixture = fixture();
    for (charset, subject) in [("GBK", "双十一手机壳"), ("gb2312", "生日快乐"), ("GB18030", "𠮷野家 ①号店"), ("utf-8", "双十一📱")]
    {
        let encoding = encoding_rs::Encoding::for_label(charset.as_bytes()).expect("a charset");
        let bytes = encoding.encode(subject).0.into_owned();
        let mut fields = notice(fixture, &[("charset", charset)]);
        fields.push(("subject", bytes.clone()));
        // Among the statuses that are only named, a text in the charset shows how it was read.
        fields.retain(|(name, _)| *name != "trade_status");
        fields.push(("trade_status", bytes));
        let body = signed(&fixture.alipay, &fields);
        for header in [FORM, "application/x-www-form-urlencoded; charset=GBK", "application/x-www-form-urlencoded"] {
            let events = fixture.account.verify(&delivered(header, body.clone()), at()).expect("verified");
            assert_eq!(events[0].status, subject, "{charset} under {header}");
        }
    }
    let unknown = signed(&fixture.alipay, &notice(fixture, &[("charset", "klingon")]));
    assert_eq!(read(fixture.account.as_ref(), unknown), Err(Reason::Malformed));
}

#[test]
fn b061_unknown_empty_and_reordered_fields_take_part_and_are_taken() {
    let fixture = fixture();
    let more =
        [("voucher_detail_list", "[{\"amount\":\"1.00\",\"name\":\"a&b=c\"}]"), ("a_field_of_tomorrow", "x"), ("body", ""), ("zz", "@at")];
    let mut fields = notice(fixture, &more);
    let read_at = read(fixture.account.as_ref(), signed(&fixture.alipay, &fields)).expect("verified");
    fields.reverse();
    assert_eq!(read(fixture.account.as_ref(), signed(&fixture.alipay, &fields)), Ok(read_at));
    let body = String::from_utf8(signed(&fixture.alipay, &fields)).expect("ASCII");
    let dropped = body.replace("body=&", "");
    assert_ne!(dropped, body);
    assert_eq!(read(fixture.account.as_ref(), dropped.into_bytes()), Err(Reason::BadSignature), "an empty field is signed too");
}

#[test]
fn b063_either_key_of_a_rotation_verifies_in_either_order_and_no_third() {
    let fixture = fixture();
    let new = fixture.file.text("/keys/alipay_public_key").to_owned();
    // The other side of the rotation: any key that is neither ours nor the current one.
    let old_private = include_str!("../../../src/alipay/sandbox_keys/alipay_1.private.pem");
    let old_public = include_str!("../../../src/alipay/sandbox_keys/alipay_1.public.pem");
    let old = SigningKey::parse(&Secret::new(old_private)).expect("a key");
    let forger = SigningKey::parse(&Secret::new(include_str!("../../../src/alipay/sandbox_keys/forger.private.pem"))).expect("a key");
    for keys in [json!([old_public, new]), json!([new, old_public])] {
        let mut settings = fixture.settings.clone();
        settings.as_object_mut().expect("object").remove("alipay_public_key");
        settings["alipay_public_keys"] = keys;
        let account = open(&settings);
        assert!(read(account.as_ref(), signed(&fixture.alipay, &notice(fixture, &[]))).is_ok());
        assert!(read(account.as_ref(), signed(&old, &notice(fixture, &[]))).is_ok());
        assert_eq!(read(account.as_ref(), signed(&forger, &notice(fixture, &[]))), Err(Reason::BadSignature));
    }
}

#[test]
fn b052_events_of_one_order_have_identities_of_their_own_and_a_redelivery_has_none() {
    let fixture = fixture();
    let identity = |more: &[(&'static str, &str)]| event(fixture, more).identity;
    let first = [("gmt_refund", "2026-12-01 21:55:26.123"), ("refund_fee", "30.00"), ("out_biz_no", "R1")];
    let second = [("gmt_refund", "2026-12-01 22:05:26.456"), ("refund_fee", "70.00"), ("out_biz_no", "R2")];
    let last = [("trade_status", "TRADE_CLOSED"), ("gmt_refund", "2026-12-01 22:15:26"), ("refund_fee", "100.00"), ("out_biz_no", "R3")];
    // At the console Alipay's own number stands in for one of ours, and only the total grows.
    let console = [("gmt_refund", "2026-12-01 22:05:26"), ("refund_fee", "40.00"), ("out_biz_no", "T1")];
    let console_again = [("gmt_refund", "2026-12-01 22:06:26"), ("refund_fee", "45.00"), ("out_biz_no", "T1")];
    let all = [
        identity(&[("trade_status", "WAIT_BUYER_PAY")]),
        identity(&[]),
        identity(&[("trade_status", "TRADE_CLOSED")]),
        identity(&[("trade_no", "T2")]),
        identity(&[("app_id", "2021000000000000")]),
        identity(&first),
        identity(&second),
        identity(&last),
        identity(&console),
        identity(&console_again),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(!all[at + 1..].contains(one), "{one} twice");
    }
    assert_eq!(
        identity(&[("notify_id", "n1"), ("notify_time", "2026-12-01 21:45:36")]),
        identity(&[("notify_id", "n1"), ("notify_time", "2026-12-02 21:45:36")])
    );
    assert_eq!(
        event(fixture, &last).facts,
        Facts::Refund {
            refund_ref: Some("R3".to_owned()),
            channel_refund_id: None,
            amount: None,
            total: Some(Money::new(10_000, Currency::CNY)),
            status: payonce_core::notification::RefundFact::Succeeded,
        }
    );
}

#[test]
fn facts_are_read_as_they_are_told() {
    let fixture = fixture();
    let paid = event(fixture, &[("gmt_payment", "2026-12-01 21:45:06"), ("refund_fee", "0.00"), ("gmt_close", "2026-12-01 21:45:07")]);
    assert_eq!(paid.facts, Facts::Paid { txn: "T1".to_owned(), at: Timestamp::parse_rfc3339("2026-12-01T13:45:06Z") });
    assert_eq!(event(fixture, &[("trade_status", "WAIT_BUYER_PAY")]).facts, Facts::Waiting);
    assert_eq!(event(fixture, &[("trade_status", "TRADE_CLOSED")]).facts, Facts::Closed);
    assert_eq!(event(fixture, &[("trade_status", "TRADE_PENDING")]).facts, Facts::Other { what: "TRADE_PENDING".to_owned() });

    // Authentic, and not about a trade: acknowledged and of no consequence.
    let mut fields = notice(fixture, &[("notify_type", "open_app_auth_notify"), ("notify_id", "n1")]);
    fields.retain(|(name, _)| !["trade_status", "trade_no", "out_trade_no", "seller_id", "total_amount"].contains(name));
    let other = read(fixture.account.as_ref(), signed(&fixture.alipay, &fields)).expect("verified");
    assert_eq!((other.facts, other.channel_ref), (Facts::Other { what: "open_app_auth_notify".to_owned() }, None));
}

#[test]
fn b065_the_acknowledgement_is_exactly_seven_bytes() {
    let fixture = fixture();
    let told = fixture.account.acknowledge();
    assert_eq!((told.status, told.body, told.body.len()), (200, b"success".as_slice(), 7));
    assert_ne!(fixture.account.try_again().body, told.body);
}
