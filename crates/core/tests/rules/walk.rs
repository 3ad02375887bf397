//! Random walks: observations of all kinds, repeated, out of order, of other transactions and amounts. The invariants are in [`crate::story`].

use payonce_core::attempt::AttemptStatus;
use payonce_core::money::{Currency, Money};
use payonce_core::notification::RefundFact;
use payonce_core::outcome::{Outcome, RefundOutcome, Taken};
use payonce_core::payment::refunds::RefundSeen;
use payonce_core::payment::{Payment, PaymentStatus, SurplusPolicy};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use crate::story::{Story, cny, no};

/// Failing seeds are written beside this file and are run first from then on.
pub(crate) fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 512,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/rules/regressions.txt"))),
        ..ProptestConfig::default()
    }
}

/// One thing that happens to a payment. Indices are taken modulo what is there.
#[derive(Clone, Debug)]
enum Step {
    /// An outcome on some attempt.
    See { attempt: usize, outcome: Outcome },
    /// A new attempt, if the rules allow one.
    Start,
    /// A new attempt at the merchant's risk.
    Force,
    /// The merchant asks for a refund.
    Refund { number: u8, minor: i64 },
    /// An outcome of some refund.
    SeeRefund { refund: usize, outcome: RefundOutcome, first_send: bool },
    /// A notification of a refund.
    Notice { attempt: usize, name: Name, figures: Figures, status: RefundFact },
    /// An operator ends a review.
    EndReview,
}

#[derive(Clone, Debug)]
enum Name {
    Ours(usize),
    Console(u8),
    ChannelId(u8),
    None,
}

#[derive(Clone, Debug)]
enum Figures {
    Amount(i64),
    Total(i64),
    Both(i64, i64),
    OtherCurrency(i64),
    None,
}

fn taken() -> impl Strategy<Value = Taken> {
    let amount = prop_oneof![
        6 => Just(Some(cny(10_000))),
        1 => Just(None),
        1 => Just(Some(cny(9_999))),
        1 => Just(Some(cny(1))),
        1 => Just(Some(Money::new(10_000, Currency::parse("JPY").expect("a currency")))),
    ];
    (0u8..4, amount).prop_map(|(txn, amount)| Taken { txn: format!("T{txn}"), amount, at: None })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        4 => taken().prop_map(Outcome::Paid),
        2 => taken().prop_map(Outcome::Authorized),
        1 => (0u8..4).prop_map(|txn| Outcome::Waiting { action: None, txn: Some(format!("T{txn}")) }),
        1 => Just(Outcome::Waiting { action: None, txn: None }),
        2 => Just(Outcome::Declined(no())),
        1 => Just(Outcome::DeclinedOpen(no())),
        2 => Just(Outcome::Closed),
        1 => Just(Outcome::AbsentFinal),
        1 => Just(Outcome::AbsentYet),
        1 => Just(Outcome::NotAccepted(no())),
        1 => Just(Outcome::NotSent(String::new())),
        1 => Just(Outcome::InProgress),
        1 => Just(Outcome::Unknown(String::new())),
    ]
}

fn refund_outcome() -> impl Strategy<Value = RefundOutcome> {
    prop_oneof![
        3 => prop::option::of(0u8..3).prop_map(|id| RefundOutcome::Succeeded { channel_refund_id: id.map(|id| format!("re_{id}")) }),
        2 => Just(RefundOutcome::Failed(no())),
        1 => Just(RefundOutcome::Processing),
        1 => Just(RefundOutcome::Absent),
        1 => Just(RefundOutcome::NotAccepted(no())),
        1 => Just(RefundOutcome::NotSent(String::new())),
        1 => Just(RefundOutcome::InProgress),
        1 => Just(RefundOutcome::Unknown(String::new())),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let name = prop_oneof![
        (0usize..4).prop_map(Name::Ours),
        (0u8..3).prop_map(Name::Console),
        (0u8..3).prop_map(Name::ChannelId),
        Just(Name::None)
    ];
    let minor = || prop_oneof![1i64..12_000, Just(10_000), Just(3_000), Just(0)];
    let figures = prop_oneof![
        minor().prop_map(Figures::Amount),
        minor().prop_map(Figures::Total),
        (minor(), minor()).prop_map(|(own, total)| Figures::Both(own, total)),
        minor().prop_map(Figures::OtherCurrency),
        Just(Figures::None)
    ];
    let status = prop_oneof![
        3 => Just(RefundFact::Succeeded),
        1 => Just(RefundFact::Processing),
        1 => Just(RefundFact::Failed { channel_code: "X".to_owned() })
    ];
    prop_oneof![
        8 => (0usize..4, outcome()).prop_map(|(attempt, outcome)| Step::See { attempt, outcome }),
        3 => Just(Step::Start),
        1 => Just(Step::Force),
        3 => (0u8..5, prop_oneof![1i64..12_000, Just(3_000)]).prop_map(|(number, minor)| Step::Refund { number, minor }),
        4 => (0usize..6, refund_outcome(), any::<bool>())
            .prop_map(|(refund, outcome, first_send)| Step::SeeRefund { refund, outcome, first_send }),
        3 => (0usize..4, name, figures, status)
            .prop_map(|(attempt, name, figures, status)| Step::Notice { attempt, name, figures, status }),
        1 => Just(Step::EndReview),
    ]
}

/// A walk, some of whose steps come again later, as duplicates and late messages do.
fn walk() -> impl Strategy<Value = Vec<Step>> {
    let repeats = prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..10);
    (prop::collection::vec(step(), 1..40), repeats).prop_map(|(mut steps, repeats)| {
        for (what, whereto) in repeats {
            let again = steps[what.index(steps.len())].clone();
            let place = whereto.index(steps.len() + 1);
            steps.insert(place, again);
        }
        steps
    })
}

