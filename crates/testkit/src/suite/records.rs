//! The guard's table, one claim after the other (I8).

use std::sync::Arc;
use std::time::Duration;

use payonce_core::clock::Timestamp;
use payonce_core::ports::Store;
use payonce_core::ports::records::{NewClaim, Seen, TakeOver, Verb, Write, Written};
use payonce_core::record::decision::{Decision, decide};
use payonce_core::record::{Fence, Record, RecordKey, RecordState};
use payonce_core::secret::Sealed;

use super::Fixture;
use crate::build::{Build, fingerprint, sealed, tenant};

/// The lease of a sample claim, and a little more.
pub(super) const LEASE: Duration = Duration::from_secs(60);
const PAST_LEASE: Duration = Duration::from_secs(61);
/// The life of a sample claim's answer, and a little more.
const PAST_TTL: Duration = Duration::from_secs(24 * 3600 + 1);

pub(super) async fn claim_one(store: &Arc<dyn Store>, claim: &NewClaim) -> Seen {
    let seen = store.claim(std::slice::from_ref(claim)).await.expect("claim");
    <[Seen; 1]>::try_from(seen).expect("one result for one row").into_iter().next().expect("one")
}

pub(super) async fn won(store: &Arc<dyn Store>, claim: &NewClaim) -> Fence {
    match claim_one(store, claim).await {
        Seen::Won { fence } => fence,
        Seen::Found { record, .. } => panic!("the row was to be absent: {record:?}"),
    }
}

async fn found(store: &Arc<dyn Store>, claim: &NewClaim) -> (Record, Timestamp) {
    match claim_one(store, claim).await {
        Seen::Won { .. } => panic!("the row was to be there"),
        Seen::Found { record, now } => (*record, now),
    }
}

pub(super) async fn row(store: &Arc<dyn Store>, key: &RecordKey) -> Option<Record> {
    let (mut rows, _) = store.read(std::slice::from_ref(key)).await.expect("read");
    assert_eq!(rows.len(), 1);
    rows.pop().flatten()
}

pub(super) fn verb(claim: &NewClaim, fence: Fence, verb: Verb) -> Write {
    Write { key: claim.key.clone(), claim_id: claim.claim_id, fence, verb }
}

pub(super) async fn write_one(store: &Arc<dyn Store>, row: Write) -> Written {
    let written = store.write(&[row]).await.expect("write");
    assert_eq!(written.len(), 1);
    written[0]
}

/// What a caller would send to take over what it saw.
pub(super) fn take_over(seen: &Record, new: &NewClaim) -> TakeOver {
    TakeOver {
        key: seen.key.clone(),
        seen_claim: seen.claim_id,
        seen_fence: seen.fence,
        seen_state: seen.state,
        claim_id: new.claim_id,
        fingerprint: new.fingerprint.clone(),
        lease: new.lease,
        ttl: (seen.state == RecordState::Answered).then_some(new.ttl),
    }
}

pub async fn a_claim_is_won_once_and_found_as_it_was_stored<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(1));
    let first = build.claim(&tenant("m1"), "k");
    assert_eq!(won(&store, &first).await, Fence(1));
    let second = build.claim(&tenant("m1"), "k");
    let (record, now) = found(&fixture.second(), &second).await;
    assert_eq!(record.key, first.key);
    assert_eq!(record.fingerprint, first.fingerprint);
    assert_eq!((record.claim_id, record.fence, record.state), (first.claim_id, Fence(1), RecordState::Running));
    assert_eq!(record.locked_until, record.created_at.plus(first.lease));
    assert_eq!(record.expires_at, record.created_at.plus(first.ttl));
    assert_eq!(record.answer, None);
    assert!(record.created_at <= now && now < record.locked_until);
    assert_eq!(row(&store, &first.key).await, Some(record), "a lost claim changes nothing");
}

