//! RSA PKCS#1 v1.5 with SHA-256, and keys in the forms in which merchants paste them.
//!
//! In: PEM, or the bare Base64 that a channel's key tool gives out; PKCS#8 and PKCS#1 private keys, SPKI and PKCS#1 public keys; 2048 to
//! 8192 bits. Out: signatures and verdicts. Never: SHA-1, shorter keys, or a key in an error.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::PublicKey;
use aws_lc_rs::signature::{KeyPair as _, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair};
use payonce_core::secret::Secret;
use zeroize::Zeroizing;

use super::base64;

/// Why a key does not do. Never holds the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    /// Empty, or blank.
    #[error("is empty")]
    Empty,
    /// Neither PEM nor Base64.
    #[error("is neither PEM nor Base64 of a key")]
    NotEncoded,
    /// A public key where a private one belongs, or the other way round, or a certificate.
    #[error("holds another kind of key than is asked for here")]
    WrongKind,
    /// Not RSA, damaged, or outside 2048 to 8192 bits.
    #[error("is no RSA key of 2048 to 8192 bits")]
    NotRsa,
}

/// A private key.
pub struct SigningKey(RsaKeyPair);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[private key]")
    }
}

impl SigningKey {
    /// Reads a private key: `PRIVATE KEY` or `RSA PRIVATE KEY` as PEM, or either as bare Base64.
    pub fn parse(text: &Secret) -> Result<Self, KeyFault> {
        let (label, der) = der(text.expose())?;
        let key = match label {
            Some("PRIVATE KEY") => RsaKeyPair::from_pkcs8(&der),
            Some("RSA PRIVATE KEY") => RsaKeyPair::from_der(&der),
            Some(_) => return Err(KeyFault::WrongKind),
            None => RsaKeyPair::from_pkcs8(&der).or_else(|_| RsaKeyPair::from_der(&der)),
        };
        key.map(Self).map_err(|_| KeyFault::NotRsa)
    }

    /// The signature of `message`. Deterministic. `None` only where the library itself fails.
    pub fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let mut signature = vec![0u8; self.0.public_modulus_len()];
        // PKCS#1 v1.5 draws no chance into the signature; the generator is the library's, for blinding.
        self.0.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature).ok()?;
        Some(signature)
    }

    /// The public half.
    pub fn verifying_key(&self) -> Result<VerifyingKey, KeyFault> {
        VerifyingKey::from_der(self.0.public_key().as_ref())
    }
}

/// A public key.
#[derive(Clone)]
pub struct VerifyingKey {
    key: ParsedPublicKey,
    /// One encoding for all forms, so that keys can be compared.
    pkcs1: Vec<u8>,
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[public key]")
    }
}

impl PartialEq for VerifyingKey {
    fn eq(&self, other: &Self) -> bool {
        self.pkcs1 == other.pkcs1
    }
}

impl Eq for VerifyingKey {}

impl VerifyingKey {
    /// Reads a public key: `PUBLIC KEY` (SPKI) or `RSA PUBLIC KEY` as PEM, or either as bare Base64.
    pub fn parse(text: &str) -> Result<Self, KeyFault> {
        let (label, der) = der(text)?;
        match label {
            Some("PUBLIC KEY" | "RSA PUBLIC KEY") | None => Self::from_der(&der),
            Some(_) => Err(KeyFault::WrongKind),
        }
    }

    /// Reads SPKI or PKCS#1 bytes.
    pub fn from_der(der: &[u8]) -> Result<Self, KeyFault> {
        let parsed = PublicKey::from_der(der).map_err(|_| KeyFault::NotRsa)?;
        // The library checks the length when it verifies; a short key has to be refused when the account is made.
        if !(2048..=8192).contains(&(parsed.modulus_len() * 8)) {
            return Err(KeyFault::NotRsa);
        }
        let key = ParsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, der).map_err(|_| KeyFault::NotRsa)?;
        Ok(Self { key, pkcs1: parsed.as_ref().to_vec() })
    }

    /// The key as PKCS#1 bytes, whatever form it was given in.
    pub fn der(&self) -> &[u8] {
        &self.pkcs1
    }

    /// Whether `signature` is one of `message` under this key.
    pub fn fits(&self, message: &[u8], signature: &[u8]) -> bool {
        self.key.verify_sig(message, signature).is_ok()
    }
}

/// The label of a PEM text, and the bytes; no label for bare Base64.
fn der(text: &str) -> Result<(Option<&str>, Zeroizing<Vec<u8>>), KeyFault> {
    let text = text.trim();
    if text.is_empty() {
        return Err(KeyFault::Empty);
    }
    let (label, body) = match text.strip_prefix("-----BEGIN ") {
        None => (None, text),
        Some(rest) => {
            let (label, rest) = rest.split_once("-----").ok_or(KeyFault::NotEncoded)?;
            let (body, end) = rest.split_once("-----END ").ok_or(KeyFault::NotEncoded)?;
            if end.strip_suffix("-----") != Some(label) {
                return Err(KeyFault::NotEncoded);
            }
            (Some(label), body)
        }
    };
    // Key tools wrap their lines, or not; nothing but white space is taken out.
    let packed = Zeroizing::new(body.bytes().filter(|b| !b.is_ascii_whitespace()).collect::<Vec<u8>>());
    let der = base64::decode(&packed).filter(|der| !der.is_empty()).ok_or(KeyFault::NotEncoded)?;
    Ok((label, Zeroizing::new(der)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Generated for tests, 1024 bits: too short to be taken.
    const SHORT: &str = "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCyzQdjF0hCUk7fWXtZbuYO/qOfqIxYwS0M1sSB59kM1QF00KAf/vDp3Y4f8pTPhKvjkvw+YDtBawMwbvwKK1AEKF+6HKm7iubdBlH0iqgWUCI5uw3s/3n/dKWQDDjuJiLmEdtIxuP4fh+7Yv4DKtF+SsEKVUAFcpWtSVJ6EI53UQIDAQAB";

    #[test]
    fn b056_blank_foreign_and_short_keys_are_refused_and_no_fault_shows_a_key() {
        for (text, fault) in [
            ("", KeyFault::Empty),
            (" \n ", KeyFault::Empty),
            ("hunter2!", KeyFault::NotEncoded),
            ("-----BEGIN PUBLIC KEY-----\nAAAA", KeyFault::NotEncoded),
            ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PRIVATE KEY-----", KeyFault::NotEncoded),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", KeyFault::WrongKind),
            ("AAAA", KeyFault::NotRsa),
            (SHORT, KeyFault::NotRsa),
        ] {
            assert_eq!(VerifyingKey::parse(text).map(|_| ()), Err(fault), "{text}");
        }
        assert_eq!(SigningKey::parse(&Secret::new("hunter2!")).map(|_| ()), Err(KeyFault::NotEncoded));
    }
}
