//! The cryptography that channels need, on one library. In: keys as users paste them, and bytes. Out: signatures, digests and verdicts.
//! Never: a key or a secret in an error or a log.

pub mod base64;
pub mod hmac;
pub mod rsa;
