//! The way to the merchant: the port that the edge implements, and the signature scheme (Standard Webhooks 1.0.0, `v1`).

use async_trait::async_trait;
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use payonce_core::id::TenantId;
use payonce_core::secret::Secret;

/// Where a tenant's events go if the payment names no address, and the secret that signs them.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The tenant's own address.
    pub url: Option<String>,
    /// `whsec_` and Base64 of 24–64 bytes.
    pub secret: Secret,
}

/// A delivery's HTTP answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// `Retry-After`, in seconds.
    pub retry_after: Option<u64>,
}

/// The way to the merchant.
#[async_trait]
pub trait Merchant: Send + Sync + 'static {
    /// The tenant's endpoint; `None` where it has neither address nor secret, so that only the feed has its events.
    fn endpoint(&self, tenant: &TenantId) -> Option<Endpoint>;

    /// Posts once. Refuses addresses inside the network unless they are allowed, after resolving them, and connects to what it resolved
    /// (B092). Follows no redirect.
    async fn post(&self, url: &str, headers: &[(&str, String)], body: Vec<u8>) -> Result<Answer, String>;
}

/// The value of `webhook-signature`. `None` for a secret that is not of the form, which never signs.
pub fn sign(secret: &Secret, id: &str, unix_seconds: i64, body: &[u8]) -> Option<String> {
    let key = BASE64.decode(secret.expose().strip_prefix("whsec_")?).ok()?;
    if key.len() < 24 || key.len() > 64 {
        return None;
    }
    let mut text = format!("{id}.{unix_seconds}.").into_bytes();
    text.extend_from_slice(body);
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), &text);
    Some(format!("v1,{}", BASE64.encode(tag.as_ref())))
}
