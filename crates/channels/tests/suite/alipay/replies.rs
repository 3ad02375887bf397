//! Replies of the gateway: only the bytes that were signed are believed.

use payonce_channels::contract::{Call, OrderFacts, Step};
use payonce_channels::crypto::base64;
use payonce_channels::crypto::rsa::SigningKey;
use payonce_channels::transport::WireReply;
use payonce_core::channel_ref::ChannelRef;
use payonce_core::clock::Timestamp;
use payonce_core::money::{Currency, Money};
use payonce_core::outcome::Outcome;
use payonce_core::secret::Secret;
use proptest::prelude::*;
use serde_json::json;

use super::{Fixture, fixture};

const NODE: &str =
    r#"{"code":"10000","msg":"Success","out_trade_no":"o1","trade_no":"T1","trade_status":"TRADE_SUCCESS","total_amount":"88.88"}"#;

fn query(fixture: &Fixture) -> Call<Outcome> {
    let order = OrderFacts {
        channel_ref: ChannelRef::parse("o1").expect("a number"),
        channel_txn: None,
        method: "qr".to_owned(),
        amount: Money::new(8888, Currency::CNY),
    };
    fixture.account.query(&order, Timestamp::from_unix(1_796_132_736)).expect("a look-up")
}

fn sign(key: &SigningKey, node: &[u8]) -> String {
    base64::encode(&key.sign(node).expect("a signature"))
}

fn reply(body: impl Into<Vec<u8>>) -> WireReply {
    WireReply { status: 200, headers: vec![("content-type".to_owned(), b"text/html;charset=utf-8".to_vec())], body: body.into() }
}

