//! Cases of refunds at the level of the rules: reserved first, counted once, told once (I7).

use payonce_core::event::EventKind;
use payonce_core::money::Money;
use payonce_core::notification::RefundFact;
use payonce_core::outcome::{Outcome, RefundOutcome};
use payonce_core::payment::refunds::{FAILED_AFTER_SUCCESS, RefundRefusal, RefundSeen};
use payonce_core::payment::{PaymentStatus, SurplusPolicy};
use payonce_core::refund::{Origin, RefundOf, RefundStatus};

use crate::story::{Story, cny, no, paid, refunded};

/// A notification that names a refund, with its own amount.
fn named<'a>(name: &'a str, minor: i64, status: &'a RefundFact) -> RefundSeen<'a> {
    RefundSeen { refund_ref: Some(name), channel_refund_id: None, amount: Some(cny(minor)), total: None, status }
}

/// A notification that tells the running total only.
fn total<'a>(name: Option<&'a str>, minor: i64) -> RefundSeen<'a> {
    RefundSeen { refund_ref: name, channel_refund_id: None, amount: None, total: Some(cny(minor)), status: &RefundFact::Succeeded }
}

fn abnormal() -> RefundFact {
    RefundFact::Failed { channel_code: "ABNORMAL".to_owned() }
}

#[test]
fn b022_two_honest_partial_refunds_of_the_same_amount() {
    let mut story = Story::paid();
    let [r1, r2] = ["r1", "r2"].map(|number| story.refund(number, 3_000).expect("free"));
    assert_ne!(story.refund_row(&r1).channel_ref, story.refund_row(&r2).channel_ref);
    for id in [&r1, &r2] {
        story.see_refund(id, &refunded(), true);
    }
    assert_eq!((story.refund("r1", 3_000), story.refund("r2", 3_000)), (Ok(r1.clone()), Ok(r2)), "repeats name what is there");
    assert_eq!(story.refund("r1", 3_001), Err(RefundRefusal::Conflict(r1)));
    assert_eq!((story.payment.refunded(), story.payment.refundable(), story.told(EventKind::RefundSucceeded)), (cny(6_000), cny(4_000), 2));
    assert_eq!(story.payment.status, PaymentStatus::Paid);
}

#[test]
fn b024_every_refund_has_its_own_number_and_a_repeat_is_not_booked_again() {
    let mut story = Story::paid();
    let r1 = story.refund("r1", 3_000).expect("free");
    let r2 = story.refund("r2", 4_000).expect("free");
    let attempt_ref = story.payment.attempts[0].channel_ref.clone();
    assert!([&r1, &r2].iter().all(|id| story.refund_row(id).channel_ref != attempt_ref), "never the order's own number");
    for id in [&r1, &r2, &r1, &r1] {
        // A repeat is answered with success and fund_change=N.
        story.see_refund(id, &refunded(), false);
    }
    assert_eq!(story.payment.refunded(), cny(7_000));
}

#[test]
fn b051_alipay_refund_notices_carry_the_payment_s_numbers_and_a_running_total() {
    // Both are ours.
    let mut story = Story::paid();
    let [r1, r2] = [("r1", 3_000), ("r2", 2_000)].map(|(number, minor)| story.refund(number, minor).expect("free"));
    for (id, minor) in [(&r1, 3_000), (&r2, 5_000)] {
        let name = story.refund_row(id).channel_ref.clone();
        story.notice(0, &total(Some(name.as_str()), minor));
    }
    assert_eq!((story.payment.refunded(), story.payment.refunds.len(), story.told(EventKind::Paid)), (cny(5_000), 2, 1));
    // Neither is: booked by what the total adds.
    for order in [[("c1", 3_000), ("c2", 5_000)], [("c2", 5_000), ("c1", 3_000)]] {
        let mut story = Story::paid();
        for (name, minor) in order {
            story.notice(0, &total(Some(name), minor));
        }
        assert_eq!(story.payment.refunded(), cny(5_000), "{order:?}");
        assert_eq!((story.payment.status, story.told(EventKind::Paid)), (PaymentStatus::Paid, 1));
    }
}

