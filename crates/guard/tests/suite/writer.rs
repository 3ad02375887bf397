//! Group commit: batches form by themselves, one row never harms another, and a lost answer is settled before anything is tried again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use payonce::writer::{CommitFault, GroupCommit, WriterLimits};
use payonce_core::ports::StoreFault;
use payonce_core::ports::records::{NewClaim, Records, Seen, TakeOver, Verb, Write, Written};
use payonce_core::record::{ClaimId, Fence, RecordKey, RecordState};
use payonce_core::secret::Sealed;
use payonce_testkit::memory_records::MemoryRecords;
use tokio::task::JoinHandle;

use crate::faults::{Call, Fault, Faulty};
use crate::support::{clock, record_key, ring, settle};

const LEASE: Duration = Duration::from_secs(60);

struct Desk {
    records: Arc<MemoryRecords>,
    faulty: Arc<Faulty>,
    writer: Arc<GroupCommit>,
    ids: u128,
}

fn desk() -> Desk {
    desk_with(WriterLimits::default())
}

fn desk_with(limits: WriterLimits) -> Desk {
    let records = Arc::new(MemoryRecords::new(clock()));
    let faulty = Faulty::new(records.clone());
    let writer = Arc::new(GroupCommit::start(faulty.clone() as Arc<dyn Records>, limits));
    Desk { records, faulty, writer, ids: 0 }
}

impl Desk {
    fn row(&mut self, key: &str) -> NewClaim {
        self.ids += 1;
        NewClaim {
            key: record_key(key),
            fingerprint: ring(&[1]).digest(b"request"),
            claim_id: ClaimId(uuid::Uuid::from_u128(self.ids)),
            lease: LEASE,
            ttl: 24 * 60 * LEASE,
        }
    }

    fn claim(&mut self, key: &str) -> JoinHandle<Result<Seen, CommitFault>> {
        let row = self.row(key);
        let writer = self.writer.clone();
        tokio::spawn(async move { writer.claim(row).await })
    }

    /// Claims a key, and says how its holder would write.
    async fn hold(&mut self, key: &str) -> impl Fn(Verb) -> Write + use<> {
        let row = self.row(key);
        let (key, claim_id) = (row.key.clone(), row.claim_id);
        assert_eq!(self.writer.claim(row).await, Ok(Seen::Won { fence: Fence(1) }));
        move |verb| Write { key: key.clone(), claim_id, fence: Fence(1), verb }
    }

    fn write(&self, row: Write) -> JoinHandle<Result<Written, CommitFault>> {
        let writer = self.writer.clone();
        tokio::spawn(async move { writer.write(row).await })
    }

    fn state(&self, key: &RecordKey) -> Option<RecordState> {
        self.records.row(key).map(|row| row.state)
    }
}

fn lost() -> StoreFault {
    StoreFault::Ambiguous("connection reset".to_owned())
}

fn answer() -> Sealed {
    Sealed::from_bytes(vec![1, 2, 3])
}

fn is_won(result: &Result<Seen, CommitFault>) -> bool {
    matches!(result, Ok(Seen::Won { .. }))
}

#[tokio::test]
async fn a_batch_is_what_came_while_the_last_was_written() {
    let mut desk = desk();
    desk.faulty.shut(Call::Claim);
    let first = desk.claim("first");
    settle().await;
    let rest: Vec<_> = (0..600).map(|n| desk.claim(&format!("k{n}"))).collect();
    settle().await;
    desk.faulty.open(Call::Claim);
    assert!(is_won(&first.await.unwrap()));
    for claim in rest {
        assert!(is_won(&claim.await.unwrap()));
    }
    assert_eq!(desk.faulty.batches(Call::Claim), [1, 256, 256, 88]);
}

#[tokio::test]
async fn a_lone_claim_goes_out_at_once() {
    let mut desk = desk();
    assert!(is_won(&desk.claim("a").await.unwrap()));
    assert!(is_won(&desk.claim("b").await.unwrap()));
    assert_eq!(desk.faulty.batches(Call::Claim), [1, 1]);
}

#[tokio::test]
async fn one_batch_has_one_winner_for_each_key() {
    let mut desk = desk();
    desk.faulty.shut(Call::Claim);
    let first = desk.claim("first");
    settle().await;
    let rest: Vec<_> = (0..64).map(|n| (n % 4, desk.claim(&format!("k{}", n % 4)))).collect();
    settle().await;
    desk.faulty.open(Call::Claim);
    first.await.unwrap().unwrap();
    let mut winners = [0; 4];
    for (key, claim) in rest {
        match claim.await.unwrap().unwrap() {
            Seen::Won { .. } => winners[key] += 1,
            Seen::Found { record, .. } => assert_eq!(record.key, record_key(&format!("k{key}"))),
        }
    }
    assert_eq!(winners, [1; 4]);
    assert_eq!(desk.faulty.batches(Call::Claim), [1, 64]);
}

