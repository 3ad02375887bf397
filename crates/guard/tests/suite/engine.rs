//! The engine: what runs, what is replayed, what is refused.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use payonce::{Answer, Ending, Guard, Policy, Refusal, Reply, Route};
use payonce_core::ports::StoreFault;
use payonce_core::ports::records::Records as _;
use payonce_core::record::RecordState;
use payonce_testkit::memory_records::MemoryRecords;
use tokio::sync::oneshot;

use crate::faults::{Call, Fault};
use crate::support::*;

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_key_runs_once_and_is_replayed_byte_for_byte() {
    let bench = bench();
    assert_eq!(bench.guard.run(pay("K1", O1), bench.ends(Ending::Keep(created("p1")))).await, Reply::Fresh(created("p1")));
    assert_eq!(bench.guard.run(pay("K1", O1), never).await, Reply::Replayed(created("p1")));
    assert_eq!(bench.other.run(pay("K1", O1), never).await, Reply::Replayed(created("p1")));
    assert_eq!(bench.runs(), 1);
}

#[tokio::test]
async fn b004_a_panic_and_a_broken_end_park_the_key_and_a_204_replays() {
    let bench = bench();
    let panics = |_| async { panic!("handler panics") };
    assert_eq!(refused(bench.guard.run(pay("K1", O1), panics).await), Refusal::Broken);
    let panics_early = |_| -> std::future::Ready<Ending> { panic!("handler panics before its first await") };
    assert_eq!(refused(bench.guard.run(pay("K2", O1), panics_early).await), Refusal::Broken);
    assert_eq!(refused(bench.guard.run(pay("K3", O1), bench.ends(Ending::Broken)).await), Refusal::Broken);
    let malformed = Answer::new(502, "application/json", "{}");
    assert_eq!(bench.guard.run(pay("K4", O1), bench.ends(Ending::Park(malformed.clone()))).await, Reply::Fresh(malformed));
    for key in ["K1", "K2", "K3", "K4"] {
        assert_eq!(bench.row(&pay(key, O1)).map(|row| row.state), Some(RecordState::Parked));
        assert_eq!(refused(bench.guard.run(pay(key, O1), never).await), Refusal::OutcomeUnknown, "never in use, never a second run");
        assert_eq!(refused(bench.guard.run(pay(key, O2), never).await), Refusal::Mismatch);
        let resumed = |running: payonce::Running| {
            assert!(running.resumed);
            std::future::ready(Ending::Keep(created("p1")))
        };
        assert_eq!(bench.guard.run(pay_on(key, O1, Route::RESUMABLE), resumed).await, Reply::Fresh(created("p1")));
        assert_eq!(bench.guard.run(pay(key, O1), never).await, Reply::Replayed(created("p1")));
    }
    let empty = Answer::empty(204);
    assert_eq!(bench.guard.run(pay("K5", O1), bench.ends(Ending::Keep(empty.clone()))).await, Reply::Fresh(empty.clone()));
    assert_eq!(bench.guard.run(pay("K5", O1), never).await, Reply::Replayed(empty));
}

#[tokio::test(start_paused = true)]
async fn b006_work_far_longer_than_its_lease_keeps_the_key() {
    let bench = bench_with(Policy { lease: Duration::from_secs(3), ..Policy::default() });
    let first = tokio::spawn({
        let (guard, work) = (bench.guard.clone(), bench.takes(Duration::from_secs(20)));
        async move { guard.run(pay("K1", O1), work).await }
    });
    for _ in 0..39 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(matches!(refused(bench.other.run(pay_on("K1", O1, Route::RESUMABLE), never).await), Refusal::InUse { .. }));
    }
    assert_eq!(first.await.unwrap(), Reply::Fresh(created("p1")));
    assert_eq!(bench.runs(), 1);
    assert_eq!(bench.other.run(pay("K1", O1), never).await, Reply::Replayed(created("p1")));
}

#[tokio::test(start_paused = true)]
async fn b007_no_answer_goes_out_before_its_end_is_stored() {
    let bench = bench();
    bench.faulty.shut(Call::Write);
    let (done, ran) = oneshot::channel();
    let mut first = tokio::spawn({
        let guard = bench.guard.clone();
        async move {
            let work = |_| async {
                done.send(()).unwrap();
                Ending::Keep(created("p1"))
            };
            guard.run(pay("K1", O1), work).await
        }
    });
    ran.await.unwrap();
    assert!(tokio::time::timeout(Duration::from_secs(3), &mut first).await.is_err(), "answered before it was stored");
    assert!(matches!(refused(bench.other.run(pay("K1", O1), never).await), Refusal::InUse { .. }));
    bench.faulty.open(Call::Write);
    assert_eq!(first.await.unwrap(), Reply::Fresh(created("p1")));
    assert_eq!(bench.other.run(pay("K1", O1), never).await, Reply::Replayed(created("p1")));
}