pub async fn b016_an_answer_is_kept_byte_for_byte<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(2));
    let all_bytes: Vec<u8> = (0..=255).collect();
    let answers = [
        sealed("{\"z\":1,\"amount\":\"10.00\",\"a\":\"😀\\u0000\"}"),
        Sealed::from_bytes(all_bytes.repeat(300)),
        Sealed::from_bytes(vec![0]),
        Sealed::from_bytes(b"success".to_vec()),
        Sealed::from_bytes(Vec::new()),
    ];
    for (n, answer) in answers.into_iter().enumerate() {
        let claim = build.claim(&tenant("m1"), &format!("k{n}"));
        let fence = won(&store, &claim).await;
        assert_eq!(write_one(&store, verb(&claim, fence, Verb::Keep(answer.clone()))).await, Written::Applied);
        let (record, now) = found(&fixture.second(), &claim).await;
        assert_eq!(record.answer.as_ref().map(Sealed::as_bytes), Some(answer.as_bytes()));
        assert_eq!(record.state, RecordState::Answered);
        assert_eq!(decide(&record, now, true, true), Decision::Replay);
    }
}

pub async fn a_zombie_is_refused_after_a_takeover<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(3));
    let zombie = build.claim(&tenant("m1"), "k");
    let old_fence = won(&store, &zombie).await;
    fixture.advance(PAST_LEASE);
    let next = build.claim(&tenant("m1"), "k");
    let (seen, _) = found(&store, &next).await;
    let fence = store.take_over(&take_over(&seen, &next)).await.expect("take over").expect("the lease has lapsed");
    assert_eq!(fence, Fence(2));
    let held = row(&store, &next.key).await;
    for late in [Verb::Renew(LEASE), Verb::Keep(sealed("late")), Verb::Park(None), Verb::Park(Some(sealed("late"))), Verb::Release] {
        assert_eq!(write_one(&store, verb(&zombie, old_fence, late.clone())).await, Written::Refused, "{late:?} with the old fence");
        assert_eq!(write_one(&store, verb(&zombie, fence, late.clone())).await, Written::Refused, "{late:?} with a guessed fence");
        assert_eq!(
            write_one(&store, verb(&next, old_fence, late.clone())).await,
            Written::Refused,
            "{late:?} with the old fence and the new claim"
        );
        assert_eq!(row(&store, &next.key).await, held);
    }
    assert_eq!(write_one(&store, verb(&next, fence, Verb::Keep(sealed("mine")))).await, Written::Applied);
    assert_eq!(row(&store, &next.key).await.and_then(|record| record.answer), Some(sealed("mine")));
}

pub async fn b003_a_lapsed_lease_is_taken_over_and_a_live_one_is_not<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(4));
    let first = build.claim(&tenant("m1"), "k");
    won(&store, &first).await;
    let next = build.claim(&tenant("m1"), "k");
    let (seen, now) = found(&store, &next).await;
    assert!(matches!(decide(&seen, now, true, true), Decision::InUse { .. }));
    assert_eq!(store.take_over(&take_over(&seen, &next)).await, Ok(None), "the lease is live");
    assert_eq!(row(&store, &first.key).await, Some(seen.clone()));
    fixture.advance(PAST_LEASE);
    let (seen, now) = found(&store, &next).await;
    assert_eq!(decide(&seen, now, true, true), Decision::Resume);
    assert_eq!(store.take_over(&take_over(&seen, &next)).await, Ok(Some(Fence(2))));
    let taken = row(&store, &first.key).await.expect("the row");
    assert_eq!((taken.claim_id, taken.fence, taken.state), (next.claim_id, Fence(2), RecordState::Running));
    assert_eq!(taken.expires_at, seen.expires_at, "a resumed row keeps its expiry");
    assert!(taken.locked_until > seen.locked_until);
}

