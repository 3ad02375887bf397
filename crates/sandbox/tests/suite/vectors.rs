//! The sandbox's Alipay against the signed messages that were made elsewhere: two implementations that share no code agree on them.

use std::path::PathBuf;

use aws_lc_rs::rsa::KeyPair;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use payonce_channels::alipay::sandbox::{request_is_authentic, sign_notice};
use serde_json::Value;

use crate::receiver::decoded;
use crate::world::der;

fn file() -> Value {
    let folder = std::env::var_os("PAYONCE_VECTORS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../channels/vectors"), PathBuf::from);
    let path = folder.join("alipay.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}; PAYONCE_VECTORS names the folder", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("{name}"))
}

#[test]
fn vectors_requests_are_accepted_by_the_gateway_and_changed_ones_are_not() {
    let file = file();
    let key = der(text(&file["keys"], "merchant_app_public_key"));
    let mut passed = 0;
    for request in file["requests"].as_array().expect("requests") {
        let form = STANDARD.decode(text(request, "signed_query_base64")).expect("Base64");
        let params = decoded(&form);
        assert!(request_is_authentic(&params, &key), "{}", text(request, "id"));
        for at in 0..params.len() {
            let mut changed = params.clone();
            changed[at].1.push(b'1');
            assert!(!request_is_authentic(&changed, &key), "{}: {}", text(request, "id"), String::from_utf8_lossy(&params[at].0));
        }
        passed += 1;
    }
    println!("alipay.json: {passed} requests run and passed");
    assert!(passed > 0);
}

#[test]
fn vectors_notifications_are_signed_again_byte_for_byte() {
    let file = file();
    let key = KeyPair::from_pkcs8(&der(text(&file["keys"], "alipay_private_key_pkcs8_TEST_ONLY"))).expect("key");
    let (mut run, mut same) = (0, 0);
    for case in file["notifications"].as_array().expect("notifications") {
        let body = STANDARD.decode(text(&case["http"], "body_base64")).expect("Base64");
        let params = decoded(&body);
        let given = params.iter().find(|(name, _)| name == b"sign").map(|(_, value)| String::from_utf8_lossy(value).into_owned());
        let ours = sign_notice(&params, &key).expect("a signature");
        let equal = given.as_deref() == Some(ours.as_str());
        // A message that is authentic under RSA2 has our signature; no other has. With a parameter twice, what was signed depends on
        // the reader, and the gateway never sends that.
        let reason = case["expect"]["reason"].as_str().unwrap_or_default();
        let authentic = case["expect"]["authentic"] == true && !["algorithm_not_allowed", "duplicate_parameter"].contains(&reason);
        assert_eq!(equal, authentic, "{}", text(case, "id"));
        run += 1;
        same += usize::from(equal);
    }
    println!("alipay.json: {run} notifications run and passed ({same} signed alike)");
    assert!(same > 0);
}
