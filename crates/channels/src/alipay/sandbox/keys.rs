//! The committed test keys and the two merchants' accounts.

use std::fmt;

use aws_lc_rs::rsa::KeyPair;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::auth_code;
use crate::books::SideAccount;

/// A merchant's account with both sides' keys.
pub(super) struct Keyed {
    /// `alipay`, `alipay_2`.
    pub(super) name: &'static str,
    /// 1 or 2.
    pub(super) tenant: u8,
    /// The application.
    pub(super) app_id: &'static str,
    /// Who is paid.
    pub(super) seller_id: &'static str,
    /// Verifies the merchant's requests.
    pub(super) merchant_public_der: Vec<u8>,
    /// Signs answers and notifications.
    pub(super) alipay: KeyPair,
    pem: Pem,
}

struct Pem {
    merchant_private: &'static str,
    merchant_public: &'static str,
    alipay_private: &'static str,
    alipay_public: &'static str,
}

/// All keys.
pub(super) struct Keys {
    /// The accounts.
    pub(super) accounts: Vec<Keyed>,
    /// Signs what is forged.
    pub(super) forger: KeyPair,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[test keys]")
    }
}

const MERCHANT_1: Pem = Pem {
    merchant_private: include_str!("../sandbox_keys/merchant_1.private.pem"),
    merchant_public: include_str!("../sandbox_keys/merchant_1.public.pem"),
    alipay_private: include_str!("../sandbox_keys/alipay_1.private.pem"),
    alipay_public: include_str!("../sandbox_keys/alipay_1.public.pem"),
};
const MERCHANT_2: Pem = Pem {
    merchant_private: include_str!("../sandbox_keys/merchant_2.private.pem"),
    merchant_public: include_str!("../sandbox_keys/merchant_2.public.pem"),
    alipay_private: include_str!("../sandbox_keys/alipay_2.private.pem"),
    alipay_public: include_str!("../sandbox_keys/alipay_2.public.pem"),
};
const FORGER: &str = include_str!("../sandbox_keys/forger.private.pem");

impl Keys {
    pub(super) fn load() -> Result<Self, String> {
        Ok(Self {
            accounts: vec![
                Keyed::load("alipay", 1, "9021000100000001", "2088100100000001", MERCHANT_1)?,
                Keyed::load("alipay_2", 2, "9021000200000002", "2088200200000002", MERCHANT_2)?,
            ],
            forger: private_key(FORGER)?,
        })
    }
}

impl Keyed {
    fn load(name: &'static str, tenant: u8, app_id: &'static str, seller_id: &'static str, pem: Pem) -> Result<Self, String> {
        let merchant_public_der = der(pem.merchant_public)?;
        Ok(Self { name, tenant, app_id, seller_id, merchant_public_der, alipay: private_key(pem.alipay_private)?, pem })
    }

    /// As `GET /_sandbox/accounts` shows it.
    pub(super) fn shown(&self, base_url: &str) -> SideAccount {
        SideAccount {
            channel: "alipay",
            account: self.name.to_owned(),
            tenant: self.tenant,
            settings: json!({
                "app_id": self.app_id,
                "seller_id": self.seller_id,
                "private_key": self.pem.merchant_private,
                "alipay_public_key": self.pem.alipay_public,
                "gateway_url": format!("{base_url}/alipay/gateway.do"),
            }),
            keys: json!({
                "notice": "TEST ONLY: these keys are public",
                "merchant_private_key": self.pem.merchant_private,
                "merchant_public_key": self.pem.merchant_public,
                "channel_private_key": self.pem.alipay_private,
                "channel_public_key": self.pem.alipay_public,
            }),
            special: auth_code::described(),
        }
    }
}

fn private_key(pem: &str) -> Result<KeyPair, String> {
    KeyPair::from_pkcs8(&der(pem)?).map_err(|why| format!("a test key is damaged: {why}"))
}

fn der(pem: &str) -> Result<Vec<u8>, String> {
    let base64: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    STANDARD.decode(base64).map_err(|why| format!("a test key is damaged: {why}"))
}
