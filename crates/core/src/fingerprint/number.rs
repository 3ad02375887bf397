//! JSON numbers as exact decimals: `1`, `1.0` and `1e0` agree, and no digit is ever lost (I11).
//!
//! What comes in: the text of a number that the tokenizer found well-formed. What goes out: sign, significant digits and a power of
//! ten. Nothing is expanded, so `1e999999999` costs as little as `1`.

/// Writes the canonical text of the number `text` (which has the grammar of RFC 8259): `-12e-3`. `None` where its exponent has more than 15 digits.
pub(super) fn canonical(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (negative, text) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = split_at_byte(text, |byte| matches!(byte, b'e' | b'E'));
    let (whole, fraction) = split_at_byte(mantissa, |byte| byte == b'.');
    let mut digits: Vec<u8> = whole.iter().chain(fraction).copied().skip_while(|digit| *digit == b'0').collect();
    let mut power = parse_exponent(exponent)?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    while digits.last() == Some(&b'0') {
        digits.pop();
        power += 1;
    }
    if digits.is_empty() {
        // Zero has no sign and no power: -0, 0.00 and 0e9 are the same amount.
        out.extend_from_slice(b"0e0");
        return Some(());
    }
    if negative {
        out.push(b'-');
    }
    out.extend_from_slice(&digits);
    out.push(b'e');
    out.extend_from_slice(power.to_string().as_bytes());
    Some(())
}

fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let mut value = 0i64;
    let mut significant = 0;
    for digit in digits.iter().skip_while(|digit| **digit == b'0') {
        significant += 1;
        if significant > 15 {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -value } else { value })
}

/// What stands before the first byte that fits, and what stands after it.
fn split_at_byte(text: &[u8], fits: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    let mut halves = text.splitn(2, |byte| fits(*byte));
    (halves.next().unwrap_or_default(), halves.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use proptest::prelude::*;
    use rust_decimal::Decimal;

    fn canonical(text: &str) -> Option<String> {
        let mut out = Vec::new();
        super::canonical(text.as_bytes(), &mut out)?;
        String::from_utf8(out).ok()
    }

    #[test]
    fn equal_numbers_agree_and_others_do_not() {
        for (a, b) in
            [("1", "1.0"), ("1", "1e0"), ("100", "1E+2"), ("0.10", "1e-1"), ("-0", "0e5"), ("12.50", "0.125e2"), ("1e0002", "100")]
        {
            assert_eq!(canonical(a), canonical(b), "{a} {b}");
        }
        for (a, b) in [
            ("100000000000000001", "100000000000000000"),
            ("9007199254740993", "9007199254740992"),
            ("0.1", "0.10000000000000000001"),
            ("1", "-1"),
            ("1e308", "1e309"),
            ("1e999999999", "1e999999998"),
        ] {
            assert_ne!(canonical(a), canonical(b), "{a} {b}");
        }
    }

    #[test]
    fn exponents_cost_nothing_and_end_somewhere() {
        assert_eq!(canonical("1e999999999").as_deref(), Some("1e999999999"));
        assert_eq!(canonical("1e-999999999999999").as_deref(), Some("1e-999999999999999"));
        assert_eq!(canonical("1e1000000000000000"), None);
        assert_eq!(canonical("1e00000000000000000000000007").as_deref(), Some("1e7"));
    }

    proptest! {
        /// A decimal library as oracle: two texts agree exactly when their values do.
        #[test]
        fn agrees_with_a_decimal_library(a in -5_000i64..5_000, scale_a in 0u32..5, b in -5_000i64..5_000, scale_b in 0u32..5) {
            let (a, b) = (Decimal::new(a, scale_a), Decimal::new(b, scale_b));
            prop_assert_eq!(a == b, canonical(&a.to_string()) == canonical(&b.to_string()), "{} {}", a, b);
        }

        #[test]
        fn shifting_the_point_and_the_exponent_changes_nothing(whole in 0u64.., shift in 0usize..40, sign in "-?") {
            let plain = format!("{sign}{whole}");
            prop_assert_eq!(canonical(&plain), canonical(&format!("{plain}{}e-{shift}", "0".repeat(shift))));
            prop_assert_eq!(canonical(&plain), canonical(&format!("{plain}.{}", "0".repeat(shift + 1))));
            let back = canonical(&plain).and_then(|text| Decimal::from_scientific(&text).ok());
            prop_assert_eq!(back, Decimal::from_str(&plain).ok());
        }
    }
}
