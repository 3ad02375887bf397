//! The signature of requests. In: parameters. Out: the text that is signed, and the signed parameters. Never: an encoded value in that text.

use payonce_core::clock::Timestamp;

use super::beijing;
use super::config::Config;
use crate::crypto::base64;
use crate::crypto::rsa::SigningKey;
use crate::form;
use crate::transport::WireRequest;

/// A parameter and its value.
pub type Parameter = (String, String);

/// The text that is signed: every parameter but `sign` and those without a value (`sign_type` takes part, unlike in notices), by name, as
/// `name=value` joined with `&`, values as they are.
pub fn canonical_request(parameters: &[Parameter]) -> String {
    let mut kept: Vec<&Parameter> = parameters.iter().filter(|(name, value)| name != "sign" && !value.is_empty()).collect();
    kept.sort_unstable_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    let pairs: Vec<String> = kept.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

/// The parameters with their signature at the end.
pub fn signed_request(key: &SigningKey, mut parameters: Vec<Parameter>) -> Vec<Parameter> {
    // Only a broken library fails to sign; Alipay then refuses the empty signature before it reads anything else.
    let signature = key.sign(canonical_request(&parameters).as_bytes()).unwrap_or_default();
    parameters.push(("sign".to_owned(), base64::encode(&signature)));
    parameters
}

/// The public parameters and the business content of one call.
pub(super) fn parameters(config: &Config, method: &str, biz_content: &str, now: Timestamp) -> Vec<Parameter> {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    vec![
        pair("app_id", &config.app_id),
        pair("method", method),
        pair("format", "JSON"),
        pair("charset", "utf-8"),
        pair("sign_type", "RSA2"),
        pair("timestamp", &beijing::text(now).unwrap_or_default()),
        pair("version", "1.0"),
        pair("biz_content", biz_content),
    ]
}

/// The call as a POST: everything in the body but `charset`, which Alipay has to know before it reads the body.
pub(super) fn post(config: &Config, parameters: Vec<Parameter>) -> WireRequest {
    let signed = signed_request(&config.signing, parameters);
    let (charset, rest): (Vec<Parameter>, Vec<Parameter>) = signed.into_iter().partition(|(name, _)| name == "charset");
    WireRequest {
        method: "POST",
        url: format!("{}?{}", config.gateway, form::encode(charset)),
        headers: vec![("content-type".to_owned(), "application/x-www-form-urlencoded; charset=utf-8".to_owned())],
        body: form::encode(rest).into_bytes(),
    }
}

/// The call as an address for the buyer's browser.
pub(super) fn address(config: &Config, parameters: Vec<Parameter>) -> String {
    format!("{}?{}", config.gateway, form::encode(signed_request(&config.signing, parameters)))
}