#[tokio::test]
async fn one_bad_row_harms_nobody() {
    let mut desk = desk();
    desk.faulty.poison(&record_key("k3"));
    desk.faulty.shut(Call::Claim);
    let first = desk.claim("first");
    settle().await;
    let rest: Vec<_> = (0..8).map(|n| desk.claim(&format!("k{n}"))).collect();
    settle().await;
    desk.faulty.open(Call::Claim);
    first.await.unwrap().unwrap();
    for (n, claim) in rest.into_iter().enumerate() {
        match claim.await.unwrap() {
            Err(CommitFault::Store(StoreFault::Refused(_))) => assert_eq!(n, 3),
            other => assert!(n != 3 && is_won(&other), "{n}: {other:?}"),
        }
    }
    assert_eq!(desk.faulty.batches(Call::Read), [8], "read back before anything is tried again");
}

#[tokio::test]
async fn one_bad_finish_harms_nobody() {
    let mut desk = desk();
    let mut holds = Vec::new();
    for n in 0..4 {
        holds.push(desk.hold(&format!("k{n}")).await);
    }
    desk.faulty.shut(Call::Write);
    let first = desk.write(holds[0](Verb::Renew(LEASE)));
    settle().await;
    let rest: Vec<_> = holds.iter().map(|hold| desk.write(hold(Verb::Keep(answer())))).collect();
    settle().await;
    desk.faulty.poison(&record_key("k2"));
    desk.faulty.open(Call::Write);
    assert_eq!(first.await.unwrap(), Ok(Written::Applied));
    for (n, write) in rest.into_iter().enumerate() {
        let written = write.await.unwrap();
        assert_eq!(written.is_ok(), n != 2, "{n}: {written:?}");
        let expected = if n == 2 { RecordState::Running } else { RecordState::Answered };
        assert_eq!(desk.state(&record_key(&format!("k{n}"))), Some(expected));
    }
}

#[tokio::test]
async fn a_lost_commit_that_landed_is_read_back_and_not_repeated() {
    let mut desk = desk();
    desk.faulty.plan(Call::Claim, Fault::After(lost()));
    let row = desk.row("k");
    assert_eq!(desk.writer.claim(row.clone()).await, Ok(Seen::Won { fence: Fence(1) }));
    assert_eq!((desk.faulty.batches(Call::Claim), desk.faulty.batches(Call::Read)), (vec![1], vec![1]));
    for verb in [Verb::Keep(answer()), Verb::Park(None), Verb::Release] {
        let key = format!("{verb:?}").chars().filter(char::is_ascii_alphabetic).collect::<String>();
        let hold = desk.hold(&key).await;
        desk.faulty.plan(Call::Write, Fault::After(lost()));
        let before = desk.faulty.batches(Call::Write).len();
        assert_eq!(desk.write(hold(verb)).await.unwrap(), Ok(Written::Applied));
        assert_eq!(desk.faulty.batches(Call::Write).len(), before + 1);
    }
}

#[tokio::test]
async fn a_lost_commit_that_did_not_land_is_tried_again() {
    let mut desk = desk();
    desk.faulty.plan(Call::Claim, Fault::Before(lost()));
    let hold = desk.hold("k").await;
    desk.faulty.plan(Call::Write, Fault::Before(lost()));
    assert_eq!(desk.write(hold(Verb::Keep(answer()))).await.unwrap(), Ok(Written::Applied));
    assert_eq!(desk.state(&record_key("k")), Some(RecordState::Answered));
}

#[tokio::test]
async fn a_lost_commit_that_lands_late_is_recognised_by_the_second_try() {
    let mut desk = desk();
    desk.faulty.plan(Call::Claim, Fault::Late);
    // Read back: absent. Then the first commit lands, and the second try finds its own claim.
    let hold = desk.hold("k").await;
    desk.faulty.plan(Call::Write, Fault::Late);
    assert_eq!(desk.write(hold(Verb::Keep(answer()))).await.unwrap(), Ok(Written::Applied));
    let released = desk.hold("released").await;
    desk.faulty.plan(Call::Write, Fault::Late);
    assert_eq!(desk.write(released(Verb::Release)).await.unwrap(), Ok(Written::Applied));
    assert_eq!(desk.state(&record_key("released")), None);
}