#[test]
fn b053_a_refund_result_that_shares_the_transaction_id_is_a_refund() {
    let mut story = Story::paid();
    let r1 = story.refund("r1", 3_000).expect("free");
    let r2 = story.refund("r2", 2_000).expect("free");
    let refs = [&r1, &r2].map(|id| story.refund_row(id).channel_ref.as_str().to_owned());
    for index in [0, 1, 0] {
        story.notice(0, &named(&refs[index], [3_000, 2_000][index], &RefundFact::Succeeded));
    }
    assert_eq!((story.payment.refunded(), story.told(EventKind::RefundSucceeded), story.told(EventKind::Paid)), (cny(5_000), 2, 1));
    let r3 = story.refund("r3", 1_000).expect("free");
    let name = story.refund_row(&r3).channel_ref.as_str().to_owned();
    story.notice(0, &named(&name, 1_000, &abnormal()));
    assert_eq!(story.refund_row(&r3).status, RefundStatus::Failed);
    assert_eq!(
        (story.payment.status, story.payment.refundable()),
        (PaymentStatus::Paid, cny(5_000)),
        "the refund changes, not the payment"
    );
}

#[test]
fn b044_a_refund_notice_before_the_call_s_own_answer() {
    let mut story = Story::paid();
    let r1 = story.refund("r1", 3_000).expect("free");
    let name = story.refund_row(&r1).channel_ref.as_str().to_owned();
    story.notice(0, &named(&name, 3_000, &RefundFact::Succeeded));
    story.see_refund(&r1, &RefundOutcome::Processing, true);
    story.notice(0, &named(&name, 3_000, &RefundFact::Processing));
    assert_eq!((story.refund_row(&r1).status, story.payment.refunds.len()), (RefundStatus::Succeeded, 1));
    assert_eq!(story.told(EventKind::RefundSucceeded), 1);
}

#[test]
fn b078_two_refunds_never_exceed_the_payment() {
    let mut story = Story::paid();
    let r1 = story.refund("r1", 6_000).expect("free");
    assert_eq!(story.refund("r2", 6_000), Err(RefundRefusal::Exceeds { left: cny(4_000) }));
    story.see_refund(&r1, &RefundOutcome::Unknown("timeout".to_owned()), true);
    assert_eq!(story.refund("r2", 6_000), Err(RefundRefusal::Exceeds { left: cny(4_000) }), "an unknown one keeps its reservation");
    story.see_refund(&r1, &refunded(), false);
    assert_eq!(story.refund("r2", 4_001), Err(RefundRefusal::Exceeds { left: cny(4_000) }));
    assert!(story.refund("r2", 4_000).is_ok());
    assert_eq!(story.payment.refundable(), cny(0));
    assert_eq!(Story::new().refund("r1", 1), Err(RefundRefusal::NotPaid));
}

#[test]
fn b079_our_refund_is_counted_once_and_the_console_s_is_added_once() {
    let mut story = Story::paid();
    let r1 = story.refund("r1", 3_000).expect("free");
    story.see_refund(&r1, &refunded(), true);
    let name = story.refund_row(&r1).channel_ref.as_str().to_owned();
    // The channel tells the full list each time.
    for _ in 0..2 {
        story.notice(0, &named(&name, 3_000, &RefundFact::Succeeded));
        story.notice(0, &named("console-1", 2_000, &RefundFact::Succeeded));
    }
    assert_eq!((story.payment.refunded(), story.payment.refundable(), story.payment.refunds.len()), (cny(5_000), cny(5_000), 2));
    let console = story.payment.refunds.iter().find(|refund| refund.origin == Origin::Observed).expect("it is booked");
    assert_eq!((console.amount, &console.of, &console.refund_id), (cny(2_000), &RefundOf::Payment, &None));
    assert_eq!(story.told(EventKind::RefundSucceeded), 2);
}

#[test]
fn a_console_refund_that_overlaps_ours_is_booked_and_shown_to_a_person() {
    let mut story = Story::paid();
    let r1 = story.refund("r1", 8_000).expect("free");
    story.notice(0, &named("console-1", 5_000, &RefundFact::Succeeded));
    assert_eq!(story.payment.review.as_ref().map(|review| review.code.as_str()), Some("refund_overlap"));
    story.see_refund(&r1, &refunded(), false);
    assert_eq!((story.payment.refunded(), story.payment.refundable()), (cny(13_000), cny(0)), "the books say what happened");
    assert!(story.payment.paid_attempt().is_some());
}

