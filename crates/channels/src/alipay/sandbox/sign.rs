//! RSA2 as the gateway does it: canonical text over bytes, PKCS#1 v1.5 over SHA-256, Base64. Directly on aws-lc-rs.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair;
use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// `k=v` joined by `&`, sorted by name, values as they are.
fn canonical<'a>(params: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
    let mut sorted: Vec<_> = params.collect();
    sorted.sort();
    let lines: Vec<Vec<u8>> = sorted.iter().map(|(name, value)| [*name, b"=", *value].concat()).collect();
    lines.join(&b'&')
}

/// Whether the request's `sign` is right under the merchant's key (DER, SubjectPublicKeyInfo). Everything but `sign` takes part, empty
/// values as the client's own habit is: some clients leave them out of the signed text, others do not.
pub fn request_is_authentic(params: &[(Vec<u8>, Vec<u8>)], public_key_der: &[u8]) -> bool {
    let Some(signature) = params.iter().find(|(name, _)| name == b"sign").and_then(|(_, value)| STANDARD.decode(value).ok()) else {
        return false;
    };
    let signed = || params.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).filter(|(name, _)| *name != b"sign");
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public_key_der);
    let without_empty = canonical(signed().filter(|(_, value)| !value.is_empty()));
    key.verify(&without_empty, &signature).is_ok() || key.verify(&canonical(signed()), &signature).is_ok()
}

/// The `sign` of a notification: everything but `sign` and `sign_type` takes part, empty values too.
pub fn sign_notice(params: &[(Vec<u8>, Vec<u8>)], key: &KeyPair) -> Result<String, String> {
    let signed = params.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
    sign_bytes(&canonical(signed.filter(|(name, _)| *name != b"sign" && *name != b"sign_type")), key)
}

/// The signature over bytes, in Base64.
pub(super) fn sign_bytes(bytes: &[u8], key: &KeyPair) -> Result<String, String> {
    let mut signature = vec![0; key.public_modulus_len()];
    // PKCS#1 v1.5 signatures are deterministic; the random number generator only blinds.
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), bytes, &mut signature).map_err(|_| "the key does not sign".to_owned())?;
    Ok(STANDARD.encode(signature))
}
