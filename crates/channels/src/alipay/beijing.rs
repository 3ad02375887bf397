//! Times as Alipay writes them: `yyyy-MM-dd HH:mm:ss` in Beijing, with no zone in the text. The server's own zone never takes part (B069).

use payonce_core::clock::Timestamp;
use time::macros::offset;
use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time, UtcOffset};

const BEIJING: UtcOffset = offset!(+8);

/// The text of a moment, rounded down to the second. `None` outside the years 0–9999.
pub(super) fn text(at: Timestamp) -> Option<String> {
    let at: OffsetDateTime = at.calendar()?.to_offset(BEIJING);
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    Some(format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", at.hour(), at.minute(), at.second()))
}

/// The moment of a text; a fraction of a second may follow (`gmt_refund` has one).
pub(super) fn moment(text: &str) -> Option<Timestamp> {
    let (date, clock) = text.split_once(' ')?;
    let mut date = date.split('-');
    let (year, month, day) = (date.next()?, date.next()?, date.next()?);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut clock = clock.split(':');
    let (hour, minute, second) = (clock.next()?, clock.next()?, clock.next()?);
    if date.next().is_some() || clock.next().is_some() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let month = Month::try_from(month.parse::<u8>().ok()?).ok()?;
    let date = Date::from_calendar_date(year.parse().ok()?, month, day.parse().ok()?).ok()?;
    let clock = Time::from_hms(hour.parse().ok()?, minute.parse().ok()?, second.parse().ok()?).ok()?;
    let at = PrimitiveDateTime::new(date, clock).assume_offset(BEIJING);
    let millis = format!("{fraction:0<3}").get(..3)?.parse::<i64>().ok()?;
    Some(Timestamp(Timestamp::from_unix(at.unix_timestamp()).0.saturating_add(millis)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b069_the_text_is_beijing_time_whatever_the_server_s_zone() {
        let at = Timestamp::parse_rfc3339("2026-03-08T02:30:00-05:00").expect("a time");
        assert_eq!(text(at).as_deref(), Some("2026-03-08 15:30:00"));
        assert_eq!(text(Timestamp(at.0 + 999)).as_deref(), Some("2026-03-08 15:30:00"), "never later than asked for");
        assert_eq!(moment("2026-03-08 15:30:00"), Some(at));
        assert_eq!(moment("2026-03-08 15:30:00.123"), Some(Timestamp(at.0 + 123)));
        for bad in
            ["", "2026-03-08", "2026-02-30 00:00:00", "2026-03-08T15:30:00", "2026-03-08 15:30", "2026-03-08 15:30:00.x", "x-y-z a:b:c"]
        {
            assert_eq!(moment(bad), None, "{bad:?}");
        }
    }
}