#[test]
fn a_refund_that_goes_through_after_it_had_failed_is_booked_and_an_overlap_shown() {
    for (again, overlap) in [(10_000, true), (4_000, false)] {
        let mut story = Story::paid();
        let r1 = story.refund("r1", 6_000).expect("free");
        story.see_refund(&r1, &RefundOutcome::Failed(no()), false);
        let r2 = story.refund("r2", again).expect("the reservation was released");
        story.see_refund(&r1, &refunded(), false);
        assert_eq!((story.refund_row(&r1).status, story.refund_row(&r2).status), (RefundStatus::Succeeded, RefundStatus::Pending));
        assert_eq!(story.payment.review.as_ref().map(|review| review.code.as_str()), overlap.then_some("refund_overlap"));
        assert_eq!((story.payment.refundable(), story.told(EventKind::RefundSucceeded)), (cny(0), 1));
    }
}

#[test]
fn a_surplus_that_may_have_gone_back_twice_is_shown_to_a_person() {
    let mut story = Story::new();
    let second = story.force("alipay");
    story.see(second, paid("A"));
    story.see(0, paid("B"));
    // Ours has left this machine: it is not given up, and both may have gone through.
    let ours = story.payment.refunds[0].id.clone();
    story.step(|draft| {
        let lease = draft.after.attempts[0].send.clone();
        draft.after.refunds[0].send = lease;
        draft.note("sending", None, serde_json::json!({}));
    });
    story.notice(0, &named("console-1", 10_000, &RefundFact::Succeeded));
    assert_eq!((story.refund_row(&ours).status, story.payment.refunds.len()), (RefundStatus::Pending, 2));
    assert_eq!(story.payment.review.as_ref().map(|review| review.code.as_str()), Some("refund_overlap"));
    assert_eq!(story.payment.refundable(), cny(10_000), "the order's own money is not touched");
}

#[test]
fn a_refund_notice_before_the_payment_s_own_is_settled_by_the_money() {
    let mut story = Story::new();
    story.notice(0, &named("console-1", 2_000, &RefundFact::Succeeded));
    assert_eq!(story.payment.status, PaymentStatus::Review);
    story.see(0, paid("T1"));
    assert_eq!((story.payment.status, story.payment.refunded(), story.told(EventKind::Paid)), (PaymentStatus::Paid, cny(2_000), 1));
}

#[test]
fn b080_a_refund_while_another_is_pending() {
    let mut story = Story::paid();
    let r1 = story.refund("r1", 10_000).expect("free");
    story.see_refund(&r1, &RefundOutcome::Processing, true);
    assert_eq!(story.refund("r2", 10_000), Err(RefundRefusal::Exceeds { left: cny(0) }));
    // Two finalising jobs at once: the second meets what the first one stored.
    story.see_refund(&r1, &refunded(), false);
    story.see_refund(&r1, &refunded(), false);
    assert_eq!((story.payment.refunded(), story.told(EventKind::RefundSucceeded)), (cny(10_000), 1));
}

#[test]
fn b081_a_refund_that_was_accepted_and_fails_later() {
    let mut story = Story::paid();
    let r1 = story.refund("r1", 3_000).expect("free");
    story.see_refund(&r1, &RefundOutcome::Processing, true);
    assert_eq!((story.refund_row(&r1).status, story.payment.refundable()), (RefundStatus::Pending, cny(7_000)));
    let name = story.refund_row(&r1).channel_ref.as_str().to_owned();
    story.notice(0, &named(&name, 3_000, &abnormal()));
    assert_eq!((story.refund_row(&r1).status, story.payment.refundable()), (RefundStatus::Failed, cny(10_000)));
    assert_eq!(story.refund_row(&r1).failure.as_ref().and_then(|failure| failure.channel_code.as_deref()), Some("ABNORMAL"));
    assert_eq!((story.told(EventKind::RefundFailed), story.told(EventKind::RefundSucceeded)), (1, 0));
    assert_eq!(story.refund_row(&r1).due_at, None, "it is never sent again");
}