#[tokio::test]
async fn b008_the_same_request_written_otherwise_is_a_replay() {
    let bench = bench();
    bench
        .guard
        .run(pay("K1", r#"{"order":"O1","amount":100,"payer":{"id":"u1","name":"A"}}"#), bench.ends(Ending::Keep(created("p1"))))
        .await;
    let again = bench.guard.run(pay("K1", r#"{"payer":{"name":"A","id":"u1"},"amount":1e2,"order":"\u004f1"}"#), never).await;
    assert_eq!(again, Reply::Replayed(created("p1")));
}

#[tokio::test]
async fn b010_b012_another_request_is_refused_at_every_moment() {
    let bench = bench();
    let (end, ended) = oneshot::channel::<()>();
    let (start, started) = oneshot::channel();
    let first = tokio::spawn({
        let guard = bench.guard.clone();
        async move {
            let work = |_| async {
                start.send(()).unwrap();
                ended.await.unwrap();
                Ending::Keep(created("p1"))
            };
            guard.run(pay("K1", O1), work).await
        }
    });
    started.await.unwrap();
    let waits = Route::PLAIN.waiting(HOUR);
    for guard in [&bench.guard, &bench.other] {
        assert_eq!(refused(guard.run(pay("K1", O2), never).await), Refusal::Mismatch, "in flight");
        assert_eq!(refused(guard.run(pay_on("K1", O2, waits), never).await), Refusal::Mismatch, "in flight, without waiting");
    }
    end.send(()).unwrap();
    first.await.unwrap();
    for guard in [&bench.guard, &bench.other] {
        assert_eq!(refused(guard.run(pay("K1", O2), never).await), Refusal::Mismatch, "after the end");
    }
    let restarted = Guard::start(bench.records.clone(), ring(&[1]), entropy(), Policy::default()).unwrap();
    assert_eq!(refused(restarted.run(pay("K1", O2), never).await), Refusal::Mismatch, "after a restart");
    let copies: Vec<_> = (0..20)
        .map(|n| {
            let guard = if n % 2 == 0 { bench.guard.clone() } else { bench.other.clone() };
            tokio::spawn(async move { refused(guard.run(pay("K1", O2), never).await) })
        })
        .collect();
    for copy in copies {
        assert_eq!(copy.await.unwrap(), Refusal::Mismatch);
    }
}

#[tokio::test]
async fn b016_bytes_are_kept_as_they_are_and_sealed() {
    let bench = bench();
    let mut answer = Answer::new(200, "application/json", "{\"z\": \"10.00\",\n \"a\":\"😀\\u0000\", \"a\":1}".as_bytes().to_vec());
    answer.headers.push(("etag".to_owned(), b"\"\xe9\"".to_vec()));
    bench.guard.run(pay("K1", O1), bench.ends(Ending::Keep(answer.clone()))).await;
    assert_eq!(bench.guard.run(pay("K1", O1), never).await, Reply::Replayed(answer));
    let success = Answer::new(200, "text/plain", "success");
    bench.guard.run(pay("K2", O1), bench.ends(Ending::Keep(success.clone()))).await;
    assert_eq!(bench.guard.run(pay("K2", O1), never).await, Reply::Replayed(success));
    let sealed = bench.row(&pay("K2", O1)).and_then(|row| row.answer).unwrap();
    assert!(!sealed.as_bytes().windows(7).any(|window| window == b"success"), "an answer at rest is sealed (I12)");
}

#[tokio::test]
async fn b025_b026_b027_keys_meet_only_within_tenant_scope_and_spelling() {
    let bench = bench();
    let at = |tenant_name: &str, scope: &str, key: &str| {
        let mut request = pay(key, O1);
        request.key.tenant = tenant(tenant_name);
        request.key.scope = scope.to_owned();
        request
    };
    let places = [("m1", "POST /pay", "Abc"), ("m2", "POST /pay", "Abc"), ("m1", "POST /refund", "Abc"), ("m1", "POST /pay", "abc")];
    for (n, (tenant, scope, key)) in places.into_iter().enumerate() {
        let answer = created(&format!("p{n}"));
        assert_eq!(bench.guard.run(at(tenant, scope, key), bench.ends(Ending::Keep(answer.clone()))).await, Reply::Fresh(answer));
    }
    for (n, (tenant, scope, key)) in places.into_iter().enumerate() {
        assert_eq!(bench.guard.run(at(tenant, scope, key), never).await, Reply::Replayed(created(&format!("p{n}"))));
    }
}

#[tokio::test]
async fn a_sealed_answer_moved_to_another_key_does_not_open() {
    let bench = bench();
    bench.guard.run(pay("K1", O1), bench.ends(Ending::Keep(created("p1")))).await;
    let stolen = bench.row(&pay("K1", O1)).and_then(|row| row.answer).unwrap();
    // The same request under K2, ended by hand with K1's sealed bytes.
    let (end, ended) = oneshot::channel::<()>();
    let (start, started) = oneshot::channel();
    let second = tokio::spawn({
        let guard = bench.guard.clone();
        async move {
            let work = |running: payonce::Running| async move {
                start.send(running).unwrap();
                ended.await.unwrap();
                Ending::Keep(created("p2"))
            };
            guard.run(pay("K2", O1), work).await
        }
    });
    let running = started.await.unwrap();
    let write = payonce_core::ports::records::Write {
        key: record_key("K2"),
        claim_id: running.claim_id,
        fence: running.fence,
        verb: payonce_core::ports::records::Verb::Keep(stolen),
    };
    bench.records.write(&[write]).await.unwrap();
    assert_eq!(refused(bench.other.run(pay("K2", O1), never).await), Refusal::Unreadable);
    end.send(()).unwrap();
    second.await.unwrap();
}

#[tokio::test]
async fn b017_a_release_frees_the_key_for_another_request() {
    let bench = bench();
    let bad = Answer::new(400, "application/problem+json", "{}");
    assert_eq!(bench.guard.run(pay("K1", r#"{"amount":-5}"#), bench.ends(Ending::Release(bad.clone()))).await, Reply::Fresh(bad));
    assert_eq!(bench.guard.run(pay("K1", r#"{"amount":500}"#), bench.ends(Ending::Keep(created("p1")))).await, Reply::Fresh(created("p1")));
    assert_eq!(bench.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn b029_an_expired_row_that_was_not_swept_is_taken_over_once() {
    let bench = bench_with(Policy { ttl: Duration::from_secs(5), lease: Duration::from_secs(4), ..Policy::default() });
    bench.guard.run(pay("K1", O1), bench.ends(Ending::Keep(created("p1")))).await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    let copies: Vec<_> = (0..10)
        .map(|n| {
            let guard = if n % 2 == 0 { bench.guard.clone() } else { bench.other.clone() };
            let runs = bench.runs.clone();
            tokio::spawn(async move {
                let work = move |running: payonce::Running| async move {
                    assert!(!running.resumed, "an expired key is a new one");
                    runs.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    Ending::Keep(created("p2"))
                };
                guard.run(pay("K1", O2), work).await
            })
        })
        .collect();
    let mut fresh = 0;
    for copy in copies {
        match copy.await.unwrap() {
            Reply::Fresh(answer) => {
                assert_eq!(answer, created("p2"));
                fresh += 1;
            }
            Reply::Replayed(answer) => assert_eq!(answer, created("p2")),
            Reply::Refused(refusal) => assert!(matches!(refusal, Refusal::InUse { .. }), "{refusal:?}"),
        }
    }
    assert_eq!((fresh, bench.runs()), (1, 2));
    assert_eq!(bench.guard.run(pay("K1", O2), never).await, Reply::Replayed(created("p2")));
}

#[tokio::test(start_paused = true)]
async fn b030_an_unknown_outcome_outlives_every_expiry_and_sweep() {
    let bench = bench();
    bench.guard.run(pay("K1", O1), bench.ends(Ending::Park(Answer::new(202, "application/json", "{}")))).await;
    tokio::time::sleep(25 * HOUR).await;
    assert_eq!(bench.records.sweep_records(1000).await, Ok(0));
    assert_eq!(refused(bench.guard.run(pay("K1", O1), never).await), Refusal::OutcomeUnknown);
    assert_eq!(refused(bench.guard.run(pay("K1", O2), never).await), Refusal::Mismatch);
    let resume = |running: payonce::Running| {
        assert!(running.resumed);
        std::future::ready(Ending::Keep(created("p1")))
    };
    assert_eq!(bench.guard.run(pay_on("K1", O1, Route::RESUMABLE), resume).await, Reply::Fresh(created("p1")));
    // Settled after its first day, the answer must still be there for the next repeat.
    tokio::time::sleep(HOUR).await;
    assert_eq!(bench.records.sweep_records(1000).await, Ok(0));
    assert_eq!(bench.guard.run(pay_on("K1", O1, Route::RESUMABLE), never).await, Reply::Replayed(created("p1")));
}

#[tokio::test(start_paused = true)]
async fn b038_a_caller_that_hangs_up_stops_nothing() {
    let bench = bench();
    for (n, hang_up) in [0, 100, 500, 1500, 1950].into_iter().enumerate() {
        let key = format!("K{n}");
        let call = bench.guard.run(pay(&key, O1), bench.takes(Duration::from_secs(2)));
        assert!(tokio::time::timeout(Duration::from_millis(hang_up), call).await.is_err(), "the caller has hung up");
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(bench.guard.run(pay(&key, O1), never).await, Reply::Replayed(created("p1")));
        assert_eq!(bench.runs(), n + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn b040_with_the_store_down_nothing_runs_and_afterwards_it_runs_once() {
    let bench = bench();
    bench.faulty.set_down(true);
    for _ in 0..2 {
        let refusal = refused(bench.guard.run(pay("K1", O1), never).await);
        assert!(matches!(refusal, Refusal::StoreUnavailable { .. }) && refusal.retry_after().is_some(), "{refusal:?}");
    }
    bench.faulty.set_down(false);
    assert_eq!(bench.guard.run(pay("K1", O1), bench.ends(Ending::Keep(created("p1")))).await, Reply::Fresh(created("p1")));
    assert_eq!(bench.guard.run(pay("K1", O1), never).await, Reply::Replayed(created("p1")));
    assert_eq!(bench.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn b040_a_claim_whose_answer_was_lost_and_that_nobody_runs_is_freed() {
    let bench = bench();
    let lost = || StoreFault::Ambiguous("connection reset".to_owned());
    bench.faulty.plan(Call::Claim, Fault::After(lost()));
    bench.faulty.plan(Call::Read, Fault::Before(lost()));
    let refusal = refused(bench.guard.run(pay("K1", O1), never).await);
    assert!(matches!(refusal, Refusal::StoreUnavailable { .. }), "{refusal:?}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.row(&pay("K1", O1)), None, "the key must not wait for its lease, nor be parked: nothing was run");
    assert_eq!(bench.guard.run(pay("K1", O1), bench.ends(Ending::Keep(created("p1")))).await, Reply::Fresh(created("p1")));
}

#[tokio::test(start_paused = true)]
async fn a_takeover_whose_answer_was_lost_leaves_a_parked_row_parked() {
    let bench = bench();
    bench.guard.run(pay("K1", O1), bench.ends(Ending::Broken)).await;
    let lost = || StoreFault::Ambiguous("connection reset".to_owned());
    bench.faulty.plan(Call::TakeOver, Fault::After(lost()));
    bench.faulty.plan(Call::Read, Fault::Before(lost()));
    let refusal = refused(bench.guard.run(pay_on("K1", O1, Route::RESUMABLE), never).await);
    assert!(matches!(refusal, Refusal::StoreUnavailable { .. }), "{refusal:?}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.row(&pay("K1", O1)).map(|row| row.state), Some(RecordState::Parked), "the first run may have moved money");
    // Read back in time, the same loss is no loss.
    bench.faulty.plan(Call::TakeOver, Fault::After(lost()));
    let reply = bench.guard.run(pay_on("K1", O1, Route::RESUMABLE), bench.ends(Ending::Keep(created("p1")))).await;
    assert_eq!(reply, Reply::Fresh(created("p1")));
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_stored_is_withheld_and_stored_as_soon_as_it_can() {
    let bench = bench();
    bench.faulty.set_writes_down(true);
    let started = tokio::time::Instant::now();
    let refusal = refused(bench.guard.run(pay("K1", O1), bench.ends(Ending::Keep(created("p1")))).await);
    assert_eq!(refusal, Refusal::NotStored, "a success that was not stored is not told");
    assert_eq!(started.elapsed().as_secs(), 60, "tried until the lease ended");
    bench.faulty.set_writes_down(false);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(bench.guard.run(pay("K1", O1), never).await, Reply::Replayed(created("p1")));
    assert_eq!(bench.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_at_the_end_of_a_run_is_ridden_out() {
    let bench = bench();
    for _ in 0..3 {
        bench.faulty.plan(Call::Write, Fault::Before(StoreFault::Unavailable("failover".to_owned())));
    }
    assert_eq!(bench.guard.run(pay("K1", O1), bench.ends(Ending::Keep(created("p1")))).await, Reply::Fresh(created("p1")));
    bench.faulty.plan(Call::Write, Fault::After(StoreFault::Ambiguous("connection reset".to_owned())));
    bench.faulty.plan(Call::Read, Fault::Before(StoreFault::Unavailable("failover".to_owned())));
    assert_eq!(bench.guard.run(pay("K2", O1), bench.ends(Ending::Release(created("p2")))).await, Reply::Fresh(created("p2")));
    assert_eq!(bench.row(&pay("K2", O1)), None);
}

#[tokio::test]
async fn an_answer_that_the_store_refuses_parks_the_key() {
    let bench = bench();
    bench.faulty.plan(Call::Write, Fault::Before(StoreFault::Refused("value too long".to_owned())));
    bench.faulty.plan(Call::Write, Fault::Before(StoreFault::Refused("value too long".to_owned())));
    let reply = bench.guard.run(pay("K1", O1), bench.ends(Ending::Keep(created("p1")))).await;
    assert_eq!(bench.row(&pay("K1", O1)).map(|row| row.state), Some(RecordState::Parked));
    assert_eq!(refused(reply), Refusal::NotStored);
}

#[tokio::test]
async fn b089_an_answer_over_the_limit_is_told_in_full_once_and_then_by_a_marker() {
    let policy = Policy { max_answer_bytes: 1000, ..Policy::default() };
    for (n, length) in [900, 930, 1100, 50_000].into_iter().enumerate() {
        let bench = bench_with(policy);
        let mut answer = Answer::new(201, "application/json", vec![b'x'; length]);
        answer.headers.push(("location".to_owned(), b"/batches/7".to_vec()));
        assert_eq!(bench.guard.run(pay("K1", O1), bench.ends(Ending::Keep(answer.clone()))).await, Reply::Fresh(answer.clone()));
        let Reply::Replayed(again) = bench.guard.run(pay("K1", O1), never).await else { panic!("a second run, or none") };
        assert_eq!((again.status, again.headers.iter().any(|(name, value)| name == "location" && value == b"/batches/7")), (201, true));
        assert_eq!(again == answer, n < 2, "{length}");
        assert!(again.body.len() <= 1000);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_tasks_one_wins_and_where_the_route_waits_all_get_its_answer() {
    for (key, route) in [("refuse", Route::PLAIN), ("wait", Route::PLAIN.waiting(Duration::from_secs(10)))] {
        let bench = bench();
        let tasks: Vec<_> = (0..64)
            .map(|n| {
                let guard = if n % 2 == 0 { bench.guard.clone() } else { bench.other.clone() };
                let work = bench.takes(Duration::from_millis(50));
                tokio::spawn(async move { guard.run(pay_on(key, O1, route), work).await })
            })
            .collect();
        let mut replies = Vec::new();
        for task in tasks {
            replies.push(task.await.unwrap());
        }
        assert_eq!(bench.runs(), 1);
        assert_eq!(replies.iter().filter(|reply| matches!(reply, Reply::Fresh(_))).count(), 1);
        for reply in replies {
            match reply {
                Reply::Fresh(answer) | Reply::Replayed(answer) => assert_eq!(answer, created("p1")),
                Reply::Refused(refusal) => {
                    assert!(route == Route::PLAIN && matches!(refusal, Refusal::InUse { .. }), "{refusal:?}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_repeat_is_refused_when_its_patience_ends() {
    let bench = bench();
    let first = bench.guard.run(pay("K1", O1), bench.takes(Duration::from_secs(30)));
    let repeat = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        bench.other.run(pay_on("K1", O1, Route::PLAIN.waiting(Duration::from_secs(4))), never).await
    };
    let (first, repeat) = tokio::join!(first, repeat);
    assert_eq!(first, Reply::Fresh(created("p1")));
    assert!(matches!(refused(repeat), Refusal::InUse { .. }));
}

#[tokio::test]
async fn keys_of_the_ring_may_roll_and_a_lost_one_refuses() {
    let records = Arc::new(MemoryRecords::new(clock()));
    let with = |keys: &[u8]| Guard::start(records.clone(), ring(keys), entropy(), Policy::default()).unwrap();
    with(&[1]).run(pay("K1", O1), |_| std::future::ready(Ending::Keep(created("p1")))).await;
    assert_eq!(with(&[2, 1]).run(pay("K1", O1), never).await, Reply::Replayed(created("p1")));
    assert_eq!(refused(with(&[2, 1]).run(pay("K1", O2), never).await), Refusal::Mismatch);
    assert_eq!(refused(with(&[2]).run(pay("K1", O1), never).await), Refusal::Unreadable);
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_what_runs_and_takes_nothing_new() {
    let bench = bench();
    let first = tokio::spawn({
        let (guard, work) = (bench.guard.clone(), bench.takes(Duration::from_secs(2)));
        async move { guard.run(pay("K1", O1), work).await }
    });
    settle().await;
    let (ended, late) = tokio::join!(bench.guard.shutdown(Duration::from_secs(10)), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        bench.guard.run(pay("K2", O1), never).await
    });
    assert!(ended);
    assert!(matches!(refused(late), Refusal::StoreUnavailable { .. }));
    assert_eq!(first.await.unwrap(), Reply::Fresh(created("p1")));
    assert_eq!(bench.other.run(pay("K1", O1), never).await, Reply::Replayed(created("p1")));
}

#[tokio::test(start_paused = true)]
async fn more_than_may_run_at_once_is_refused_without_running() {
    let bench = bench_with(Policy { max_runs: 1, ..Policy::default() });
    let (first, second) = tokio::join!(bench.guard.run(pay("K1", O1), bench.takes(Duration::from_secs(2))), async {
        settle().await;
        bench.guard.run(pay("K2", O1), never).await
    });
    assert_eq!(first, Reply::Fresh(created("p1")));
    assert!(matches!(refused(second), Refusal::Busy { .. }));
    assert_eq!(bench.guard.run(pay("K2", O1), bench.ends(Ending::Keep(created("p2")))).await, Reply::Fresh(created("p2")));
}

#[tokio::test(start_paused = true)]
async fn answers_at_hand_are_replayed_without_the_store_and_only_until_they_expire() {
    let policy = Policy { cache_bytes: 1 << 20, ttl: Duration::from_secs(100), max_answer_bytes: 500, ..Policy::default() };
    let bench = bench_with(policy);
    bench.guard.run(pay("K1", O1), bench.ends(Ending::Keep(created("p1")))).await;
    bench.other.run(pay("K1", O1), never).await;
    let long = Answer::new(201, "text/plain", vec![b'x'; 1000]);
    bench.guard.run(pay("long", O1), bench.ends(Ending::Keep(long.clone()))).await;
    bench.guard.run(pay("parked", O1), bench.ends(Ending::Park(created("p2")))).await;
    bench.guard.run(pay("released", O1), bench.ends(Ending::Release(created("p3")))).await;
    let calls = bench.faulty.batches(Call::Claim).len();
    assert_eq!(bench.guard.run(pay("K1", O1), never).await, Reply::Replayed(created("p1")));
    assert_eq!(bench.faulty.batches(Call::Claim).len(), calls, "no store call");
    assert_eq!(refused(bench.guard.run(pay("K1", O2), never).await), Refusal::Mismatch);
    assert_ne!(bench.guard.run(pay("long", O1), never).await, Reply::Replayed(long), "a marker, as after a restart");
    assert_eq!(refused(bench.guard.run(pay("parked", O1), never).await), Refusal::OutcomeUnknown);
    assert_eq!(bench.guard.run(pay("released", O1), bench.ends(Ending::Keep(created("p4")))).await, Reply::Fresh(created("p4")));
    tokio::time::sleep(Duration::from_secs(100)).await;
    let again = bench.guard.run(pay("K1", O1), bench.ends(Ending::Keep(created("p5")))).await;
    assert_eq!(again, Reply::Fresh(created("p5")), "expired in the store, expired in memory");
    assert_eq!(bench.guard.run(pay("K1", O1), never).await, Reply::Replayed(created("p5")));
}
