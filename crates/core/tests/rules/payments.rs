//! Cases of payments at the level of the rules: duplicates, disorder, late and second money, wrong figures.

use payonce_core::attempt::AttemptStatus;
use payonce_core::event::EventKind;
use payonce_core::money::{Currency, Money};
use payonce_core::notification::{Booked, Facts, Notification, Reason, bind};
use payonce_core::outcome::{Outcome, Source};
use payonce_core::payment::change::AuditEntry;
use payonce_core::payment::observe::{OPERATOR_TXN, Observation, observe};
use payonce_core::payment::{PaymentStatus, Review, SurplusPolicy};
use payonce_core::refund::{RefundOf, RefundStatus};

use crate::story::{Story, authorized, cny, no, paid, paid_over, refunded, waiting};

fn kinds(story: &Story) -> Vec<&'static str> {
    story.events.iter().map(|event| event.kind.as_str()).collect()
}

#[test]
fn b047_a_late_pending_between_two_completed_changes_nothing() {
    let mut story = Story::new();
    for outcome in [paid("T1"), waiting(), paid("T1"), paid("T1")] {
        story.see(0, outcome);
        assert_eq!(story.payment.status, PaymentStatus::Paid);
    }
    assert_eq!(kinds(&story), ["payment.paid"]);
    assert_eq!(story.payment.captured(), cny(10_000));
}

#[test]
fn b052_an_earlier_word_does_not_use_up_the_order() {
    for earlier in [waiting(), Outcome::DeclinedOpen(no()), Outcome::Declined(no()), Outcome::AbsentYet, Outcome::Unknown(String::new())] {
        let mut story = Story::new();
        story.see(0, earlier.clone());
        story.see(0, paid("T1"));
        assert_eq!(story.payment.status, PaymentStatus::Paid, "{earlier:?}");
        assert_eq!(story.told(EventKind::Paid), 1);
        assert_eq!(story.payment.attempts[0].failure, None);
    }
}

/// The bound notification of the sandbox's Alipay, with the amount under test.
fn notice(amount: Option<Money>, currency_text: Option<&str>) -> Notification {
    Notification {
        identity: "e1".to_owned(),
        merchant: vec![("app_id".to_owned(), "a1".to_owned()), ("seller_id".to_owned(), "s1".to_owned())],
        channel_ref: Some("ref".to_owned()),
        amount,
        currency_text: currency_text.map(str::to_owned),
        status: "TRADE_SUCCESS".to_owned(),
        facts: Facts::Paid { txn: "T1".to_owned(), at: None },
    }
}

#[test]
fn b057_a_genuine_notice_of_another_order_or_amount_is_not_paid() {
    let ours = |app: &str, seller: &str| vec![("app_id".to_owned(), app.to_owned()), ("seller_id".to_owned(), seller.to_owned())];
    let booked = Some(Booked { amount: cny(10_000) });
    let cny_only = Some(Currency::CNY);
    let right = notice(Some(cny(10_000)), None);
    assert_eq!(bind(&right, &ours("a1", "s1"), booked, cny_only), Ok(()));
    assert_eq!(bind(&right, &ours("a2", "s1"), booked, cny_only), Err(Reason::WrongMerchant));
    assert_eq!(bind(&right, &ours("a1", "s2"), booked, cny_only), Err(Reason::WrongMerchant));
    assert_eq!(bind(&notice(Some(cny(1)), None), &ours("a1", "s1"), booked, cny_only), Err(Reason::AmountMismatch));
    assert_eq!(bind(&right, &ours("a1", "s1"), None, cny_only), Err(Reason::UnknownOrder));
    for text in ["100", "100.0", "100.00"] {
        let amount = Money::from_decimal(text, Currency::CNY).expect("an amount");
        assert_eq!(bind(&notice(Some(amount), None), &ours("a1", "s1"), booked, cny_only), Ok(()), "{text}");
    }
    // The rule itself does not take it either, whoever says so: kept for review with both values, and the attempt is as it was.
    let mut story = Story::new();
    story.see(0, paid_over("T1", Some(cny(1))));
    assert_eq!((story.payment.status, story.payment.attempts[0].status), (PaymentStatus::Review, AttemptStatus::Prepared));
    let review = story.payment.review.clone().expect("a review");
    assert_eq!(review.code, "amount_mismatch");
    assert!(review.detail.contains("100.00 CNY") && review.detail.contains("0.01 CNY"), "{review:?}");
    assert_eq!(kinds(&story), ["payment.review"]);
    // The right money ends the review.
    story.see(0, paid("T1"));
    assert_eq!((story.payment.status, story.payment.review.is_none()), (PaymentStatus::Paid, true));
    assert_eq!(kinds(&story), ["payment.review", "payment.paid"]);
}

