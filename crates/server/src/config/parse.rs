//! Durations and sizes as people write them: `60s`, `24h`, `45d`, `64KiB`.

use std::time::Duration;

/// A number and one of `ms s m h d`.
pub(super) fn span(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let ms = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(ms).map(Duration::from_millis)
}

/// Bytes: a number alone or with `B KiB MiB kB MB`.
pub(super) fn size(text: &str) -> Option<usize> {
    let (number, unit) = split(text)?;
    let bytes = match unit {
        "" | "B" => 1,
        "KiB" => 1024,
        "MiB" => 1024 * 1024,
        "kB" => 1000,
        "MB" => 1_000_000,
        _ => return None,
    };
    number.checked_mul(bytes).and_then(|bytes| usize::try_from(bytes).ok())
}

fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_and_a_bare_number_is_no_duration() {
        assert_eq!(span("60s"), Some(Duration::from_secs(60)));
        assert_eq!(span("250 ms"), Some(Duration::from_millis(250)));
        assert_eq!(span("45d"), Some(Duration::from_secs(45 * 86_400)));
        for bad in ["60", "s", "1.5h", "-1s", "1w", "99999999999999999999s"] {
            assert_eq!(span(bad), None, "{bad}");
        }
        assert_eq!((size("64KiB"), size("65536"), size("1 MB")), (Some(65_536), Some(65_536), Some(1_000_000)));
        assert_eq!(size("64K"), None);
    }
}