pub async fn a_takeover_meets_only_what_was_seen<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(5));
    let first = build.claim(&tenant("m1"), "k");
    won(&store, &first).await;
    fixture.advance(PAST_LEASE);
    let next = build.claim(&tenant("m1"), "k");
    let (seen, _) = found(&store, &next).await;
    let right = take_over(&seen, &next);
    let absent = TakeOver { key: build.record_key(&tenant("m1"), "POST /v1/payments", "absent"), ..right.clone() };
    let other_tenant = TakeOver { key: build.record_key(&tenant("m2"), "POST /v1/payments", "k"), ..right.clone() };
    let wrong = [
        TakeOver { seen_claim: build.claim_id(), ..right.clone() },
        TakeOver { seen_fence: Fence(2), ..right.clone() },
        TakeOver { seen_state: RecordState::Parked, ..right.clone() },
        TakeOver { seen_state: RecordState::Answered, ..right.clone() },
        absent,
        other_tenant,
    ];
    for wrong in wrong {
        assert_eq!(store.take_over(&wrong).await, Ok(None), "{wrong:?}");
    }
    assert_eq!(row(&store, &first.key).await, Some(seen));
    assert_eq!(store.take_over(&right).await, Ok(Some(Fence(2))));
    assert_eq!(store.take_over(&right).await, Ok(None), "once taken it is no longer as seen");
}

pub async fn b006_a_renewed_lease_holds<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(6));
    let first = build.claim(&tenant("m1"), "k");
    let fence = won(&store, &first).await;
    let next = build.claim(&tenant("m1"), "k");
    for _ in 0..5 {
        fixture.advance(Duration::from_secs(40));
        assert_eq!(write_one(&store, verb(&first, fence, Verb::Renew(LEASE))).await, Written::Applied);
        let (seen, now) = found(&store, &next).await;
        assert!(matches!(decide(&seen, now, true, true), Decision::InUse { .. }));
        assert_eq!(store.take_over(&take_over(&seen, &next)).await, Ok(None));
    }
    // A lease that lapsed but was not taken is still its holder's.
    fixture.advance(PAST_LEASE);
    assert_eq!(write_one(&store, verb(&first, fence, Verb::Renew(LEASE))).await, Written::Applied);
    assert_eq!(write_one(&store, verb(&first, fence, Verb::Keep(sealed("done")))).await, Written::Applied);
}

pub async fn a_released_key_is_claimed_again_and_its_zombie_is_refused<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(7));
    let zombie = build.claim(&tenant("m1"), "k");
    let fence = won(&store, &zombie).await;
    assert_eq!(write_one(&store, verb(&zombie, fence, Verb::Release)).await, Written::Applied);
    assert_eq!(row(&store, &zombie.key).await, None);
    assert_eq!(write_one(&store, verb(&zombie, fence, Verb::Keep(sealed("late")))).await, Written::Refused, "the row is gone");
    let next = build.claim(&tenant("m1"), "k");
    assert_eq!(won(&store, &next).await, Fence(1), "the fence starts again");
    let held = row(&store, &next.key).await;
    // Same key, same fence: only the claim's name tells the two apart.
    for late in [Verb::Renew(LEASE), Verb::Keep(sealed("late")), Verb::Park(None), Verb::Release] {
        assert_eq!(write_one(&store, verb(&zombie, fence, late.clone())).await, Written::Refused, "{late:?}");
        assert_eq!(row(&store, &next.key).await, held);
    }
}

pub async fn a_parked_row_is_resumed_and_keeps_its_expiry<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(8));
    for (key, answer) in [("with", Some(sealed("202"))), ("without", None)] {
        let first = build.claim(&tenant("m1"), key);
        let fence = won(&store, &first).await;
        assert_eq!(write_one(&store, verb(&first, fence, Verb::Park(answer.clone()))).await, Written::Applied);
        let next = build.claim(&tenant("m1"), key);
        let (seen, now) = found(&store, &next).await;
        assert_eq!((seen.state, seen.answer.clone()), (RecordState::Parked, answer));
        assert_eq!(decide(&seen, now, true, false), Decision::OutcomeUnknown);
        assert_eq!(decide(&seen, now, true, true), Decision::Resume);
        assert_eq!(store.take_over(&take_over(&seen, &next)).await, Ok(Some(Fence(2))));
        let taken = row(&store, &first.key).await.expect("the row");
        assert_eq!((taken.claim_id, taken.state, taken.expires_at), (next.claim_id, RecordState::Running, seen.expires_at));
        assert_eq!(write_one(&store, verb(&next, Fence(2), Verb::Keep(sealed("201")))).await, Written::Applied);
    }
}