#[tokio::test]
async fn a_lost_commit_that_somebody_else_won_is_theirs() {
    let mut desk = desk();
    let theirs = desk.row("k");
    desk.records.claim(std::slice::from_ref(&theirs)).await.unwrap();
    desk.faulty.plan(Call::Claim, Fault::Before(lost()));
    let row = desk.row("k");
    match desk.writer.claim(row).await {
        Ok(Seen::Found { record, .. }) => assert_eq!(record.claim_id, theirs.claim_id),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn after_a_lost_commit_and_a_lost_read_the_claim_stays_open() {
    let mut desk = desk();
    desk.faulty.plan(Call::Claim, Fault::After(lost()));
    desk.faulty.plan(Call::Read, Fault::Before(StoreFault::Unavailable("down".to_owned())));
    let fault = desk.claim("k").await.unwrap().unwrap_err();
    assert!(fault.is_ambiguous(), "{fault:?}");
}

#[tokio::test]
async fn a_store_that_goes_away_in_the_middle_is_not_asked_row_by_row() {
    let mut desk = desk();
    desk.faulty.shut(Call::Claim);
    let first = desk.claim("first");
    settle().await;
    let rest: Vec<_> = (0..100).map(|n| desk.claim(&format!("k{n}"))).collect();
    settle().await;
    desk.faulty.plan(Call::Claim, Fault::Before(StoreFault::Unavailable("for the first".to_owned())));
    desk.faulty.plan(Call::Claim, Fault::Before(lost()));
    desk.faulty.plan(Call::Claim, Fault::Before(StoreFault::Unavailable("gone".to_owned())));
    desk.faulty.open(Call::Claim);
    assert!(first.await.unwrap().is_err());
    for claim in rest {
        assert!(claim.await.unwrap().is_err());
    }
    assert_eq!(desk.faulty.batches(Call::Claim), [1, 100, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_deadlock_is_repeated_whole() {
    let mut desk = desk();
    for _ in 0..2 {
        desk.faulty.plan(Call::Claim, Fault::Before(StoreFault::Retry("40P01".to_owned())));
    }
    assert!(is_won(&desk.claim("k").await.unwrap()));
    assert_eq!(desk.faulty.batches(Call::Claim), [1, 1, 1]);
    assert_eq!(desk.faulty.batches(Call::Read), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_store_call_that_never_ends_counts_as_lost() {
    let mut desk = desk();
    desk.faulty.plan(Call::Claim, Fault::Hang);
    assert!(is_won(&desk.claim("k").await.unwrap()));
    assert_eq!(desk.faulty.batches(Call::Claim), [1, 1]);
}

#[tokio::test]
async fn back_pressure_refuses_claims_only() {
    let mut desk = desk_with(WriterLimits { queued_claims: 2, queued_writes: 2, ..WriterLimits::default() });
    let mut holds = Vec::new();
    for n in 0..10 {
        holds.push(desk.hold(&format!("h{n}")).await);
    }
    desk.faulty.shut(Call::Claim);
    desk.faulty.shut(Call::Write);
    let writes: Vec<_> = holds.iter().map(|hold| desk.write(hold(Verb::Keep(answer())))).collect();
    let mut claims = Vec::new();
    for n in 0..10 {
        claims.push(desk.claim(&format!("k{n}")));
        settle().await;
    }
    desk.faulty.open(Call::Write);
    for write in writes {
        assert_eq!(write.await.unwrap(), Ok(Written::Applied), "finishes do not wait behind claims, and none is refused");
    }
    desk.faulty.open(Call::Claim);
    let mut results = Vec::new();
    for claim in claims {
        results.push(claim.await.unwrap());
    }
    let full = results.iter().filter(|result| **result == Err(CommitFault::Full)).count();
    assert_eq!((full, results.iter().filter(|result| is_won(result)).count()), (7, 3), "one in the store, two in the queue");
}

#[tokio::test]
async fn a_renewal_and_the_end_of_its_run_never_share_a_batch() {
    let mut desk = desk();
    let (a, b) = (desk.hold("a").await, desk.hold("b").await);
    desk.faulty.shut(Call::Write);
    let first = desk.write(b(Verb::Renew(LEASE)));
    settle().await;
    let renew = desk.write(a(Verb::Renew(LEASE)));
    settle().await;
    let keep = desk.write(a(Verb::Keep(answer())));
    settle().await;
    desk.faulty.open(Call::Write);
    for write in [first, renew, keep] {
        assert_eq!(write.await.unwrap(), Ok(Written::Applied));
    }
    assert_eq!(desk.faulty.logged(Call::Write), [vec!["renew b"], vec!["renew a"], vec!["keep a"]]);
}

#[tokio::test]
async fn a_claim_or_renewal_whose_caller_has_gone_is_not_written() {
    let mut desk = desk();
    let hold = desk.hold("held").await;
    desk.faulty.shut(Call::Claim);
    desk.faulty.shut(Call::Write);
    let (first, renewal) = (desk.claim("first"), desk.write(hold(Verb::Renew(LEASE))));
    settle().await;
    let (gone, gone_too) = (desk.claim("gone"), desk.write(hold(Verb::Renew(LEASE))));
    settle().await;
    gone.abort();
    gone_too.abort();
    settle().await;
    desk.faulty.open(Call::Claim);
    desk.faulty.open(Call::Write);
    first.await.unwrap().unwrap();
    renewal.await.unwrap().unwrap();
    settle().await;
    assert_eq!(desk.records.row(&record_key("gone")), None);
    assert_eq!(desk.faulty.batches(Call::Write), [1]);
}

#[tokio::test]
async fn draining_writes_what_waits_and_takes_nothing_new() {
    let mut desk = desk();
    desk.faulty.shut(Call::Claim);
    let claims: Vec<_> = (0..300).map(|n| desk.claim(&format!("k{n}"))).collect();
    settle().await;
    let drain = tokio::spawn({
        let writer = desk.writer.clone();
        async move { writer.drain_claims().await }
    });
    settle().await;
    desk.faulty.open(Call::Claim);
    drain.await.unwrap();
    let keys: BTreeSet<bool> = {
        let mut won = BTreeSet::new();
        for claim in claims {
            won.insert(is_won(&claim.await.unwrap()));
        }
        won
    };
    assert_eq!((keys, desk.records.len()), (BTreeSet::from([true]), 300));
    assert_eq!(desk.claim("late").await.unwrap(), Err(CommitFault::Closed));
}

#[tokio::test]
async fn a_lost_release_whose_key_was_claimed_anew_has_landed() {
    let mut desk = desk();
    let hold = desk.hold("k").await;
    desk.faulty.shut(Call::Read);
    desk.faulty.plan(Call::Write, Fault::After(lost()));
    let release = desk.write(hold(Verb::Release));
    settle().await;
    let next = desk.row("k");
    assert!(matches!(desk.records.claim(&[next]).await.unwrap()[0], Seen::Won { .. }));
    desk.faulty.open(Call::Read);
    assert_eq!(release.await.unwrap(), Ok(Written::Applied));
}

#[tokio::test]
async fn a_lost_write_to_a_row_that_was_taken_over_is_refused() {
    let mut desk = desk();
    let hold = desk.hold("k").await;
    let seen = desk.records.row(&record_key("k")).unwrap();
    // The holder parks; the next takes over; the holder's second write is lost on the way.
    desk.records.write(&[hold(Verb::Park(None))]).await.unwrap();
    let heir = TakeOver {
        key: seen.key.clone(),
        seen_claim: seen.claim_id,
        seen_fence: seen.fence,
        seen_state: RecordState::Parked,
        claim_id: ClaimId(uuid::Uuid::from_u128(99)),
        fingerprint: seen.fingerprint.clone(),
        lease: LEASE,
        ttl: None,
    };
    assert_eq!(desk.records.take_over(&heir).await, Ok(Some(Fence(2))));
    for verb in [Verb::Keep(answer()), Verb::Park(None), Verb::Release, Verb::Renew(LEASE)] {
        desk.faulty.plan(Call::Write, Fault::Before(lost()));
        assert_eq!(desk.write(hold(verb)).await.unwrap(), Ok(Written::Refused));
    }
}

#[tokio::test]
async fn finishes_are_not_dragged_one_by_one_through_a_store_that_went_away() {
    let mut desk = desk();
    let mut holds = Vec::new();
    for n in 0..20 {
        holds.push(desk.hold(&format!("k{n}")).await);
    }
    desk.faulty.shut(Call::Write);
    let first = desk.write(holds[0](Verb::Renew(LEASE)));
    settle().await;
    let rest: Vec<_> = holds.iter().map(|hold| desk.write(hold(Verb::Keep(answer())))).collect();
    settle().await;
    desk.faulty.plan(Call::Write, Fault::Before(StoreFault::Unavailable("for the first".to_owned())));
    desk.faulty.plan(Call::Write, Fault::Before(lost()));
    desk.faulty.plan(Call::Write, Fault::Before(StoreFault::Unavailable("gone".to_owned())));
    desk.faulty.open(Call::Write);
    assert!(first.await.unwrap().is_err());
    let mut ambiguous = 0;
    for write in rest {
        ambiguous += usize::from(write.await.unwrap().unwrap_err().is_ambiguous());
    }
    assert_eq!((desk.faulty.batches(Call::Write), ambiguous), (vec![1, 20, 1], 19), "what was lost and not tried again may still land");
}
