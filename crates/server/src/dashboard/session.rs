//! The session: a cookie that holds the key's hash and an end, sealed. The key is looked up on every page, so that a revoked one ends at once.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use http::HeaderMap;
use http::header::COOKIE;
use payonce_core::Timestamp;
use payonce_core::id::TenantId;
use payonce_core::ports::StoreFault;
use payonce_core::secret::{Sealed, sha256};

use crate::api::Api;

const NAME: &str = "payonce_session";
const PLACE: &str = "dashboard session";
const HOLDS_FOR: Duration = Duration::from_secs(8 * 3600);

/// Ends the session in the browser.
pub(super) const END: &str = "payonce_session=; Path=/dashboard; Max-Age=0; HttpOnly; SameSite=Strict";

/// Begins a session with an API key: the cookie's header value, or none for a key that is not valid.
pub(super) async fn begin(api: &Api, key: &str) -> Result<Option<String>, StoreFault> {
    let hash = sha256(key.as_bytes());
    if of_hash(api, &hash).await?.is_none() {
        return Ok(None);
    }
    let mut plain = hash.to_vec();
    plain.extend_from_slice(&api.ledger.now().plus(HOLDS_FOR).0.to_be_bytes());
    let sealed = api.ledger.keyring.seal(api.ledger.entropy.as_ref(), PLACE, &plain);
    let secure = if api.ledger.public_url.starts_with("https://") { "; Secure" } else { "" };
    let age = HOLDS_FOR.as_secs();
    Ok(Some(format!("{NAME}={}; Path=/dashboard; Max-Age={age}; HttpOnly; SameSite=Strict{secure}", BASE64.encode(sealed.as_bytes()))))
}

/// Whose session the request belongs to.
pub(super) async fn tenant(api: &Api, headers: &HeaderMap) -> Result<Option<TenantId>, StoreFault> {
    match hash_in(api, headers) {
        Some(hash) => of_hash(api, &hash).await,
        None => Ok(None),
    }
}

fn hash_in(api: &Api, headers: &HeaderMap) -> Option<[u8; 32]> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
    let value = cookies.filter_map(|cookie| cookie.trim().split_once('=')).find(|(name, _)| *name == NAME)?.1;
    let plain = api.ledger.keyring.open(PLACE, &Sealed::from_bytes(BASE64.decode(value).ok()?)).ok()?;
    let (hash, until) = plain.split_at_checked(32)?;
    let until = Timestamp(i64::from_be_bytes(until.try_into().ok()?));
    (until > api.ledger.now()).then(|| hash.try_into().ok()).flatten()
}

async fn of_hash(api: &Api, hash: &[u8; 32]) -> Result<Option<TenantId>, StoreFault> {
    let known = api.ledger.store.api_key(hash).await?;
    Ok(known.filter(|key| key.revoked_at.is_none()).map(|key| key.tenant))
}