pub async fn a_lapsed_row_is_parked_once<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(9));
    let first = build.claim(&tenant("m1"), "k");
    let fence = won(&store, &first).await;
    assert_eq!(store.park_lapsed(&first.key, first.claim_id, fence).await, Ok(Written::Refused), "the lease is live");
    fixture.advance(PAST_LEASE);
    assert_eq!(store.park_lapsed(&first.key, build.claim_id(), fence).await, Ok(Written::Refused), "another claim");
    assert_eq!(store.park_lapsed(&first.key, first.claim_id, Fence(2)).await, Ok(Written::Refused), "another fence");
    assert_eq!(row(&store, &first.key).await.map(|record| record.state), Some(RecordState::Running));
    assert_eq!(store.park_lapsed(&first.key, first.claim_id, fence).await, Ok(Written::Applied));
    let parked = row(&store, &first.key).await.expect("the row");
    assert_eq!((parked.state, parked.claim_id, parked.fence), (RecordState::Parked, first.claim_id, fence));
    assert_eq!(store.park_lapsed(&first.key, first.claim_id, fence).await, Ok(Written::Refused), "parked already");
    assert_eq!(write_one(&store, verb(&first, fence, Verb::Keep(sealed("late")))).await, Written::Refused, "the holder comes too late");
    assert_eq!(row(&store, &first.key).await, Some(parked));
}

pub async fn only_running_rows_are_written<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(10));
    for (key, end) in [("kept", Verb::Keep(sealed("first"))), ("parked", Verb::Park(Some(sealed("first"))))] {
        let claim = build.claim(&tenant("m1"), key);
        let fence = won(&store, &claim).await;
        assert_eq!(write_one(&store, verb(&claim, fence, end)).await, Written::Applied);
        let ended = row(&store, &claim.key).await;
        for again in [Verb::Renew(LEASE), Verb::Keep(sealed("second")), Verb::Park(None), Verb::Release] {
            assert_eq!(write_one(&store, verb(&claim, fence, again.clone())).await, Written::Refused, "{again:?} on {key}");
            assert_eq!(row(&store, &claim.key).await, ended);
        }
    }
}

pub async fn b029_an_expired_answer_is_reused_with_a_new_fingerprint_and_life<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(11));
    let first = build.claim(&tenant("m1"), "k");
    let fence = won(&store, &first).await;
    write_one(&store, verb(&first, fence, Verb::Keep(sealed("old")))).await;
    let next = NewClaim { fingerprint: fingerprint("another order"), ..build.claim(&tenant("m1"), "k") };
    let (seen, now) = found(&store, &next).await;
    assert_eq!(decide(&seen, now, false, true), Decision::Mismatch);
    assert_eq!(store.take_over(&take_over(&seen, &next)).await, Ok(None), "not expired yet");
    fixture.advance(PAST_TTL);
    let (seen, now) = found(&store, &next).await;
    assert_eq!(decide(&seen, now, false, true), Decision::Reuse);
    assert_eq!(store.take_over(&take_over(&seen, &next)).await, Ok(Some(Fence(2))));
    let taken = row(&store, &next.key).await.expect("the row");
    assert_eq!((taken.state, &taken.fingerprint), (RecordState::Running, &next.fingerprint));
    assert!(taken.expires_at > seen.expires_at, "the new answer lives its own life");
    assert_eq!(write_one(&store, verb(&next, Fence(2), Verb::Keep(sealed("new")))).await, Written::Applied);
    let (record, now) = found(&store, &next).await;
    assert_eq!((decide(&record, now, true, true), record.answer), (Decision::Replay, Some(sealed("new"))));
}