fn take(story: &mut Story, step: &Step) {
    match step {
        Step::See { attempt, outcome } => {
            let index = attempt % story.payment.attempts.len();
            let was = story.payment.attempts[index].status;
            story.see(index, outcome.clone());
            assert_fits(&story.payment, index, was, outcome);
        }
        Step::Start => {
            if story.may_start() && story.payment.attempts.len() < 5 {
                story.start("alipay");
            }
        }
        Step::Force => {
            if story.payment.paid_attempt().is_none() && story.payment.attempts.len() < 5 {
                story.force("stripe");
            }
        }
        Step::Refund { number, minor } => {
            // Refused or made: what must hold is asserted where it is reserved.
            let _ = story.refund(&format!("r{number}"), *minor);
        }
        Step::SeeRefund { refund, outcome, first_send } => {
            let row = story.payment.refunds.get(refund % story.payment.refunds.len().max(1)).map(|row| row.id.clone());
            if let Some(id) = row {
                story.see_refund(&id, outcome, *first_send);
            }
        }
        Step::Notice { attempt, name, figures, status } => {
            let index = attempt % story.payment.attempts.len();
            let ours = match name {
                Name::Ours(n) => story.payment.refunds.get(*n).map(|row| row.channel_ref.as_str().to_owned()),
                Name::Console(n) => Some(format!("console-{n}")),
                Name::ChannelId(_) | Name::None => None,
            };
            let id = match name {
                Name::ChannelId(n) => Some(format!("re_{n}")),
                Name::Ours(_) | Name::Console(_) | Name::None => None,
            };
            let yen = Currency::parse("JPY").expect("a currency");
            let (amount, total) = match figures {
                Figures::Amount(own) => (Some(cny(*own)), None),
                Figures::Total(total) => (None, Some(cny(*total))),
                Figures::Both(own, total) => (Some(cny(*own)), Some(cny(*total))),
                Figures::OtherCurrency(own) => (Some(Money::new(*own, yen)), None),
                Figures::None => (None, None),
            };
            let refs = (ours.as_deref(), id.as_deref());
            story.notice(index, &RefundSeen { refund_ref: refs.0, channel_refund_id: refs.1, amount, total, status });
        }
        Step::EndReview => {
            // An operator who leaves an overlap open would break what the walk asserts of overlaps, so this one does not.
            if !story.payment.is_over_refunded() {
                story.step(|draft| draft.after.review = None);
            }
        }
    }
}

/// Money of another amount or currency is never taken as the payment, and is never lost from sight (I6, I9).
fn assert_fits(payment: &Payment, index: usize, was: AttemptStatus, outcome: &Outcome) {
    let attempt = &payment.attempts[index];
    let Outcome::Paid(taken) = outcome else {
        assert!(was == AttemptStatus::Succeeded || attempt.status != AttemptStatus::Succeeded, "paid without a word of money");
        return;
    };
    if taken.amount.is_some_and(|told| told != attempt.amount) {
        assert_eq!(attempt.status, was, "a mismatch moved the attempt");
        assert_eq!(payment.status, PaymentStatus::Review);
        return;
    }
    let counted = payment.attempts.iter().any(|row| {
        row.status == AttemptStatus::Succeeded && row.account == attempt.account && row.channel_txn.as_ref() == Some(&taken.txn)
    });
    let beside = payment.surpluses.iter().any(|row| row.account == attempt.account && row.channel_txn == taken.txn);
    assert!(counted != beside, "the money is neither paid nor surplus, or both: {taken:?}");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_invariants_hold_on_every_walk(steps in walk(), hold: bool) {
        let mut story = Story::under(if hold { SurplusPolicy::Hold } else { SurplusPolicy::Refund });
        for step in &steps {
            take(&mut story, step);
        }
    }

    /// One attempt, no switch: whatever else is said and in whatever order, the right money that was told is there in the end.
    #[test]
    fn money_that_was_told_is_there_in_the_end(outcomes in prop::collection::vec(outcome(), 0..20), at in any::<prop::sample::Index>()) {
        let mut story = Story::new();
        let at = at.index(outcomes.len() + 1);
        for (n, outcome) in outcomes.iter().enumerate() {
            if n == at {
                story.see(0, crate::story::paid("THE-MONEY"));
            }
            story.see(0, outcome.clone());
        }
        if at == outcomes.len() {
            story.see(0, crate::story::paid("THE-MONEY"));
        }
        let counted = story.payment.attempts[0].channel_txn.as_deref() == Some("THE-MONEY") && story.payment.paid_attempt().is_some();
        let beside = story.payment.surpluses.iter().any(|row| row.channel_txn == "THE-MONEY");
        prop_assert!(counted != beside);
    }
}
