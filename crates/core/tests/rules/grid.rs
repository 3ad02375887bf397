//! The two state grids, printed as Markdown tables: every status against every outcome.

use std::fmt::Write as _;

use payonce_core::attempt::AttemptStatus;
use payonce_core::attempt::transition::{Move, transition};
use payonce_core::failure::Failure;
use payonce_core::outcome::{Outcome, RefundOutcome, Taken};
use payonce_core::refund::RefundStatus;
use payonce_core::refund::transition::{Move as RefundMove, transition as refund_transition};

fn failure() -> Failure {
    Failure::new("declined", "no")
}

fn taken() -> Taken {
    Taken { txn: "t".to_owned(), amount: None, at: None }
}

/// Every outcome of an attempt, by the words of the table; `true` where it names the transaction that the attempt already has.
fn outcomes() -> Vec<(&'static str, Outcome, bool)> {
    vec![
        ("paid, same transaction", Outcome::Paid(taken()), true),
        ("paid, another transaction", Outcome::Paid(taken()), false),
        ("authorized, same transaction", Outcome::Authorized(taken()), true),
        ("authorized, another transaction", Outcome::Authorized(taken()), false),
        ("waiting", Outcome::Waiting { action: None, txn: None }, true),
        ("declined", Outcome::Declined(failure()), true),
        ("declined, still payable", Outcome::DeclinedOpen(failure()), true),
        ("closed", Outcome::Closed, true),
        ("absent, final", Outcome::AbsentFinal, true),
        ("absent, not final", Outcome::AbsentYet, true),
        ("not accepted", Outcome::NotAccepted(failure()), true),
        ("not sent", Outcome::NotSent(String::new()), true),
        ("in progress", Outcome::InProgress, true),
        ("unknown", Outcome::Unknown(String::new()), true),
    ]
}

/// Every outcome of a refund; `true` where it answers the first send of the reference.
fn refund_outcomes() -> Vec<(&'static str, RefundOutcome, bool)> {
    vec![
        ("processing", RefundOutcome::Processing, false),
        ("succeeded", RefundOutcome::Succeeded { channel_refund_id: None }, false),
        ("failed", RefundOutcome::Failed(failure()), false),
        ("absent", RefundOutcome::Absent, false),
        ("not accepted, first send", RefundOutcome::NotAccepted(failure()), true),
        ("not accepted, repeat", RefundOutcome::NotAccepted(failure()), false),
        ("not sent", RefundOutcome::NotSent(String::new()), false),
        ("in progress", RefundOutcome::InProgress, false),
        ("unknown", RefundOutcome::Unknown(String::new()), false),
    ]
}

/// Attempt status × outcome.
pub(crate) fn attempts() -> String {
    let rows = outcomes().into_iter().map(|(name, outcome, known_txn)| {
        let cells = AttemptStatus::ALL.map(|status| match transition(status, &outcome, known_txn) {
            Move::Become(next) => format!("→ {}", next.as_str()),
            Move::Stay => "stay".to_owned(),
            Move::Note => "note".to_owned(),
            Move::Adopt => "adopt".to_owned(),
            Move::Surplus => "surplus".to_owned(),
            Move::Review => "review".to_owned(),
        });
        [vec![name.to_owned()], cells.to_vec()].concat()
    });
    table(["outcome"].into_iter().chain(AttemptStatus::ALL.map(AttemptStatus::as_str)), rows)
}

/// Refund status × outcome.
pub(crate) fn refunds() -> String {
    let rows = refund_outcomes().into_iter().map(|(name, outcome, first_send)| {
        let cells = RefundStatus::ALL.map(|status| match refund_transition(status, &outcome, first_send) {
            RefundMove::Become(next) => format!("→ {}", next.as_str()),
            RefundMove::Stay => "stay".to_owned(),
            RefundMove::Note => "note".to_owned(),
            RefundMove::Late => "late".to_owned(),
        });
        [vec![name.to_owned()], cells.to_vec()].concat()
    });
    table(["outcome"].into_iter().chain(RefundStatus::ALL.map(RefundStatus::as_str)), rows)
}

fn table<'a>(head: impl Iterator<Item = &'a str>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut lines: Vec<Vec<String>> = vec![head.map(str::to_owned).collect()];
    lines.extend(rows);
    let widths: Vec<usize> =
        (0..lines[0].len()).map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for (n, line) in lines.iter().enumerate() {
        let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
        if n == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            let _ = writeln!(text, "| {} |", rule.join(" | "));
        }
    }
    text
}

#[test]
fn attempt_status_and_outcome() {
    insta::assert_snapshot!(attempts());
}

#[test]
fn refund_status_and_outcome() {
    insta::assert_snapshot!(refunds());
}

#[test]
fn an_attempt_that_ended_is_never_live_again() {
    for (name, outcome, known_txn) in outcomes() {
        for status in AttemptStatus::ALL.into_iter().filter(|status| !status.is_live()) {
            if let Move::Become(next) = transition(status, &outcome, known_txn) {
                assert!(!next.is_live(), "{name} on {status:?} leads to {next:?} (I1)");
            }
        }
    }
}

#[test]
fn silence_never_ends_an_attempt_or_a_refund() {
    for (name, outcome, known_txn) in outcomes() {
        let silent = matches!(outcome, Outcome::Unknown(_) | Outcome::InProgress | Outcome::NotSent(_) | Outcome::AbsentYet);
        for status in AttemptStatus::ALL.into_iter().filter(|status| silent && status.is_live()) {
            match transition(status, &outcome, known_txn) {
                Move::Become(next) => assert!(next.is_live(), "{name} on {status:?} (I10)"),
                Move::Stay => {}
                other @ (Move::Note | Move::Adopt | Move::Surplus | Move::Review) => panic!("{name} on {status:?}: {other:?}"),
            }
        }
    }
    for (name, outcome, first_send) in refund_outcomes() {
        let silent =
            matches!(outcome, RefundOutcome::Unknown(_) | RefundOutcome::InProgress | RefundOutcome::NotSent(_) | RefundOutcome::Absent);
        for status in RefundStatus::ALL.into_iter().filter(|status| silent && status.is_open()) {
            if let RefundMove::Become(next) = refund_transition(status, &outcome, first_send) {
                assert!(next.is_open(), "{name} on {status:?} (I10)");
            }
        }
    }
}
