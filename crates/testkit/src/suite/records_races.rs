//! The guard's table under concurrent callers on two handles.

use std::sync::Arc;
use std::time::Duration;

use payonce_core::ports::records::{NewClaim, Seen, Verb, Write, Written};
use payonce_core::record::{Fence, RecordState};

use super::records::{LEASE, row, take_over, verb, won, write_one};
use super::{Fixture, at_once};
use crate::build::{Build, sealed, tenant};

const DAY: Duration = Duration::from_secs(24 * 3600);

pub async fn b012_one_of_64_wins_a_key<F: Fixture>(fixture: &F) {
    let build = Build::new(30);
    let claims: Arc<Vec<NewClaim>> = Arc::new((0..64).map(|_| build.claim(&tenant("m1"), "k")).collect());
    let tried = claims.clone();
    let seen = at_once(fixture, 64, move |n, store| {
        let claim = tried[n].clone();
        async move { store.claim(&[claim]).await.expect("claim").pop().expect("one") }
    })
    .await;
    let winners: Vec<usize> = (0..64).filter(|n| matches!(seen[*n], Seen::Won { .. })).collect();
    assert_eq!(winners.len(), 1, "{winners:?}");
    for seen in &seen {
        if let Seen::Found { record, .. } = seen {
            assert_eq!((record.claim_id, record.fence, record.state), (claims[winners[0]].claim_id, Fence(1), RecordState::Running));
        }
    }
}

pub async fn b029_one_of_ten_reuses_an_expired_answer<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(31));
    let first = build.claim(&tenant("m1"), "k");
    won(&store, &first).await;
    write_one(&store, verb(&first, Fence(1), Verb::Keep(sealed("old")))).await;
    fixture.advance(DAY + Duration::from_secs(1));
    let seen = row(&store, &first.key).await.expect("the row");
    let claims: Arc<Vec<NewClaim>> = Arc::new((0..10).map(|_| build.claim(&tenant("m1"), "k")).collect());
    let tried = claims.clone();
    let fences = at_once(fixture, 10, move |n, store| {
        let row = take_over(&seen, &tried[n]);
        async move { store.take_over(&row).await.expect("take over") }
    })
    .await;
    let winners: Vec<usize> = (0..10).filter(|n| fences[*n].is_some()).collect();
    assert_eq!((winners.len(), fences[winners[0]]), (1, Some(Fence(2))));
    let now_there = row(&store, &first.key).await.expect("the row");
    assert_eq!((now_there.claim_id, now_there.state), (claims[winners[0]].claim_id, RecordState::Running));
}

pub async fn one_of_64_takes_a_lapsed_row_over<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(32));
    let first = build.claim(&tenant("m1"), "k");
    won(&store, &first).await;
    fixture.advance(LEASE + Duration::from_secs(1));
    let seen = row(&store, &first.key).await.expect("the row");
    let takers: Arc<Vec<NewClaim>> = Arc::new((0..64).map(|_| build.claim(&tenant("m1"), "k")).collect());
    let fences = at_once(fixture, 64, move |n, store| {
        let row = take_over(&seen, &takers[n]);
        async move { store.take_over(&row).await.expect("take over") }
    })
    .await;
    assert_eq!(fences.iter().flatten().collect::<Vec<_>>(), [&Fence(2)]);
}

pub async fn a_keep_and_a_takeover_never_both_land<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(33));
    for round in 0..24 {
        let first = build.claim(&tenant("m1"), &format!("k{round}"));
        won(&store, &first).await;
        fixture.advance(LEASE + Duration::from_secs(1));
        let seen = row(&store, &first.key).await.expect("the row");
        let next = build.claim(&tenant("m1"), &format!("k{round}"));
        let (takeover, keep) = (take_over(&seen, &next), verb(&first, Fence(1), Verb::Keep(sealed("done"))));
        let landed = at_once(fixture, 2, move |n, store| {
            let (takeover, keep) = (takeover.clone(), keep.clone());
            async move {
                if n == round % 2 {
                    store.take_over(&takeover).await.expect("take over").is_some()
                } else {
                    store.write(&[keep]).await.expect("write") == [Written::Applied]
                }
            }
        })
        .await;
        assert_ne!(landed[0], landed[1], "exactly one of them met the row");
        let state = row(&store, &first.key).await.expect("the row").state;
        assert_eq!(state, if landed[round % 2] { RecordState::Running } else { RecordState::Answered });
    }
}

pub async fn b036_batches_in_opposite_orders_do_not_wedge<F: Fixture>(fixture: &F) {
    let build = Build::new(34);
    let batches: Arc<Vec<Vec<NewClaim>>> = Arc::new(
        (0..8)
            .map(|n| {
                let mut batch: Vec<NewClaim> = (0..40).map(|key| build.claim(&tenant("m1"), &format!("k{key}"))).collect();
                if n % 2 == 1 {
                    batch.reverse();
                }
                batch
            })
            .collect(),
    );
    let tried = batches.clone();
    let seen = at_once(fixture, 8, move |n, store| {
        let batch = tried[n].clone();
        async move { store.claim(&batch).await.expect("claims lock in key order") }
    })
    .await;
    let mut held: Vec<NewClaim> = Vec::new();
    for (n, seen) in seen.iter().enumerate() {
        assert_eq!(seen.len(), 40);
        held.extend(seen.iter().zip(&batches[n]).filter(|(seen, _)| matches!(seen, Seen::Won { .. })).map(|(_, claim)| claim.clone()));
    }
    assert_eq!(held.len(), 40, "each key has one winner");
    // Renewals of all rows from all sides, in both orders.
    let held = Arc::new(held);
    let written = at_once(fixture, 8, move |n, store| {
        let mut writes: Vec<Write> = held.iter().map(|claim| verb(claim, Fence(1), Verb::Renew(LEASE))).collect();
        if n % 2 == 1 {
            writes.reverse();
        }
        async move { store.write(&writes).await.expect("writes lock in key order") }
    })
    .await;
    assert!(written.iter().flatten().all(|written| *written == Written::Applied));
}