/// `sent` under the signature of `meant`.
fn under_signature(fixture: &Fixture, meant: &str, sent: &str) -> WireReply {
    reply(format!(r#"{{"alipay_trade_query_response":{sent},"sign":"{}"}}"#, sign(&fixture.alipay, meant.as_bytes())))
}

fn is_paid(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Paid(taken) if taken.amount == Some(Money::new(8888, Currency::CNY)))
}

#[test]
fn the_raw_node_is_what_is_verified() {
    let fixture = fixture();
    let call = query(fixture);
    let read = |wire: WireReply| (call.read)(&wire);
    assert!(is_paid(&read(under_signature(fixture, NODE, NODE))));

    let awkward = "{ \"total_amount\" : \"88.88\",\n\t\"trade_status\":\"TRADE_SUCCESS\", \"note\":\"} \\\" { \\\\\", \"trade_no\":\"T1\",\"out_trade_no\":\"o1\",\"code\":\"10000\",\"list\":[{\"x\":\"]\"}] }";
    assert!(is_paid(&read(under_signature(fixture, awkward, awkward))), "reordered members, braces and quotes in texts");
    let parsed: serde_json::Value = serde_json::from_str(awkward).expect("JSON");
    assert!(matches!(read(under_signature(fixture, awkward, &parsed.to_string())), Outcome::Unknown(_)), "written again");
    assert!(matches!(read(under_signature(fixture, NODE, &NODE.replace("88.88", "88.80"))), Outcome::Unknown(_)), "changed");

    // Some servers escape slashes after signing; what was signed is what is read.
    let slash = NODE.replace("\"msg\"", "\"url\":\"https://x/y\",\"msg\"");
    assert!(is_paid(&read(under_signature(fixture, &slash, &slash.replace('/', "\\/")))));
    assert!(is_paid(&read(under_signature(fixture, &slash.replace('/', "\\/"), &slash.replace('/', "\\/")))));
}

#[test]
fn what_is_read_is_what_was_verified_where_slashes_were_escaped_later() {
    let fixture = fixture();
    let signed = NODE.replace("\"T1\"", r#""T\/1""#);
    // Taking the escape out of this gives the signed text; reading it as it came would give another transaction.
    let sent = NODE.replace("\"T1\"", r#""T\\/1""#);
    let outcome = (query(fixture).read)(&under_signature(fixture, &signed, &sent));
    assert!(matches!(&outcome, Outcome::Paid(taken) if taken.txn == "T/1"), "{outcome:?}");
}

#[test]
fn one_node_and_one_signature_or_nothing_is_known() {
    let fixture = fixture();
    let call = query(fixture);
    let good = sign(&fixture.alipay, NODE.as_bytes());
    let forger = SigningKey::parse(&Secret::new(include_str!("../../../src/alipay/sandbox_keys/forger.private.pem"))).expect("a key");
    let forged = sign(&forger, NODE.as_bytes());
    let error = r#"{"code":"40002","msg":"Invalid Arguments","sub_code":"isv.invalid-app-id"}"#;
    let paid = format!(r#""alipay_trade_query_response":{NODE}"#);
    let bodies = [
        String::new(),
        "success".to_owned(),
        "<html>502</html>".to_owned(),
        "{}".to_owned(),
        "[]".to_owned(),
        format!("{{{paid}}}"),
        format!(r#"{{{paid},"sign":""}}"#),
        format!(r#"{{{paid},"sign":"{forged}"}}"#),
        format!(r#"{{{paid},"sign":"{}"}}"#, &good[..good.len() - 4]),
        format!(r#"{{{paid},{paid},"sign":"{good}"}}"#),
        format!(r#"{{{paid},"error_response":{error},"sign":"{good}"}}"#),
        format!(r#"{{{paid},"sign":"{good}","sign":"{forged}"}}"#),
        format!(r#"{{{paid},"sign":["{good}"]}}"#),
        format!(r#"{{"alipay_trade_pay_response":{NODE},"sign":"{good}"}}"#),
        format!(r#"{{{paid},"sign":"{good}"}} trailing"#),
        format!(r#"{{{paid},"sign":"{good}""#),
        format!(r#"{{"error_response":{error}}}"#),
        format!(r#"{{"error_response":{error},"sign":"{good}"}}"#),
        format!(r#"{{"alipay_trade_query_response":"b3BhcXVl","sign":"{}"}}"#, sign(&fixture.alipay, b"\"b3BhcXVl\"")),
    ];
    for body in bodies {
        let outcome = (call.read)(&reply(body.clone()));
        assert!(matches!(outcome, Outcome::Unknown(_)), "{body} -> {outcome:?}");
    }
    // The operator sees what an unsigned error said; the money is still unknown.
    let Outcome::Unknown(why) = (call.read)(&reply(format!(r#"{{"error_response":{error}}}"#))) else { panic!("unknown") };
    assert!(why.contains("isv.invalid-app-id"), "{why}");
}

#[test]
fn b034_no_answer_that_can_be_read_is_unknown_and_never_failed() {
    let fixture = fixture();
    let call = query(fixture);
    let signed = under_signature(fixture, NODE, NODE);
    for status in [201, 204, 302, 400, 403, 404, 500, 502, 503, 504] {
        let outcome = (call.read)(&WireReply { status, ..signed.clone() });
        assert!(matches!(outcome, Outcome::Unknown(_)), "{status} -> {outcome:?}");
    }
    assert!(matches!((call.read)(&WireReply { status: 429, ..signed }), Outcome::InProgress));
}

#[test]
fn b066_an_answer_with_a_deliberately_bad_signature_does_not_become_a_failed_payment() {
    let fixture = fixture();
    let step = fixture.account.charge("qr", &super::orders::content(fixture, "qr"), Timestamp::from_unix(1_796_132_736));
    let Step::Call(call) = step else { panic!("a call") };
    for node in
        [r#"{"code":"10000","out_trade_no":"o1","qr_code":"https://qr/x"}"#, r#"{"code":"40004","sub_code":"ACQ.INVALID_PARAMETER"}"#]
    {
        for sign in ["WECHATPAY/SIGNTEST/abc", "AAAA", ""] {
            let outcome = (call.read)(&reply(format!(r#"{{"alipay_trade_precreate_response":{node},"sign":"{sign}"}}"#)));
            assert!(matches!(outcome, Outcome::Unknown(_)), "{outcome:?}");
        }
    }
}

#[test]
fn a_gbk_answer_is_cut_as_text_and_verified_as_bytes() {
    let fixture = fixture();
    let call = query(fixture);
    // The second bytes of these characters are a backslash, an opening and a closing brace.
    let node = NODE.replace("Success", "乗亄亇");
    let bytes = encoding_rs::GBK.encode(&node).0.into_owned();
    assert!(bytes.windows(6).any(|six| six == [0x81, 0x5C, 0x81, 0x7B, 0x81, 0x7D]));
    let body = [b"{\"alipay_trade_query_response\":", bytes.as_slice(), b",\"sign\":\"", sign(&fixture.alipay, &bytes).as_bytes(), b"\"}"]
        .concat();
    let wire = |charset: &str| WireReply {
        status: 200,
        headers: vec![("content-type".to_owned(), format!("text/html;charset={charset}").into_bytes())],
        body: body.clone(),
    };
    assert!(is_paid(&(call.read)(&wire("GBK"))));
    assert!(is_paid(&(call.read)(&wire("\"gbk\""))));
    assert!(matches!((call.read)(&wire("utf-8")), Outcome::Unknown(_)), "not text in that charset");
    assert!(matches!((call.read)(&wire("klingon")), Outcome::Unknown(_)));
}

#[test]
fn numbers_are_no_amounts() {
    let fixture = fixture();
    let node = NODE.replace("\"88.88\"", "88.88");
    assert!(matches!((query(fixture).read)(&under_signature(fixture, &node, &node)), Outcome::Unknown(_)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn any_bytes_give_an_outcome(status in 0u16..700, body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let outcome = (query(fixture()).read)(&WireReply { status, ..reply(body) });
        prop_assert!(matches!(outcome, Outcome::Unknown(_) | Outcome::InProgress));
    }

    #[test]
    fn a_damaged_answer_is_never_money(at in 0usize..200, mask in 1u8..=255) {
        let fixture = fixture();
        let mut wire = under_signature(fixture, NODE, NODE);
        let at = at % wire.body.len();
        wire.body[at] ^= mask;
        let outcome = (query(fixture).read)(&wire);
        // Only the white space around the members is not covered by the signature.
        prop_assert!(matches!(outcome, Outcome::Unknown(_)), "{}", json!(String::from_utf8_lossy(&wire.body)));
    }
}