pub async fn b030_running_and_parked_rows_are_never_swept<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(12));
    let [running, parked, parked_with_answer, lapsed, answered] = ["r", "p", "pa", "l", "a"].map(|key| build.claim(&tenant("m1"), key));
    for claim in [&running, &parked, &parked_with_answer, &lapsed, &answered] {
        won(&store, claim).await;
    }
    write_one(&store, verb(&parked, Fence(1), Verb::Park(None))).await;
    write_one(&store, verb(&parked_with_answer, Fence(1), Verb::Park(Some(sealed("202"))))).await;
    write_one(&store, verb(&answered, Fence(1), Verb::Keep(sealed("201")))).await;
    fixture.advance(Duration::from_secs(400 * 24 * 3600));
    write_one(&store, verb(&running, Fence(1), Verb::Renew(LEASE))).await;
    assert_eq!(store.sweep_records(100).await, Ok(1));
    assert_eq!(row(&store, &answered.key).await, None);
    for claim in [&running, &parked, &parked_with_answer, &lapsed] {
        assert!(row(&store, &claim.key).await.is_some(), "{:?} was swept", claim.key);
    }
    let next = build.claim(&tenant("m1"), "p");
    let (seen, now) = found(&store, &next).await;
    assert_eq!(decide(&seen, now, true, true), Decision::Resume);
}

pub async fn a_sweep_is_bounded_and_takes_only_what_expired<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(13));
    let old: Vec<NewClaim> = (0..7).map(|n| build.claim(&tenant(if n % 2 == 0 { "m1" } else { "m2" }), &format!("k{n}"))).collect();
    store.claim(&old).await.expect("claim");
    let keeps: Vec<Write> = old.iter().map(|claim| verb(claim, Fence(1), Verb::Keep(sealed("x")))).collect();
    assert_eq!(store.write(&keeps).await, Ok(vec![Written::Applied; 7]));
    assert_eq!(store.sweep_records(100).await, Ok(0), "none has expired");
    fixture.advance(PAST_TTL);
    let young = build.claim(&tenant("m1"), "young");
    won(&store, &young).await;
    write_one(&store, verb(&young, Fence(1), Verb::Keep(sealed("y")))).await;
    assert_eq!(store.sweep_records(3).await, Ok(3));
    assert_eq!(store.sweep_records(3).await, Ok(3));
    assert_eq!(store.sweep_records(3).await, Ok(1));
    assert_eq!(store.sweep_records(3).await, Ok(0));
    assert!(row(&store, &young.key).await.is_some());
}

pub async fn an_operator_removes_only_what_is_stuck<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(14));
    let [live, lapsed, parked, answered] = ["live", "lapsed", "parked", "answered"].map(|key| build.claim(&tenant("m1"), key));
    for claim in [&lapsed, &parked, &answered] {
        won(&store, claim).await;
    }
    write_one(&store, verb(&parked, Fence(1), Verb::Park(None))).await;
    write_one(&store, verb(&answered, Fence(1), Verb::Keep(sealed("201")))).await;
    fixture.advance(PAST_LEASE);
    won(&store, &live).await;
    let expected = [(&live, Written::Refused), (&lapsed, Written::Applied), (&parked, Written::Applied), (&answered, Written::Refused)];
    for (claim, written) in expected {
        assert_eq!(store.remove_stuck(&claim.key).await, Ok(written), "{:?}", claim.key);
        assert_eq!(row(&store, &claim.key).await.is_none(), written == Written::Applied);
    }
    assert_eq!(store.remove_stuck(&lapsed.key).await, Ok(Written::Refused), "gone already");
}

pub async fn rows_are_found_by_key_in_any_scope_newest_first<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(15));
    let mut made = Vec::new();
    for (owner, scope, key) in
        [("m1", "POST /a", "k"), ("m1", "POST /a", "other"), ("m1", "POST /b", "k"), ("m2", "POST /a", "k"), ("m1", "POST /c", "K")]
    {
        let claim = build.claim_in(&tenant(owner), scope, key);
        won(&store, &claim).await;
        fixture.advance(Duration::from_secs(1));
        made.push(claim.key);
    }
    let keys = |rows: Vec<Record>| rows.into_iter().map(|record| record.key).collect::<Vec<_>>();
    let m1 = tenant("m1");
    assert_eq!(keys(store.find(&m1, Some("k"), 10).await.expect("find")), [made[2].clone(), made[0].clone()]);
    assert_eq!(keys(store.find(&m1, Some("k"), 1).await.expect("find")), [made[2].clone()]);
    assert_eq!(keys(store.find(&m1, None, 3).await.expect("find")), [made[4].clone(), made[2].clone(), made[1].clone()]);
    assert_eq!(keys(store.find(&tenant("m2"), None, 10).await.expect("find")), [made[3].clone()]);
    assert_eq!(keys(store.find(&tenant("m3"), Some("k"), 10).await.expect("find")), []);
}

