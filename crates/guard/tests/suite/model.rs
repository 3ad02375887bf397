//! Any sequence of requests, crashes of the work and passing time, against a model of ten lines.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use payonce::{Answer, Ending, Policy, Refusal, Reply, Route};
use payonce_core::ports::records::Records as _;
use proptest::prelude::*;

use crate::support::*;

const TTL: Duration = Duration::from_secs(1000);

#[derive(Clone, Copy, Debug)]
enum End {
    Keep,
    Release,
    Park,
    Panic,
}

#[derive(Clone, Debug)]
enum Step {
    Send { key: u8, body: bool, resumable: bool, end: End, other_instance: bool },
    Pass(u16),
    Sweep,
}

fn step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![Just(End::Keep), Just(End::Release), Just(End::Park), Just(End::Panic)];
    prop_oneof![
        8 => (0u8..3, any::<bool>(), any::<bool>(), end, any::<bool>())
            .prop_map(|(key, body, resumable, end, other_instance)| Step::Send { key, body, resumable, end, other_instance }),
        2 => (1u16..700).prop_map(Step::Pass),
        1 => Just(Step::Sweep),
    ]
}

/// What the model knows of a key: which request, the kept answer and when it expires; no answer means that the outcome is unknown.
#[derive(Clone, Debug)]
struct Known {
    body: bool,
    kept: Option<(usize, Duration)>,
}

fn answer(run: usize) -> Answer {
    Answer::new(201, "text/plain", run.to_string())
}

async fn play(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let bench = bench_with(Policy { ttl: TTL, ..Policy::default() });
    let started = tokio::time::Instant::now();
    let mut model: HashMap<u8, Known> = HashMap::new();
    let runs = Arc::new(AtomicUsize::new(0));
    for step in steps {
        let now = started.elapsed();
        model.retain(|_, known| known.kept.is_none_or(|(_, expires)| expires > now));
        let (key, body, resumable, end, other_instance) = match step {
            Step::Pass(seconds) => {
                tokio::time::sleep(Duration::from_secs(u64::from(seconds))).await;
                continue;
            }
            Step::Sweep => {
                bench.records.sweep_records(100).await.expect("a store");
                continue;
            }
            Step::Send { key, body, resumable, end, other_instance } => (key, body, resumable, end, other_instance),
        };
        let before = runs.load(Ordering::SeqCst);
        let work = {
            let runs = runs.clone();
            move |running: payonce::Running| async move {
                let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
                let body = if running.resumed { answer(run + 1_000_000) } else { answer(run) };
                match end {
                    End::Keep => Ending::Keep(body),
                    End::Release => Ending::Release(body),
                    End::Park => Ending::Park(body),
                    End::Panic => panic!("on purpose"),
                }
            }
        };
        let route = if resumable { Route::RESUMABLE } else { Route::PLAIN };
        let guard = if other_instance { &bench.other } else { &bench.guard };
        let reply = guard.run(pay_on(&format!("K{key}"), if body { O1 } else { O2 }, route), work).await;
        let ran = runs.load(Ordering::SeqCst) - before;
        let resumed = match model.get(&key) {
            Some(known) if known.body != body => {
                prop_assert_eq!((reply, ran), (Reply::Refused(Refusal::Mismatch), 0));
                continue;
            }
            Some(Known { kept: Some((run, _)), .. }) => {
                prop_assert_eq!((reply, ran), (Reply::Replayed(answer(*run)), 0));
                continue;
            }
            Some(Known { kept: None, .. }) if !resumable => {
                prop_assert_eq!((reply, ran), (Reply::Refused(Refusal::OutcomeUnknown), 0));
                continue;
            }
            Some(Known { kept: None, .. }) => true,
            None => false,
        };
        let run = before + 1 + if resumed { 1_000_000 } else { 0 };
        let told = if matches!(end, End::Panic) { Reply::Refused(Refusal::Broken) } else { Reply::Fresh(answer(run)) };
        prop_assert_eq!((reply, ran), (told, 1));
        match end {
            End::Release => {
                model.remove(&key);
            }
            End::Park | End::Panic => {
                model.insert(key, Known { body, kept: None });
            }
            End::Keep => {
                // When a resumed row expires is the guard's affair, but it is not before half of its time has passed again.
                let expires = if resumed { None } else { Some(now + TTL) };
                match expires {
                    Some(expires) => {
                        model.insert(key, Known { body, kept: Some((run, expires)) });
                    }
                    None => {
                        let again = bench.guard.run(pay_on(&format!("K{key}"), if body { O1 } else { O2 }, route), never).await;
                        prop_assert_eq!(again, Reply::Replayed(answer(run)));
                        let row = bench.records.row(&record_key(&format!("K{key}"))).expect("a row");
                        let left = row.expires_at.since(clock().now());
                        let base = payonce_core::clock::Timestamp::from_unix(1_800_000_000);
                        prop_assert!(left <= TTL + now && row.expires_at.since(base) >= now + TTL / 2);
                        model.insert(key, Known { body, kept: Some((run, row.expires_at.since(base))) });
                    }
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_sequence_agrees_with_the_model(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(play(steps))?;
    }
}
