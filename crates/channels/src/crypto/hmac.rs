//! HMAC-SHA-256 over messages of a channel.

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign, verify};

/// The MAC of `message`.
pub fn sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    let tag = sign(&Key::new(HMAC_SHA256, key), message);
    let mut out = [0u8; 32];
    out.copy_from_slice(tag.as_ref());
    out
}

/// Whether `mac` is the MAC of `message`; compared in constant time. An empty key never verifies (B056).
pub fn sha256_fits(key: &[u8], message: &[u8], mac: &[u8]) -> bool {
    !key.is_empty() && verify(&Key::new(HMAC_SHA256, key), message, mac).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answer_and_refusals() {
        // RFC 4231, test case 2.
        let mac = sha256(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(hex::encode(mac), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        assert!(sha256_fits(b"Jefe", b"what do ya want for nothing?", &mac));
        assert!(!sha256_fits(b"Jefe", b"what do ya want for nothing?", &mac[..31]));
        assert!(!sha256_fits(b"", b"x", &sha256(b"", b"x")));
    }
}