#[test]
fn a_refund_that_went_through_and_failed_is_told_so_and_turned_over_no_further() {
    let mut story = Story::paid();
    let r1 = story.refund("r1", 3_000).expect("free");
    story.see_refund(&r1, &refunded(), true);
    story.see_refund(&r1, &RefundOutcome::Failed(no()), false);
    assert_eq!((story.refund_row(&r1).status, story.payment.refundable()), (RefundStatus::Failed, cny(10_000)));
    assert_eq!(story.refund_row(&r1).failure.as_ref().map(|failure| failure.code.as_str()), Some(FAILED_AFTER_SUCCESS));
    // A late copy of the first word, or the truth: nobody can tell, so it is booked, and a person looks.
    story.see_refund(&r1, &refunded(), false);
    assert_eq!((story.refund_row(&r1).status, story.payment.refundable()), (RefundStatus::Succeeded, cny(7_000)));
    assert_eq!(story.payment.review.as_ref().map(|review| review.code.as_str()), Some("refund_contradicted"));
    story.see_refund(&r1, &RefundOutcome::Failed(no()), false);
    assert_eq!(story.refund_row(&r1).status, RefundStatus::Succeeded);
    assert_eq!((story.told(EventKind::RefundSucceeded), story.told(EventKind::RefundFailed), story.told(EventKind::Review)), (1, 1, 1));
}

#[test]
fn b082_refunding_the_surplus_leaves_the_order_paid() {
    for policy in [SurplusPolicy::Refund, SurplusPolicy::Hold] {
        let mut story = Story::under(policy);
        let second = story.force("alipay");
        story.see(second, paid("A"));
        story.see(0, paid("B"));
        story.notice(0, &named("console-1", 10_000, &RefundFact::Succeeded));
        assert_eq!(
            (story.payment.status, story.payment.refunded(), story.payment.refundable()),
            (PaymentStatus::Paid, cny(0), cny(10_000))
        );
        let of = RefundOf::Surplus(story.payment.surpluses[0].id.clone());
        let back: Vec<_> = story.payment.refunds.iter().filter(|refund| refund.of == of && refund.status != RefundStatus::Failed).collect();
        assert_eq!(back.len(), 1, "{policy:?}: ours, of which no byte was sent, is given up");
        assert_eq!((back[0].origin, back[0].status), (Origin::Observed, RefundStatus::Succeeded));
    }
}

#[test]
fn b083_a_definitely_failed_refund_can_be_made_again_and_an_unknown_one_cannot() {
    let mut story = Story::paid();
    let r1 = story.refund("r1", 10_000).expect("free");
    story.see_refund(&r1, &RefundOutcome::Unknown("timeout".to_owned()), true);
    assert_eq!(story.refund("r2", 10_000), Err(RefundRefusal::Exceeds { left: cny(0) }));
    // A repeat that is refused says nothing of the first.
    story.see_refund(&r1, &RefundOutcome::NotAccepted(no()), false);
    assert_eq!(story.refund_row(&r1).status, RefundStatus::Unknown);
    story.see_refund(&r1, &RefundOutcome::Failed(no()), false);
    assert_eq!(story.refund("r1", 10_000), Ok(r1), "the same number names the failed one");
    assert!(story.refund("r2", 10_000).is_ok());
}

#[test]
fn figures_that_do_not_fit_are_never_booked() {
    let yen = Money::new(3_000, payonce_core::Currency::parse("JPY").expect("a currency"));
    let mut story = Story::paid();
    let r1 = story.refund("r1", 3_000).expect("free");
    let name = story.refund_row(&r1).channel_ref.as_str().to_owned();
    story.notice(0, &named(&name, 2_000, &RefundFact::Succeeded));
    assert_eq!((story.refund_row(&r1).status, story.payment.refunded()), (RefundStatus::Pending, cny(0)));
    assert_eq!(story.payment.review.as_ref().map(|review| review.code.as_str()), Some("amount_mismatch"));
    for (own, sum) in [(Some(yen), None), (None, Some(yen))] {
        let mut story = Story::paid();
        let seen = RefundSeen { refund_ref: Some("c1"), channel_refund_id: None, amount: own, total: sum, status: &RefundFact::Succeeded };
        story.notice(0, &seen);
        assert_eq!((story.payment.refunds.len(), story.payment.status), (0, PaymentStatus::Review));
    }
}

#[test]
fn a_refund_on_a_closed_attempt_with_no_money_is_booked_and_shown() {
    let mut story = Story::new();
    story.see(0, Outcome::Closed);
    story.notice(0, &named("c1", 10_000, &RefundFact::Succeeded));
    assert_eq!((story.payment.status, story.payment.refunds.len()), (PaymentStatus::Review, 1));
}
