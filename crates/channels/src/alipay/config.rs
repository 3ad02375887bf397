//! An account's settings. In: JSON. Out: parsed keys and checked texts. Never: a key in a fault or a log.

use std::sync::Arc;

use serde_json::Value;

use crate::contract::ConfigFault;
use crate::crypto::rsa::{SigningKey, VerifyingKey};
use crate::settings::{Settings, fault};

const KNOWN: [&str; 8] = [
    "app_id",
    "seller_id",
    "private_key",
    "private_key_file",
    "alipay_public_key",
    "alipay_public_key_file",
    "alipay_public_keys",
    "gateway_url",
];
/// Alipay's numbers have 16 digits; the interface allows 32.
const ID_MAX_DIGITS: usize = 32;
const GATEWAY: &str = "https://openapi.alipay.com/gateway.do";

/// What an account needs.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) app_id: String,
    pub(super) seller_id: String,
    pub(super) signing: SigningKey,
    /// Any of them will do: while Alipay's key is being changed there are two (B063).
    pub(super) channel_keys: Arc<[VerifyingKey]>,
    /// Without a query.
    pub(super) gateway: String,
}

impl Config {
    pub(super) fn read(settings: &Value) -> Result<Self, ConfigFault> {
        let settings = Settings::new(settings, &KNOWN)?;
        let (app_id, seller_id) = (number(&settings, "app_id")?, number(&settings, "seller_id")?);
        let signing = SigningKey::parse(&settings.secret("private_key")?).map_err(|why| fault("private_key", why.to_string()))?;
        let own = signing.verifying_key().map_err(|why| fault("private_key", why.to_string()))?;
        let mut channel_keys = Vec::new();
        for text in settings.keys("alipay_public_key", "alipay_public_keys")? {
            let key = VerifyingKey::parse(&text).map_err(|why| fault("alipay_public_key", why.to_string()))?;
            if key == own {
                // The commonest mistake: with it, whoever has our key could write notices.
                return Err(fault(
                    "alipay_public_key",
                    "is the application's own public key; it must be Alipay's, from the same page of the open platform",
                ));
            }
            channel_keys.push(key);
        }
        let gateway = settings.optional_text("gateway_url")?.unwrap_or(GATEWAY);
        if !(gateway.starts_with("https://") || gateway.starts_with("http://")) || gateway.contains(['?', '#', ' ']) {
            return Err(fault("gateway_url", "must be an http(s) address without a query"));
        }
        Ok(Self { app_id, seller_id, signing, channel_keys: channel_keys.into(), gateway: gateway.to_owned() })
    }
}

/// A number of Alipay's. A placeholder that was left in, or half a number, would be refused much later and less clearly.
fn number(settings: &Settings<'_>, name: &str) -> Result<String, ConfigFault> {
    let text = settings.text(name)?;
    if text.len() <= ID_MAX_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit()) {
        Ok(text.to_owned())
    } else {
        Err(fault(name, format!("must be 1 to {ID_MAX_DIGITS} digits, as the open platform shows it")))
    }
}
