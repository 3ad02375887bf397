//! Running totals: whatever the order in which they are delivered, the local sum ends as the channel's.

use payonce_core::notification::RefundFact;
use payonce_core::payment::PaymentStatus;
use payonce_core::payment::refunds::RefundSeen;
use proptest::prelude::*;

use crate::story::{Story, cny, refunded};
use crate::walk::config;

/// A refund that the channel executed.
#[derive(Clone, Debug)]
struct Executed {
    minor: i64,
    /// Ours, or made at the channel's console.
    ours: bool,
    /// Whether the console's refund has a name in its message.
    named: bool,
}

fn executed() -> impl Strategy<Value = Executed> {
    (1i64..2_000, any::<bool>(), any::<bool>()).prop_map(|(minor, ours, named)| Executed { minor, ours, named })
}

proptest! {
    #![proptest_config(config())]

    /// B051, B079: each message tells the total of the moment at which its refund was executed; all are delivered in any order, some twice,
    /// with our own answers in between, and once more at the end.
    #[test]
    fn b079_the_local_sum_ends_as_the_channel_s(
        truth in prop::collection::vec(executed(), 1..6),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        answers in prop::collection::vec(any::<bool>(), 12),
    ) {
        let mut story = Story::paid();
        let mut names = Vec::new();
        for (n, refund) in truth.iter().enumerate() {
            names.push(if refund.ours {
                let id = story.refund(&format!("r{n}"), refund.minor).expect("there is enough");
                let name = story.refund_row(&id).channel_ref.as_str().to_owned();
                (Some(name), Some(id))
            } else {
                (refund.named.then(|| format!("console-{n}")), None)
            });
        }
        let totals: Vec<i64> = truth.iter().scan(0, |sum, refund| { *sum += refund.minor; Some(*sum) }).collect();
        let deliver = |story: &mut Story, n: usize| {
            let seen = RefundSeen {
                refund_ref: names[n].0.as_deref(),
                channel_refund_id: None,
                amount: None,
                total: Some(cny(totals[n])),
                status: &RefundFact::Succeeded,
            };
            story.notice(0, &seen);
            prop_assert!(story.payment.refunded().minor <= totals[truth.len() - 1], "more is booked than went back");
            Ok(())
        };
        for (index, answered) in order.iter().zip(&answers) {
            let n = index.index(truth.len());
            match &names[n].1 {
                Some(id) if *answered => story.see_refund(id, &refunded(), true),
                Some(_) | None => deliver(&mut story, n)?,
            }
        }
        for (_, id) in &names {
            if let Some(id) = id {
                story.see_refund(id, &refunded(), false);
            }
        }
        for n in 0..truth.len() {
            deliver(&mut story, n)?;
        }
        prop_assert_eq!(story.payment.refunded().minor, totals[truth.len() - 1]);
        prop_assert_eq!(story.payment.status, PaymentStatus::Paid);
    }

    /// The same with a name and an amount of its own in each message: order does not matter at all.
    #[test]
    fn b053_named_refunds_are_counted_once_each(
        amounts in prop::collection::vec(1i64..2_000, 1..6),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut story = Story::paid();
        let mut seen_of = std::collections::BTreeSet::new();
        for index in &order {
            let n = index.index(amounts.len());
            let name = format!("console-{n}");
            let seen = RefundSeen {
                refund_ref: Some(&name),
                channel_refund_id: None,
                amount: Some(cny(amounts[n])),
                total: None,
                status: &RefundFact::Succeeded,
            };
            story.notice(0, &seen);
            seen_of.insert(n);
        }
        let sum: i64 = seen_of.iter().map(|n| amounts[*n]).sum();
        prop_assert_eq!((story.payment.refunded().minor, story.payment.refunds.len()), (sum, seen_of.len()));
    }
}
