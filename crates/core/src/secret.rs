//! Secrets that do not print, sealed bytes, and keyed digests (I12).
//!
//! A [`Keyring`] holds the current key and older ones. What is sealed names the key that sealed it, so keys can roll. Sealing is
//! AES-256-GCM with a random 96-bit nonce; digests are HMAC-SHA-256 under a key derived from the same secret.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::{digest, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::clock::{Entropy, random};

/// A text that is never logged or printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text itself. Call it where it is used, not where it is stored.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Bytes that only a [`Keyring`] can open: key id, nonce, ciphertext and tag in one string of bytes. In JSON it is Base64.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(Vec<u8>);

impl Sealed {
    /// The bytes as they are stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Bytes as they were stored.
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[sealed {} bytes]", self.0.len())
    }
}

impl Serialize for Sealed {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Sealed {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64.decode(text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// Why sealed bytes did not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenFault {
    /// The key that sealed them is not in the ring: an old key was dropped too early, or this is another installation's database.
    #[error("sealed with a key that this installation does not have")]
    UnknownKey,
    /// Changed, cut, or sealed for another place.
    #[error("sealed bytes are damaged")]
    Damaged,
}

/// A digest under a key of the ring, and which key.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct KeyedDigest {
    /// Which key of the ring.
    pub key_id: KeyId,
    /// HMAC-SHA-256.
    pub digest: [u8; 32],
}

/// The first four bytes of the SHA-256 of a key: names it without telling anything useful about it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct KeyId(pub [u8; 4]);

struct RingKey {
    id: KeyId,
    seal: LessSafeKey,
    digest: hmac::Key,
}

/// The installation's keys: the first seals, all open.
pub struct Keyring {
    keys: Vec<RingKey>,
}

/// The length of a ring key in bytes.
pub const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;
const ID_BYTES: usize = 4;

impl Keyring {
    /// A ring of the current key and older ones. `None` without any.
    pub fn new(keys: &[[u8; KEY_BYTES]]) -> Option<Self> {
        let keys: Vec<RingKey> = keys.iter().filter_map(RingKey::new).collect();
        (!keys.is_empty()).then_some(Self { keys })
    }

    /// Seals `plain` for `place`: a text that names the row and column, so that sealed bytes moved elsewhere do not open.
    pub fn seal(&self, entropy: &dyn Entropy, place: &str, plain: &[u8]) -> Sealed {
        let key = &self.keys[0];
        let nonce: [u8; NONCE_BYTES] = random(entropy);
        let mut body = plain.to_vec();
        let mut out = Vec::with_capacity(ID_BYTES + NONCE_BYTES + body.len() + 16);
        out.extend_from_slice(&key.id.0);
        out.extend_from_slice(&nonce);
        match key.seal.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(place.as_bytes()), &mut body) {
            Ok(()) => out.extend_from_slice(&body),
            // Only reachable for a plaintext over 2^36 bytes, which every limit forbids; an empty body does not open.
            Err(_) => out.clear(),
        }
        Sealed(out)
    }

    /// Opens what was sealed for `place`.
    pub fn open(&self, place: &str, sealed: &Sealed) -> Result<Vec<u8>, OpenFault> {
        let bytes = &sealed.0;
        let (id, rest) = bytes.split_at_checked(ID_BYTES).ok_or(OpenFault::Damaged)?;
        let (nonce, body) = rest.split_at_checked(NONCE_BYTES).ok_or(OpenFault::Damaged)?;
        let key = self.keys.iter().find(|key| key.id.0 == id).ok_or(OpenFault::UnknownKey)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| OpenFault::Damaged)?;
        let mut body = body.to_vec();
        let plain = key
            .seal
            .open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(place.as_bytes()), &mut body)
            .map_err(|_| OpenFault::Damaged)?;
        Ok(plain.to_vec())
    }

    /// The keyed digest of `bytes` under the current key.
    pub fn digest(&self, bytes: &[u8]) -> KeyedDigest {
        self.keys[0].digest(bytes)
    }

    /// The keyed digest of `bytes` under the key `id`; `None` where the ring does not have it.
    pub fn digest_with(&self, id: KeyId, bytes: &[u8]) -> Option<KeyedDigest> {
        self.keys.iter().find(|key| key.id == id).map(|key| key.digest(bytes))
    }
}

impl RingKey {
    fn new(key: &[u8; KEY_BYTES]) -> Option<Self> {
        let hash = digest::digest(&digest::SHA256, key);
        let id = KeyId([hash.as_ref()[0], hash.as_ref()[1], hash.as_ref()[2], hash.as_ref()[3]]);
        // Two keys out of one, each for one job.
        let root = hmac::Key::new(hmac::HMAC_SHA256, key);
        let for_seal = hmac::sign(&root, b"payonce seal v1");
        let for_digest = hmac::sign(&root, b"payonce digest v1");
        let seal = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, for_seal.as_ref()).ok()?);
        Some(Self { id, seal, digest: hmac::Key::new(hmac::HMAC_SHA256, for_digest.as_ref()) })
    }

    fn digest(&self, bytes: &[u8]) -> KeyedDigest {
        let tag = hmac::sign(&self.digest, bytes);
        let mut digest = [0u8; 32];
        digest.copy_from_slice(tag.as_ref());
        KeyedDigest { key_id: self.id, digest }
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[keyring of {}]", self.keys.len())
    }
}

/// SHA-256 of `bytes`.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0u8; 32];
    out.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    out
}

/// Compares two MACs or hashes in constant time. The one place where that is done.
pub fn equal_in_constant_time(a: &[u8], b: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a, b).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Fixed, Timestamp};

    fn ring(keys: &[u8]) -> Keyring {
        Keyring::new(&keys.iter().map(|k| [*k; KEY_BYTES]).collect::<Vec<_>>()).expect("a key")
    }

    #[test]
    fn sealed_bytes_open_only_for_their_place_and_by_a_key_of_the_ring() {
        let entropy = Fixed::new(Timestamp(0), 7);
        let sealed = ring(&[1]).seal(&entropy, "attempt/1", b"body");
        assert!(!sealed.as_bytes().windows(4).any(|w| w == b"body"));
        assert_eq!(ring(&[2, 1]).open("attempt/1", &sealed).as_deref(), Ok(b"body".as_slice()));
        assert_eq!(ring(&[1]).open("attempt/2", &sealed), Err(OpenFault::Damaged));
        assert_eq!(ring(&[2]).open("attempt/1", &sealed), Err(OpenFault::UnknownKey));
        for cut in 0..sealed.as_bytes().len() {
            assert!(ring(&[1]).open("attempt/1", &Sealed::from_bytes(sealed.as_bytes()[..cut].to_vec())).is_err());
        }
    }

    #[test]
    fn digests_name_their_key_and_can_be_made_again_with_it() {
        let old = ring(&[1]).digest(b"x");
        assert_eq!(ring(&[2, 1]).digest_with(old.key_id, b"x"), Some(old.clone()));
        assert_ne!(ring(&[2, 1]).digest(b"x"), old);
        assert_eq!(ring(&[2]).digest_with(old.key_id, b"x"), None);
        assert_eq!(format!("{:?} {:?}", Secret::new("hunter2"), ring(&[1])), "[secret] [keyring of 1]");
    }
}
