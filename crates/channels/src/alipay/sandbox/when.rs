//! The gateway's times: text in Beijing time without a zone.

use payonce_core::clock::Timestamp;
use std::time::Duration;
use time::format_description::BorrowedFormatItem;
use time::macros::{format_description, offset};
use time::{OffsetDateTime, PrimitiveDateTime};

const SECONDS: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");
const MINUTES: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day] [hour]:[minute]");
const NUMBER: &[BorrowedFormatItem<'_>] = format_description!("[year][month][day]2200[hour][minute][second][subsecond digits:3]");

fn beijing(at: Timestamp, format: &[BorrowedFormatItem<'_>]) -> String {
    let calendar = at.calendar().unwrap_or(OffsetDateTime::UNIX_EPOCH);
    calendar.to_offset(offset!(+8)).format(format).unwrap_or_default()
}

/// `2026-12-01 21:45:36`.
pub(super) fn text(at: Timestamp) -> String {
    beijing(at, SECONDS)
}

/// The head of a trade number: the moment, so that numbers of two runs do not meet.
pub(super) fn number(at: Timestamp) -> String {
    beijing(at, NUMBER)
}

/// Reads `yyyy-MM-dd HH:mm:ss`, or without the seconds.
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    let at = PrimitiveDateTime::parse(text, SECONDS).or_else(|_| PrimitiveDateTime::parse(text, MINUTES)).ok()?;
    Some(Timestamp::from_unix(at.assume_offset(offset!(+8)).unix_timestamp()))
}

/// Reads `90m`, `2h`, `1d`, or `1c` (the end of the day in Beijing).
pub(super) fn parse_timeout(text: &str, now: Timestamp) -> Option<Timestamp> {
    const MINUTE: u64 = 60;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let count: u64 = digits.parse().ok()?;
    let seconds = match unit {
        "m" => count.checked_mul(MINUTE)?,
        "h" => count.checked_mul(60 * MINUTE)?,
        "d" => count.checked_mul(24 * 60 * MINUTE)?,
        "c" if count == 1 => {
            let day = beijing(now, format_description!("[year]-[month]-[day]"));
            return parse(&format!("{day} 23:59:59"));
        }
        _ => return None,
    };
    // Fifteen days is the longest that the gateway takes.
    (seconds > 0 && seconds <= 15 * 24 * 60 * MINUTE).then(|| now.plus(Duration::from_secs(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_beijing_s() {
        let at = Timestamp::from_unix(1_796_132_736);
        assert_eq!(text(at), "2026-12-01 21:45:36");
        assert_eq!(parse("2026-12-01 21:45:36"), Some(at));
        assert_eq!(parse("2026-12-01 21:45"), Some(Timestamp::from_unix(1_796_132_700)));
        assert_eq!(parse("2026-12-01T21:45:36Z"), None);
        assert_eq!(parse_timeout("90m", at), Some(at.plus(Duration::from_secs(5400))));
        assert_eq!(parse_timeout("1c", at).map(text).as_deref(), Some("2026-12-01 23:59:59"));
        for bad in ["", "m", "0m", "16d", "1.5h", "-1m", "1年"] {
            assert_eq!(parse_timeout(bad, at), None, "{bad}");
        }
    }
}
