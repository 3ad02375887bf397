//! Money: an integer of minor units with the currency's own exponent (I11). No float touches it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The largest amount a payment may have, in minor units: 10^15.
pub const AMOUNT_MAX_MINOR: i64 = 1_000_000_000_000_000;

/// An ISO 4217 currency in use, by its three capital letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency {
    code: [u8; 3],
    exponent: u8,
}

impl Currency {
    /// The yuan.
    pub const CNY: Self = Self { code: *b"CNY", exponent: 2 };

    /// Parses an ISO 4217 code in any letter case. `None` for codes that are no money one can pay with (XXX, XAU …).
    pub fn parse(text: &str) -> Option<Self> {
        let upper = text.to_ascii_uppercase();
        let code: [u8; 3] = upper.as_bytes().try_into().ok()?;
        let known = iso_currency::Currency::from_code(&upper)?;
        let exponent = u8::try_from(known.exponent()?).ok()?;
        Some(Self { code, exponent })
    }

    /// The three letters.
    pub fn code(&self) -> &str {
        // The constructor only lets ASCII letters in.
        std::str::from_utf8(&self.code).unwrap_or("???")
    }

    /// How many decimal places the currency has: 0 (JPY), 2 (CNY), 3 (KWD), 4 (CLF).
    pub const fn exponent(&self) -> u8 {
        self.exponent
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl Serialize for Currency {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not an ISO 4217 currency"))
    }
}

/// An amount of a currency in minor units. May be zero or negative in sums; parsers of requests refuse that at the door.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Money {
    /// Minor units: fen, cents, whole yen.
    pub minor: i64,
    /// Of which currency.
    pub currency: Currency,
}

/// Why a text is no amount of a currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoneyFault {
    /// Not of the form `digits[.digits]`.
    #[error("not a decimal number")]
    NotDecimal,
    /// More decimal places that are not zero than the currency has.
    #[error("more decimal places than the currency has")]
    TooPrecise,
    /// Does not fit 64 bits.
    #[error("too large")]
    TooLarge,
}

impl Money {
    /// `minor` units of `currency`.
    pub const fn new(minor: i64, currency: Currency) -> Self {
        Self { minor, currency }
    }

    /// Nothing of a currency.
    pub const fn zero(currency: Currency) -> Self {
        Self { minor: 0, currency }
    }

    /// The sum; `None` on overflow or for two currencies.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        if self.currency != other.currency {
            return None;
        }
        self.minor.checked_add(other.minor).map(|minor| Self { minor, ..self })
    }

    /// The difference; `None` on overflow or for two currencies.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        if self.currency != other.currency {
            return None;
        }
        self.minor.checked_sub(other.minor).map(|minor| Self { minor, ..self })
    }

    /// As a decimal in major units with exactly the currency's places: `19.90`, `80`, `1.250`.
    pub fn to_decimal(self) -> String {
        let places = usize::from(self.currency.exponent);
        let digits = self.minor.unsigned_abs().to_string();
        let sign = if self.minor < 0 { "-" } else { "" };
        if places == 0 {
            return format!("{sign}{digits}");
        }
        let padded = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = padded.split_at(padded.len() - places);
        format!("{sign}{whole}.{fraction}")
    }

    /// Parses a non-negative decimal in major units. Places beyond the currency's are allowed only where they are zero, so
    /// that `8.8`, `8.80` and `8.800` are one amount and `8.801` is none.
    pub fn from_decimal(text: &str, currency: Currency) -> Result<Self, MoneyFault> {
        let (whole, fraction) = match text.split_once('.') {
            Some((_, "")) => return Err(MoneyFault::NotDecimal),
            Some(parts) => parts,
            None => (text, ""),
        };
        let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
            return Err(MoneyFault::NotDecimal);
        }
        let places = usize::from(currency.exponent);
        let (kept, beyond) = fraction.split_at(fraction.len().min(places));
        if beyond.bytes().any(|b| b != b'0') {
            return Err(MoneyFault::TooPrecise);
        }
        let digits = format!("{whole}{kept:0<places$}");
        let minor = i64::from_str(&digits).map_err(|_| MoneyFault::TooLarge)?;
        Ok(Self { minor, currency })
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.to_decimal(), self.currency)
    }
}

impl fmt::Debug for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn currency(code: &str) -> Currency {
        Currency::parse(code).expect(code)
    }

    #[test]
    fn b084_yuan_text_is_exact_for_every_fen() {
        for minor in (1..=100_000).chain([1990, 167, 268, 29, 57, 115, 819_283, 9_999_999_999]) {
            let money = Money::new(minor, Currency::CNY);
            let text = money.to_decimal();
            assert_eq!(text.split_once('.').map(|(_, f)| f.len()), Some(2), "{text}");
            assert_eq!(Money::from_decimal(&text, Currency::CNY), Ok(money));
        }
    }

    #[test]
    fn b085_exponents_are_the_currency_s_own() {
        for (code, minor, text) in [
            ("JPY", 80, "80"),
            ("KRW", 2000, "2000"),
            ("VND", 5000, "5000"),
            ("CLP", 1000, "1000"),
            ("KWD", 1250, "1.250"),
            ("CNY", 5, "0.05"),
        ] {
            assert_eq!(Money::new(minor, currency(code)).to_decimal(), text);
            assert_eq!(Money::from_decimal(text, currency(code)), Ok(Money::new(minor, currency(code))));
        }
        assert_eq!(Money::from_decimal("80.5", currency("JPY")), Err(MoneyFault::TooPrecise));
    }

    #[test]
    fn equal_amounts_written_differently_are_equal() {
        for text in ["100", "100.0", "100.00", "100.000", "0100.00"] {
            assert_eq!(Money::from_decimal(text, Currency::CNY), Ok(Money::new(10_000, Currency::CNY)), "{text}");
        }
        for text in ["", ".", "1.", ".5", "-1", "+1", "1e2", "1,00", "１", " 1", "1 "] {
            assert_eq!(Money::from_decimal(text, Currency::CNY), Err(MoneyFault::NotDecimal), "{text:?}");
        }
        assert_eq!(Money::from_decimal("99999999999999999999", Currency::CNY), Err(MoneyFault::TooLarge));
    }

    #[test]
    fn codes_that_are_no_money_are_refused() {
        for code in ["XXX", "XAU", "ZZZ", "", "CN", "CNYY", "人民币"] {
            assert_eq!(Currency::parse(code), None, "{code}");
        }
        assert_eq!(Currency::parse("usd"), Currency::parse("USD"));
    }

    proptest! {
        #[test]
        fn decimal_text_agrees_with_a_decimal_library(minor in 0i64..=AMOUNT_MAX_MINOR, code in prop_oneof![Just("JPY"), Just("CNY"), Just("KWD")]) {
            let money = Money::new(minor, currency(code));
            let oracle = rust_decimal::Decimal::new(minor, u32::from(money.currency.exponent()));
            prop_assert_eq!(money.to_decimal(), oracle.to_string());
            prop_assert_eq!(Money::from_decimal(&oracle.to_string(), money.currency), Ok(money));
        }
    }
}