pub async fn b027_keys_are_byte_exact<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(16));
    let long = "k".repeat(255);
    let keys = ["Abc", "abc", "ABC", "abc.", "k1", "k1x", "';--", "\\", "%", "_", "a%", long.as_str()];
    for (n, key) in keys.iter().enumerate() {
        let claim = build.claim(&tenant("m1"), key);
        won(&store, &claim).await;
        assert_eq!(write_one(&store, verb(&claim, Fence(1), Verb::Keep(sealed(&n.to_string())))).await, Written::Applied);
    }
    for (n, key) in keys.iter().enumerate() {
        let (record, _) = found(&store, &build.claim(&tenant("m1"), key)).await;
        assert_eq!((record.key.key.as_str(), record.answer), (*key, Some(sealed(&n.to_string()))));
        assert_eq!(store.find(&tenant("m1"), Some(key), 100).await.expect("find").len(), 1, "{key}");
    }
}

pub async fn b025_tenants_are_apart<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(17));
    let [first, second] = ["m1", "m2"].map(|owner| build.claim(&tenant(owner), "k1"));
    won(&store, &first).await;
    won(&store, &second).await;
    assert_eq!(write_one(&store, verb(&first, Fence(1), Verb::Keep(sealed("m1's")))).await, Written::Applied);
    let theirs = row(&store, &second.key).await.expect("the row");
    assert_eq!((theirs.state, theirs.answer), (RecordState::Running, None));
    // A holder of one tenant cannot write the other's row, even knowing its claim.
    let crossed = Write { key: second.key.clone(), ..verb(&first, Fence(1), Verb::Release) };
    assert_eq!(write_one(&store, crossed).await, Written::Refused);
    assert!(store.find(&tenant("m2"), None, 10).await.expect("find").iter().all(|record| record.key == second.key));
}

pub async fn b026_scopes_are_apart<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(18));
    let scopes =
        ["POST /v1/payments", "POST /v1/payments/{id}/refunds", "POST /v1/payments/{id}/close", "PUT /x/1", "PUT /x/2", "put /x/2"];
    for scope in scopes {
        let claim = build.claim_in(&tenant("m1"), scope, "k1");
        won(&store, &claim).await;
        assert_eq!(write_one(&store, verb(&claim, Fence(1), Verb::Keep(sealed(scope)))).await, Written::Applied);
    }
    for scope in scopes {
        let (record, _) = found(&store, &build.claim_in(&tenant("m1"), scope, "k1")).await;
        assert_eq!((record.key.scope.as_str(), record.answer), (scope, Some(sealed(scope))));
    }
}

