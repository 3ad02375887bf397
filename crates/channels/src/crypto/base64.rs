//! Base64 as channels write it: the standard alphabet with padding, and nothing else. A value with spaces, line breaks or stray bits is
//! not repaired, because a repaired signature is a forged one.

use ::base64::Engine as _;
use ::base64::engine::general_purpose::STANDARD;

/// Decodes strictly. `None` for anything but canonical Base64 with padding.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// Encodes with padding.
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_text_decodes() {
        assert_eq!(decode(b"AAEC"), Some(vec![0, 1, 2]));
        for bad in ["AAE", "AAE ", "AA E=", "AAEC\n", "AB==", "AA=", "AA", "A-_=", "=", " "] {
            assert_eq!(decode(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(decode(encode(&[255, 254, 0]).as_bytes()), Some(vec![255, 254, 0]));
    }
}
