//! Alipay's rules beyond the vectors.

mod notices;
mod orders;
mod replies;

use std::sync::{Arc, LazyLock};

use payonce_channels::alipay::Parameter;
use payonce_channels::contract::Account;
use payonce_channels::crypto::rsa::SigningKey;
use payonce_channels::registry;
use payonce_core::secret::Secret;
use serde_json::Value;

use crate::vectors::File;

pub(crate) struct Fixture {
    pub(crate) file: File,
    pub(crate) settings: Value,
    pub(crate) account: Arc<dyn Account>,
    /// Alipay's own private key: the tests speak for Alipay.
    pub(crate) alipay: SigningKey,
}

pub(crate) fn fixture() -> &'static Fixture {
    static FIXTURE: LazyLock<Fixture> = LazyLock::new(make);
    &FIXTURE
}

fn make() -> Fixture {
    let file = File::load("alipay");
    let settings = crate::vectors::alipay_settings(&file);
    let account = open(&settings);
    let alipay = SigningKey::parse(&Secret::new(file.text("/keys/alipay_private_key_pkcs8_TEST_ONLY"))).expect("a key");
    Fixture { file, settings, account, alipay }
}

pub(crate) fn open(settings: &Value) -> Arc<dyn Account> {
    registry::adapter("alipay").expect("built").account(settings).expect("an account")
}

/// Decoded once, in order.
pub(crate) fn pairs(body: &[u8]) -> Vec<Parameter> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    payonce_channels::form::decode(body).expect("a form").into_iter().map(|(name, value)| (text(name), text(value))).collect()
}
