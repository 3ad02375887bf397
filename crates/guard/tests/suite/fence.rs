//! The fence: a run that lost its lease cannot write over the one that took it, and its caller is told the store's truth.

use std::time::Duration;

use payonce::{Ending, Policy, Refusal, Reply, Route, Running};
use payonce_core::ports::records::{Records as _, Written};
use payonce_core::record::{Fence, RecordState};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::support::*;

const LEASE: Duration = Duration::from_secs(6);

fn cut_off() -> Bench {
    bench_with(Policy { lease: LEASE, ..Policy::default() })
}

/// A run on the first instance that is cut off from the store until its lease has lapsed: a zombie. It ends when told to.
async fn zombie(bench: &Bench, ending: Ending) -> (JoinHandle<Reply>, oneshot::Sender<()>, Running) {
    let (end, ended) = oneshot::channel::<()>();
    let (start, started) = oneshot::channel();
    let guard = bench.guard.clone();
    let run = tokio::spawn(async move {
        let work = |running| async move {
            start.send(running).unwrap();
            ended.await.unwrap();
            ending
        };
        guard.run(pay_on("K1", O1, Route::RESUMABLE), work).await
    });
    let running = started.await.unwrap();
    bench.faulty.set_writes_down(true);
    tokio::time::sleep(LEASE * 2).await;
    (run, end, running)
}

#[tokio::test(start_paused = true)]
async fn a_zombies_late_finish_is_refused_and_it_answers_what_the_store_has() {
    for ending in [Ending::Keep(created("zombie")), Ending::Release(created("zombie")), Ending::Park(created("zombie")), Ending::Broken] {
        let bench = cut_off();
        let (run, end, running) = zombie(&bench, ending).await;
        assert_eq!((running.fence, running.resumed), (Fence(1), false));
        let takes_over = |running: Running| {
            assert_eq!((running.fence, running.resumed), (Fence(2), true));
            std::future::ready(Ending::Keep(created("p1")))
        };
        assert_eq!(bench.other.run(pay_on("K1", O1, Route::RESUMABLE), takes_over).await, Reply::Fresh(created("p1")));
        bench.faulty.set_writes_down(false);
        end.send(()).unwrap();
        assert_eq!(run.await.unwrap(), Reply::Replayed(created("p1")), "the zombie tells the truth of the store, not its own");
        assert_eq!(bench.other.run(pay("K1", O1), never).await, Reply::Replayed(created("p1")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_zombie_that_ends_while_its_heir_runs_is_told_that_the_key_is_in_use() {
    let bench = cut_off();
    let (run, end, _) = zombie(&bench, Ending::Keep(created("zombie"))).await;
    let heir = tokio::spawn({
        let (guard, work) = (bench.other.clone(), bench.takes(Duration::from_secs(30)));
        async move { guard.run(pay_on("K1", O1, Route::RESUMABLE), work).await }
    });
    settle().await;
    bench.faulty.set_writes_down(false);
    end.send(()).unwrap();
    assert!(matches!(refused(run.await.unwrap()), Refusal::InUse { .. }));
    assert_eq!(heir.await.unwrap(), Reply::Fresh(created("p1")));
}

#[tokio::test(start_paused = true)]
async fn a_late_finish_is_refused_after_release_and_a_new_claim_at_the_same_fence() {
    let bench = cut_off();
    let (run, end, first) = zombie(&bench, Ending::Keep(created("zombie"))).await;
    // An operator has made sure of the outcome and freed the key; the next claim starts at fence 1 again.
    assert_eq!(bench.records.remove_stuck(&record_key("K1")).await, Ok(Written::Applied));
    let (start, started) = oneshot::channel();
    let second = tokio::spawn({
        let guard = bench.other.clone();
        async move {
            let work = |running: Running| async move {
                start.send(running).unwrap();
                tokio::time::sleep(Duration::from_secs(30)).await;
                Ending::Keep(created("p2"))
            };
            guard.run(pay("K1", O1), work).await
        }
    });
    let running = started.await.unwrap();
    assert_eq!(running.fence, first.fence);
    assert_ne!(running.claim_id, first.claim_id);
    bench.faulty.set_writes_down(false);
    end.send(()).unwrap();
    assert!(matches!(refused(run.await.unwrap()), Refusal::InUse { .. }), "the same fence is not the same claim");
    assert_eq!(second.await.unwrap(), Reply::Fresh(created("p2")));
    assert_eq!(bench.other.run(pay("K1", O1), never).await, Reply::Replayed(created("p2")));
}

#[tokio::test(start_paused = true)]
async fn a_lapsed_run_of_a_plain_route_is_parked_and_its_late_answer_is_withheld() {
    let bench = cut_off();
    let (run, end, _) = zombie(&bench, Ending::Keep(created("zombie"))).await;
    assert_eq!(refused(bench.other.run(pay("K1", O2), never).await), Refusal::Mismatch);
    assert_eq!(refused(bench.other.run(pay("K1", O1), never).await), Refusal::OutcomeUnknown);
    assert_eq!(bench.row(&pay("K1", O1)).map(|row| row.state), Some(RecordState::Parked));
    bench.faulty.set_writes_down(false);
    end.send(()).unwrap();
    assert_eq!(refused(run.await.unwrap()), Refusal::OutcomeUnknown);
    assert_eq!(refused(bench.other.run(pay("K1", O1), never).await), Refusal::OutcomeUnknown);
}

#[tokio::test(start_paused = true)]
async fn a_lapsed_run_that_nobody_took_over_may_still_finish() {
    let bench = cut_off();
    let (run, end, _) = zombie(&bench, Ending::Keep(created("p1"))).await;
    bench.faulty.set_writes_down(false);
    end.send(()).unwrap();
    assert_eq!(run.await.unwrap(), Reply::Fresh(created("p1")));
    assert_eq!(bench.other.run(pay("K1", O1), never).await, Reply::Replayed(created("p1")));
}

#[tokio::test(start_paused = true)]
async fn of_many_that_find_a_lapsed_row_one_takes_over() {
    let bench = cut_off();
    let (run, end, _) = zombie(&bench, Ending::Keep(created("zombie"))).await;
    let heirs: Vec<_> = (0..20)
        .map(|_| {
            let (guard, work) = (bench.other.clone(), bench.takes(Duration::from_secs(1)));
            tokio::spawn(async move { guard.run(pay_on("K1", O1, Route::RESUMABLE), work).await })
        })
        .collect();
    let mut fresh = 0;
    for heir in heirs {
        match heir.await.unwrap() {
            Reply::Fresh(_) => fresh += 1,
            other => assert!(matches!(refused(other), Refusal::InUse { .. })),
        }
    }
    assert_eq!((fresh, bench.runs()), (1, 1));
    bench.faulty.set_writes_down(false);
    end.send(()).unwrap();
    assert_eq!(run.await.unwrap(), Reply::Replayed(created("p1")));
}
