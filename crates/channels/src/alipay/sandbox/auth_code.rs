//! Payment codes that mean something: how a barcode payment ends is chosen by its code.
//!
//! A payment code has 16 to 24 digits and begins with 25 to 30. Digits 3 to 6 choose the story, the last four digits name the buyer (so
//! two codes with the same end are one buyer). Any other code pays at once.

use serde_json::{Value, json};

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Story {
    /// Paid: 10000.
    Pays,
    /// 10003, and waits for the buyer (control call `buyer`: `pay`, `decline`).
    AsksForPassword,
    /// 40004 `ACQ.BUYER_BALANCE_NOT_ENOUGH`; no trade is left behind.
    NoBalance,
    /// 40004 `ACQ.PAYMENT_AUTH_CODE_INVALID`; no trade is left behind.
    CodeExpired,
    /// Paid, but answered with 20000: outcome unknown.
    PaidButUnknown,
    /// Not executed, and answered with 20000: outcome unknown.
    NotPaidButUnknown,
    /// Paid, but answered with 40004 `ACQ.SYSTEM_ERROR`: outcome unknown.
    PaidButSystemError,
    /// 40004 `ACQ.PAYMENT_REQUEST_HAS_RISK`; no trade is left behind.
    Risk,
    /// 10003, and the buyer enters the password by the time of the next query.
    PaysAtNextQuery,
    /// 40004 `ACQ.BUYER_BALANCE_NOT_ENOUGH`, and the trade waits: it can still be paid, by the same number or by the buyer.
    NoBalanceButOpen,
}

const STORIES: [(&str, Story, &str); 9] = [
    ("0001", Story::AsksForPassword, "10003: waits until the buyer pays or declines (POST /_sandbox/buyer)"),
    ("0002", Story::NoBalance, "40004 ACQ.BUYER_BALANCE_NOT_ENOUGH: declined, no trade is left"),
    ("0003", Story::CodeExpired, "40004 ACQ.PAYMENT_AUTH_CODE_INVALID: declined, no trade is left"),
    ("0004", Story::PaidButUnknown, "20000: paid all the same"),
    ("0005", Story::NotPaidButUnknown, "20000: not executed"),
    ("0006", Story::PaidButSystemError, "40004 ACQ.SYSTEM_ERROR: paid all the same"),
    ("0007", Story::Risk, "40004 ACQ.PAYMENT_REQUEST_HAS_RISK: declined, no trade is left"),
    ("0008", Story::PaysAtNextQuery, "10003: paid when it is queried next"),
    ("0009", Story::NoBalanceButOpen, "40004 ACQ.BUYER_BALANCE_NOT_ENOUGH: declined, but the trade waits and can still be paid"),
];

/// What a code means, and whose it is; `None` for what is no code.
pub(super) fn read(code: &str) -> Option<(Story, String)> {
    let fits = (16..=24).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_digit());
    let head = code.get(..2)?;
    if !fits || !("25"..="30").contains(&head) {
        return None;
    }
    let chooser = code.get(2..6)?;
    let story = STORIES.iter().find(|(digits, ..)| *digits == chooser).map_or(Story::Pays, |(_, story, _)| *story);
    Some((story, format!("208800000000{}", code.get(code.len() - 4..)?)))
}

/// For `GET /_sandbox/accounts`.
pub(super) fn described() -> Value {
    let codes: serde_json::Map<String, Value> =
        STORIES.iter().map(|(digits, _, what)| (format!("28{digits}0000000000001234"), json!(what))).collect();
    json!({
        "auth_code": {
            "form": "16 to 24 digits that begin with 25 to 30; digits 3 to 6 choose what happens, the last four name the buyer; others pay at once",
            "examples": codes,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_choose_their_story_and_their_buyer() {
        assert_eq!(read("28763443825664394"), Some((Story::Pays, "2088000000004394".to_owned())));
        assert_eq!(read("2800010000000000001234").map(|(story, _)| story), Some(Story::AsksForPassword));
        assert_eq!(read("3000020000000001").map(|(story, _)| story), Some(Story::NoBalance));
        for bad in ["", "287634438256643", "2476344382566439", "3176344382566439", "28763443825664394x", "2876344382566439428763443"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
