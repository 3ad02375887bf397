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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "the folder of the vectors is told by the environment, as for every vector test")]
    fn vectors() -> Value {
        let folder =
            std::env::var("PAYONCE_VECTORS").unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../channels/vectors").to_owned());
        let text = std::fs::read_to_string(format!("{folder}/standardwebhooks.json")).expect("the vectors are there");
        serde_json::from_str(&text).expect("JSON")
    }

    fn header<'a>(case: &'a Value, name: &str) -> Option<&'a str> {
        let headers = case["http"]["headers"].as_array()?;
        headers.iter().find(|pair| pair[0].as_str().is_some_and(|n| n.eq_ignore_ascii_case(name)))?[1].as_str()
    }

    /// Every message that a receiver accepts because of an HMAC carries just the signature that we would send; where the bytes were changed or
    /// another secret signed, ours is another.
    #[test]
    fn vectors_standardwebhooks_signatures_are_the_ones_we_send() {
        let file = vectors();
        let secrets = ["symmetric_secret_TEST_ONLY", "previous_symmetric_secret_TEST_ONLY"]
            .map(|name| Secret::new(file["keys"][name].as_str().expect("a secret")));
        let (mut same, mut other, mut left_out) = (0, 0, 0);
        for case in file["notifications"].as_array().expect("cases") {
            let (Some(id), Some(at), Some(sent)) =
                (header(case, "webhook-id"), header(case, "webhook-timestamp"), header(case, "webhook-signature"))
            else {
                left_out += 1;
                continue;
            };
            let (Ok(at), true) = (at.parse(), sent.split(' ').any(|one| one.starts_with("v1,"))) else {
                left_out += 1;
                continue;
            };
            let body = BASE64.decode(case["http"]["body_base64"].as_str().expect("a body")).expect("Base64");
            let ours = secrets.iter().filter_map(|secret| sign(secret, id, at, &body)).any(|ours| sent.split(' ').any(|one| one == ours));
            let reason = case["expect"]["reason"].as_str();
            let genuine = !matches!(reason, Some("bad_signature"));
            assert_eq!(ours, genuine, "{}: {}", case["id"], case["title"]);
            if ours { same += 1 } else { other += 1 }
        }
        println!("vectors standardwebhooks: {same} signatures made again, {other} forged ones differ, {left_out} of no HMAC left out");
        assert!(same >= 7 && other >= 4, "{same} and {other}");
    }

    #[test]
    fn a_secret_that_is_none_signs_nothing() {
        for bad in ["", "whsec_", "whsec_AAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "whsec_ not base64"] {
            assert_eq!(sign(&Secret::new(bad), "evt_1", 1, b"{}"), None, "{bad:?}");
        }
    }
}