#[test]
fn b059_the_currency_is_compared() {
    let ours = Vec::new();
    let usd = |code: &str| Money::new(10_000, Currency::parse(code).expect("a currency"));
    let booked = Some(Booked { amount: usd("USD") });
    for (amount, text, single, fit) in [
        (Some(usd("JPY")), None, None, Err(Reason::CurrencyMismatch)),
        (Some(usd("CNY")), None, None, Err(Reason::CurrencyMismatch)),
        (Some(usd("usd")), None, None, Ok(())),
        (None, None, None, Err(Reason::CurrencyMismatch)),
        (None, None, Some(usd("USD").currency), Ok(())),
        (None, Some("XTS"), Some(usd("USD").currency), Err(Reason::CurrencyMismatch)),
    ] {
        assert_eq!(bind(&notice(amount, text), &ours, booked, single), fit, "{amount:?} {text:?} {single:?}");
    }
    let mut story = Story::new();
    story.see(0, paid_over("T1", Some(Money::new(10_000, Currency::parse("JPY").expect("a currency")))));
    assert_eq!(story.payment.review.as_ref().map(|review| review.code.as_str()), Some("currency_mismatch"));
    assert_eq!(story.payment.paid_attempt(), None);
    story.see(0, paid_over("T1", None));
    assert_eq!(story.payment.status, PaymentStatus::Paid, "no figure at all reaches the rule only where the channel has one currency");
}

#[test]
fn a_mismatch_on_one_attempt_is_not_settled_by_money_on_another() {
    let mut story = Story::new();
    story.see(0, paid_over("T1", Some(cny(1))));
    story.see(0, Outcome::Closed);
    let second = story.start("alipay");
    story.see(second, paid("T2"));
    assert_eq!((story.payment.status, story.told(EventKind::Paid)), (PaymentStatus::Review, 1), "somebody's cent is still there");
    story.see(0, waiting());
    assert!(story.payment.review.is_some());
}

#[test]
fn b071_a_late_failure_of_an_earlier_try_does_not_overwrite_success() {
    let mut story = Story::new();
    story.see(0, Outcome::Declined(no()));
    let second = story.start("wechat");
    story.see(second, paid("T2"));
    for late in
        [Outcome::Declined(no()), Outcome::DeclinedOpen(no()), Outcome::Closed, Outcome::NotAccepted(no()), Outcome::Unknown(String::new())]
    {
        story.see(0, late.clone());
        story.see(second, late.clone());
        assert_eq!(story.payment.status, PaymentStatus::Paid, "{late:?}");
        assert_eq!(
            story.payment.attempts.iter().map(|attempt| attempt.status).collect::<Vec<_>>(),
            [AttemptStatus::Declined, AttemptStatus::Succeeded]
        );
    }
    assert_eq!(kinds(&story), ["payment.failed", "payment.paid"]);
}

#[test]
fn b072_paid_after_failed_on_the_same_attempt_is_adopted() {
    let mut story = Story::new();
    story.see(0, Outcome::Declined(no()));
    assert_eq!(story.payment.status, PaymentStatus::Failed);
    story.see(0, paid("T1"));
    assert_eq!((story.payment.status, story.payment.surpluses.len()), (PaymentStatus::Paid, 0));
    assert_eq!(kinds(&story), ["payment.failed", "payment.paid"]);
    // With another attempt on its way it is money beside the payment instead: never dropped, never a second live attempt.
    let mut story = Story::new();
    story.see(0, Outcome::Declined(no()));
    let second = story.start("alipay");
    story.see(0, paid("T1"));
    assert_eq!((story.payment.status, story.payment.surpluses.len()), (PaymentStatus::Pending, 1));
    // Told again after the second attempt has ended, it is still the money that goes back, not the payment.
    story.see(second, Outcome::Closed);
    story.see(0, paid("T1"));
    assert_eq!((story.payment.status, story.payment.surpluses.len(), story.payment.refunds.len()), (PaymentStatus::Closed, 1, 1));
}