pub async fn a_batch_answers_in_its_own_order<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(19));
    let all: Vec<NewClaim> = (0..256).map(|n| build.claim(&tenant(["m2", "m1"][n % 2]), &format!("k{:03}", (n * 37) % 256))).collect();
    let known: Vec<NewClaim> = all.iter().step_by(3).cloned().collect();
    assert!(store.claim(&known).await.expect("claim").iter().all(|seen| *seen == Seen::Won { fence: Fence(1) }));
    let again: Vec<NewClaim> = all.iter().map(|claim| NewClaim { claim_id: build.claim_id(), ..claim.clone() }).collect();
    let seen = store.claim(&again).await.expect("claim");
    assert_eq!(seen.len(), again.len());
    for (n, seen) in seen.iter().enumerate() {
        match seen {
            Seen::Won { fence } => assert!(n % 3 != 0 && *fence == Fence(1), "row {n}"),
            Seen::Found { record, .. } => {
                assert_eq!(n % 3, 0, "row {n}");
                assert_eq!((&record.key, record.claim_id), (&all[n].key, all[n].claim_id));
            }
        }
    }
    let holders: Vec<&NewClaim> = (0..256).map(|n| if n % 3 == 0 { &all[n] } else { &again[n] }).collect();
    // Every fifth is written by somebody else, every other one by its holder.
    let writes: Vec<Write> = holders
        .iter()
        .enumerate()
        .map(|(n, claim)| {
            let write = verb(claim, Fence(1), Verb::Keep(sealed(&n.to_string())));
            if n % 5 == 0 { Write { claim_id: build.claim_id(), ..write } } else { write }
        })
        .collect();
    let written = store.write(&writes).await.expect("write");
    let expected: Vec<Written> = (0..256).map(|n| if n % 5 == 0 { Written::Refused } else { Written::Applied }).collect();
    assert_eq!(written, expected);
    let keys: Vec<RecordKey> = all.iter().map(|claim| claim.key.clone()).chain([build.record_key(&tenant("m1"), "x", "absent")]).collect();
    let (rows, _) = store.read(&keys).await.expect("read");
    assert_eq!(rows.len(), 257);
    assert_eq!(rows[256], None);
    for (n, row) in rows[..256].iter().enumerate() {
        let row = row.as_ref().expect("the row");
        assert_eq!(row.key, all[n].key);
        assert_eq!(row.answer, (n % 5 != 0).then(|| sealed(&n.to_string())));
    }
}

pub async fn a_batch_may_name_a_key_twice<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(20));
    let [a, b, a_again, c, a_third] = ["a", "b", "a", "c", "a"].map(|key| build.claim(&tenant("m1"), key));
    let batch = [b.clone(), a.clone(), a_again, c.clone(), a_third];
    let seen = store.claim(&batch).await.expect("claim");
    let winners: Vec<bool> = seen.iter().map(|seen| matches!(seen, Seen::Won { .. })).collect();
    assert_eq!(winners, [true, true, false, true, false], "the first of the three wins");
    for (n, seen) in seen.iter().enumerate() {
        if let Seen::Found { record, .. } = seen {
            assert_eq!((n == 2 || n == 4, record.claim_id, record.state), (true, a.claim_id, RecordState::Running));
        }
    }
    // All of them lose against what is there.
    assert!(store.claim(&batch).await.expect("claim").iter().all(|seen| matches!(seen, Seen::Found { .. })));
}

pub async fn a_batch_of_writes_may_name_a_row_twice<F: Fixture>(fixture: &F) {
    let (store, build) = (fixture.store(), Build::new(21));
    let [a, b] = ["a", "b"].map(|key| build.claim(&tenant("m1"), key));
    store.claim(&[a.clone(), b.clone()]).await.expect("claim");
    let batch = [
        verb(&b, Fence(1), Verb::Renew(LEASE)),
        verb(&a, Fence(1), Verb::Keep(sealed("first"))),
        verb(&b, Fence(1), Verb::Keep(sealed("b"))),
        verb(&a, Fence(1), Verb::Keep(sealed("second"))),
    ];
    let written = store.write(&batch).await.expect("write");
    assert_eq!(written, [Written::Applied, Written::Applied, Written::Applied, Written::Refused]);
    assert_eq!(row(&store, &a.key).await.and_then(|record| record.answer), Some(sealed("first")));
    assert_eq!(row(&store, &b.key).await.and_then(|record| record.answer), Some(sealed("b")));
}

pub async fn empty_batches_are_nothing<F: Fixture>(fixture: &F) {
    let store = fixture.store();
    assert_eq!(store.claim(&[]).await, Ok(Vec::new()));
    assert_eq!(store.write(&[]).await, Ok(Vec::new()));
    assert_eq!(store.read(&[]).await.map(|(rows, _)| rows), Ok(Vec::new()));
    assert_eq!(store.sweep_records(10).await, Ok(0));
}
