//! Channel references: the number or key that a channel knows an operation by.
//!
//! Made once, stored before a byte leaves (I2), and never made again on a retry path. One form fits every channel: 32 lower
//! case hex digits (WeChat allows 32, Razorpay 36, PayPal 38, Open Banking 40, Square 45, Adyen 64). Channels or methods with
//! less room declare a [`RefForm`].

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::{Entropy, Timestamp, random};
use crate::id::uuid_v7_at;

/// The room that a channel leaves for a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefForm {
    /// Which characters may stand in it.
    pub alphabet: Alphabet,
    /// At least so many characters.
    pub min_len: usize,
    /// At most so many characters.
    pub max_len: usize,
}

/// Which characters a reference is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alphabet {
    /// `0-9a-z`, safe on every channel.
    LowerAlphanumeric,
    /// `0-9` only.
    Digits,
}

impl RefForm {
    /// What every channel takes.
    pub const COMMON: Self = Self { alphabet: Alphabet::LowerAlphanumeric, min_len: 10, max_len: 32 };
}

/// A reference that was made by us, or one read from a channel's message.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChannelRef(String);

impl ChannelRef {
    /// A new one that fits `form`. Begins with the time, so that references sort by age at the channel too.
    pub fn new(form: RefForm, now: Timestamp, entropy: &dyn Entropy) -> Self {
        let uuid = uuid_v7_at(now, random(entropy));
        match form.alphabet {
            Alphabet::LowerAlphanumeric if form.max_len >= 32 => Self(uuid.simple().to_string()),
            Alphabet::LowerAlphanumeric => Self(tail(&radix(u128::from_be_bytes(random(entropy)), 36), form.max_len)),
            Alphabet::Digits => Self(tail(&radix(u128::from_be_bytes(random(entropy)), 10), form.max_len)),
        }
    }

    /// One that a channel or an operator named: 1–128 visible ASCII characters.
    pub fn parse(text: &str) -> Option<Self> {
        ((1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())).then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The last `len` characters, padded with zeros in front.
fn tail(text: &str, len: usize) -> String {
    let padded = format!("{text:0>len$}");
    padded[padded.len() - len..].to_owned()
}

fn radix(mut value: u128, base: u128) -> String {
    let mut digits = Vec::new();
    while value > 0 {
        let digit = u32::try_from(value % base).unwrap_or(0);
        digits.push(char::from_digit(digit, 36).unwrap_or('0'));
        value /= base;
    }
    digits.iter().rev().collect()
}

impl fmt::Display for ChannelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ChannelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clock::Fixed;

    proptest! {
        #[test]
        fn every_reference_fits_its_form(seed: u64, now in 0i64..4_000_000_000_000, max_len in 10usize..=64, digits: bool) {
            let entropy = Fixed::new(Timestamp(now), seed);
            let alphabet = if digits { Alphabet::Digits } else { Alphabet::LowerAlphanumeric };
            let form = RefForm { alphabet, min_len: 10, max_len };
            let made = ChannelRef::new(form, Timestamp(now), &entropy);
            prop_assert!(made.as_str().len() <= max_len && made.as_str().len() >= form.min_len);
            let fits = made.as_str().bytes().all(|b| b.is_ascii_digit() || (!digits && b.is_ascii_lowercase()));
            prop_assert!(fits);
            prop_assert_ne!(&made, &ChannelRef::new(form, Timestamp(now), &entropy));
        }
    }
}