#[test]
fn b073_a_paid_notice_again_has_no_second_effect() {
    let mut story = Story::paid();
    let version = story.payment.version;
    story.see(0, paid("T1"));
    story.see(0, authorized("T1"));
    assert_eq!((story.payment.version, kinds(&story)), (version, vec!["payment.paid"]));
}

#[test]
fn b074_paid_after_the_timer_closed_it_goes_back_once() {
    let mut story = Story::new();
    story.see(0, Outcome::Closed);
    assert_eq!(story.payment.status, PaymentStatus::Closed);
    story.see(0, paid("T1"));
    story.see(0, paid("T1"));
    assert_eq!(kinds(&story), ["payment.closed", "payment.surplus"]);
    assert_eq!((story.payment.status, story.payment.captured()), (PaymentStatus::Closed, cny(0)));
    let [refund] = story.payment.refunds.as_slice() else { panic!("one refund: {:?}", story.payment.refunds) };
    assert_eq!(
        (&refund.of, refund.amount, refund.status),
        (&RefundOf::Surplus(story.payment.surpluses[0].id.clone()), cny(10_000), RefundStatus::Pending)
    );
    let id = refund.id.clone();
    story.see_refund(&id, &refunded(), true);
    assert_eq!(kinds(&story), ["payment.closed", "payment.surplus", "refund.succeeded"]);
    assert_eq!(story.payment.refunded(), cny(0), "money back from a surplus never counts against the order");
    // Under the other policy it waits for a person.
    let mut story = Story::under(SurplusPolicy::Hold);
    story.see(0, Outcome::Closed);
    story.see(0, paid("T1"));
    assert_eq!((story.payment.surpluses.len(), story.payment.refunds.len()), (1, 0));
}

#[test]
fn b075_closing_loses_to_paying() {
    // (a), (b): the look-up after the close finds the money.
    for before in [waiting(), Outcome::Unknown("close timed out".to_owned())] {
        let mut story = Story::new();
        story.see(0, before);
        story.see(0, paid("T1"));
        assert_eq!(story.payment.status, PaymentStatus::Paid);
        story.see(0, Outcome::Closed);
        assert_eq!(story.payment.status, PaymentStatus::Paid, "a late word of the close");
    }
    // (c): the channel confirmed the close, and a notice of earlier money arrives.
    let mut story = Story::new();
    story.see(0, Outcome::Closed);
    story.see(0, paid("T1"));
    assert_eq!((story.payment.status, story.told(EventKind::Surplus), story.payment.refunds.len()), (PaymentStatus::Closed, 1, 1));
}

#[test]
fn b076_of_two_channels_that_both_paid_one_counts_and_the_other_goes_back_once() {
    let mut story = Story::new();
    let second = story.force("alipay");
    for (index, txn) in [(0, "WX1"), (second, "ALI1"), (second, "ALI1"), (0, "WX1"), (0, "WX1"), (second, "ALI1")] {
        story.see(index, paid(txn));
    }
    assert_eq!(story.payment.status, PaymentStatus::Paid);
    assert_eq!(story.payment.paid_attempt().map(|attempt| attempt.channel.as_str()), Some("alipay"));
    assert_eq!(story.payment.surpluses.iter().map(|row| row.channel_txn.as_str()).collect::<Vec<_>>(), ["WX1"]);
    let [refund] = story.payment.refunds.as_slice() else { panic!("one refund") };
    assert_eq!((refund.channel.as_str(), refund.amount), ("wechat", cny(10_000)), "through its own channel");
    assert_eq!((story.told(EventKind::Paid), story.told(EventKind::Surplus)), (1, 1));
    assert_eq!(story.payment.refundable(), cny(10_000));
    assert_eq!(story.payment.attempts[0].due_at, None, "there is nothing left to look for");
}

#[test]
fn a_second_transaction_on_the_paid_attempt_is_a_surplus() {
    let mut story = Story::paid();
    for txn in ["T2", "T3", "T2"] {
        story.see(0, paid(txn));
    }
    assert_eq!((story.payment.status, story.payment.surpluses.len(), story.payment.refunds.len()), (PaymentStatus::Paid, 2, 2));
    let ids: std::collections::BTreeSet<&str> = story.payment.refunds.iter().map(|refund| refund.channel_ref.as_str()).collect();
    assert_eq!(ids.len(), 2, "each goes back under its own reference");
}

