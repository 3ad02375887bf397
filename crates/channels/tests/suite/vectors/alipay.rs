//! Alipay's part of the vectors: accounts of the file's keys, and requests that are signed to the same bytes.

use std::sync::Arc;

use payonce_channels::alipay::{Parameter, canonical_request, signed_request};
use payonce_channels::contract::Account;
use payonce_channels::crypto::rsa::SigningKey;
use payonce_channels::{form, registry};
use payonce_core::secret::Secret;
use serde_json::{Value, json};

use super::format::base64;
use super::{File, Under};

pub(crate) const UNDER: Under = Under { file: "alipay", account, request };

pub(crate) fn settings(file: &File) -> Value {
    json!({
        "app_id": file.text("/own/app_id"),
        "seller_id": file.text("/own/seller_id"),
        "private_key": file.text("/keys/merchant_app_private_key_pkcs8_TEST_ONLY"),
        "alipay_public_key": file.text("/keys/alipay_public_key"),
    })
}

fn account(file: &File) -> Arc<dyn Account> {
    registry::adapter("alipay").expect("built").account(&settings(file)).expect("an account")
}

fn request(file: &File, request: &Value) {
    let id = request["id"].as_str().expect("an id");
    let members = request["params"].as_object().expect("parameters").iter();
    let parameters: Vec<Parameter> = members.map(|(name, value)| (name.clone(), value.as_str().expect("a text").to_owned())).collect();
    assert_eq!(canonical_request(&parameters).into_bytes(), base64(&request["canonical_base64"]), "{id}: signed text");

    let key = SigningKey::parse(&Secret::new(file.text("/keys/merchant_app_private_key_pkcs8_TEST_ONLY"))).expect("a key");
    let signed = signed_request(&key, parameters);
    assert_eq!(
        signed.last().map(|(name, value)| (name.as_str(), value.as_str())),
        Some(("sign", request["signature"].as_str().expect("a text"))),
        "{id}"
    );

    // The order of parameters, and `+` or `%20` for a space, are each SDK's own; all else is the same byte for byte.
    let theirs = base64(&request["signed_query_base64"]);
    let order: Vec<Vec<u8>> = form::decode(&theirs).expect("a form").into_iter().map(|(name, _)| name).collect();
    assert_eq!(order.len(), signed.len(), "{id}");
    let in_order = order.iter().map(|name| signed.iter().find(|(n, _)| n.as_bytes() == name).expect("the same names"));
    let ours = form::encode(in_order.map(|(name, value)| (name, value)));
    assert_eq!(ours, String::from_utf8(theirs).expect("ASCII").replace("%20", "+"), "{id}: encoded");
}