#[test]
fn the_same_money_named_on_another_attempt_is_not_counted_again() {
    let mut story = Story::new();
    story.see(0, Outcome::Closed);
    let second = story.start("wechat");
    story.see(second, paid("T1"));
    // The channel's transaction, matched by an old reference of the same account: it is in the books already.
    story.see(0, paid("T1"));
    assert_eq!((story.payment.status, story.payment.surpluses.len(), story.payment.refunds.len()), (PaymentStatus::Paid, 0, 0));
    story.see(0, paid("T2"));
    assert_eq!(story.payment.surpluses.len(), 1, "other money is other money");
}

#[test]
fn money_reserved_where_nobody_wants_it_is_shown_to_a_person_once() {
    let mut story = Story::new();
    story.see(0, Outcome::Closed);
    story.see(0, authorized("A1"));
    assert_eq!((story.payment.status, story.told(EventKind::Review)), (PaymentStatus::Review, 1));
    // The same on an attempt that was released for another.
    let mut story = Story::new();
    let second = story.force("alipay");
    story.see(0, authorized("A1"));
    assert_eq!(story.payment.review.as_ref().map(|review| review.code.as_str()), Some("unexpected_outcome"));
    assert_eq!(story.payment.live().map(|attempt| attempt.n), Some(second as u32 + 1));
}

#[test]
fn money_that_comes_while_a_person_has_to_look_is_told_then_and_not_again_when_the_review_ends() {
    let mut story = Story::new();
    story.step(|draft| draft.after.review = Some(Review { code: "unexpected_outcome".to_owned(), detail: "x".to_owned() }));
    story.see(0, paid("T1"));
    assert_eq!(kinds(&story), ["payment.review", "payment.paid"]);
    assert_eq!(story.payment.status, PaymentStatus::Review);
    story.step(|draft| draft.after.review = None);
    assert_eq!((story.payment.status, kinds(&story)), (PaymentStatus::Paid, vec!["payment.review", "payment.paid"]));
}

#[test]
fn an_altered_or_removed_timeline_entry_shows() {
    let mut story = Story::paid();
    story.see(0, paid("T2"));
    let id = story.payment.id.clone();
    let whole = |entries: &[AuditEntry]| {
        let mut prev = [0; 32];
        entries.iter().all(|entry| {
            let fits = entry.prev == prev && entry.hash == entry.expected_hash(&id);
            prev = entry.hash;
            fits
        }) && prev == story.payment.audit_head
    };
    assert!(whole(&story.timeline));
    for n in 0..story.timeline.len() {
        let mut without = story.timeline.clone();
        without.remove(n);
        assert!(!whole(&without), "entry {n} is gone");
        let alterations: [fn(&mut AuditEntry); 7] = [
            |entry| entry.n += 1,
            |entry| entry.at.0 += 1,
            |entry| entry.kind.push('x'),
            |entry| entry.source = if entry.source.is_none() { Some(Source::Operator) } else { None },
            |entry| entry.detail = serde_json::json!({ "forged": true }),
            |entry| entry.prev[0] ^= 1,
            |entry| entry.hash[0] ^= 1,
        ];
        for (which, alter) in alterations.iter().enumerate() {
            let mut altered = story.timeline.clone();
            alter(&mut altered[n]);
            assert!(!whole(&altered), "entry {n} was altered ({which})");
            // Its own hash made to fit again, the next one tells.
            altered[n].hash = altered[n].expected_hash(&id);
            assert!(which == 6 || !whole(&altered), "entry {n} was forged ({which})");
        }
    }
    // The hash before is part of the hash: what follows a forged entry cannot stay as it is.
    let mut forged = story.timeline[1].clone();
    forged.prev[0] ^= 1;
    assert_ne!(forged.expected_hash(&id), forged.hash);
}

#[test]
fn the_channel_s_word_after_an_operator_s_is_about_the_same_money() {
    let mut story = Story::new();
    story.see(0, Outcome::Unknown(String::new()));
    let seen = Observation {
        attempt: story.payment.attempts[0].id.clone(),
        outcome: paid(&format!("{OPERATOR_TXN}{}", story.payment.attempts[0].id)),
        source: Source::Operator,
        action: None,
    };
    story.step(|draft| observe(draft, &seen, SurplusPolicy::Refund));
    story.see(0, paid("T1"));
    assert_eq!((story.payment.surpluses.len(), story.payment.refunds.len()), (0, 0), "it was refunded as a surplus");
    assert_eq!(story.payment.attempts[0].channel_txn.as_deref(), Some("T1"));
    story.see(0, paid("T2"));
    assert_eq!(story.payment.surpluses.len(), 1, "other money is other money");
}
