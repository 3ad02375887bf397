//! The loop of a worker.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use payonce_core::clock::{Entropy, random};
use payonce_flows::FlowFault;
use payonce_flows::ledger::Wake;
use tokio::sync::watch;

use crate::observe::worker_failed;

/// The longest pause after rounds that failed.
const BACK_OFF_MAX: Duration = Duration::from_secs(30);

/// A job: runs once, says whether more may be waiting.
pub(super) type Job = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<bool, FlowFault>> + Send>> + Send + Sync>;

/// Boxes a job.
pub(super) fn job<F>(run: impl Fn() -> F + Send + Sync + 'static) -> Job
where
    F: Future<Output = Result<bool, FlowFault>> + Send + 'static,
{
    Box::new(move || Box::pin(run()))
}

/// What wakes a worker before its time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wakes {
    Settle,
    Publish,
    Reconcile,
    Nothing,
}

pub(super) struct Beat {
    pub(super) name: &'static str,
    pub(super) every: Duration,
    pub(super) entropy: Arc<dyn Entropy>,
}

/// Runs the job until it is told to stop. A round that has begun is finished.
pub(super) async fn beat(beat: Beat, wake: Arc<Wake>, wakes: Wakes, mut stop: watch::Receiver<bool>, job: Job) {
    let mut failures = 0u32;
    while !*stop.borrow() {
        let pause = match job().await {
            Ok(true) => {
                failures = 0;
                tokio::task::yield_now().await;
                continue;
            }
            Ok(false) => {
                failures = 0;
                beat.every
            }
            Err(fault) => {
                failures = failures.saturating_add(1);
                tracing::warn!(worker = beat.name, %fault, failures, "a round failed");
                worker_failed(beat.name);
                beat.every.saturating_mul(2u32.saturating_pow(failures.min(10))).min(BACK_OFF_MAX)
            }
        };
        let woken = async {
            match wakes {
                // After a failure the pause is kept: being woken does not repair a store.
                _ if failures > 0 => std::future::pending().await,
                Wakes::Settle => wake.settle.notified().await,
                Wakes::Publish => wake.publish.notified().await,
                Wakes::Reconcile => wake.reconcile.notified().await,
                Wakes::Nothing => std::future::pending().await,
            }
        };
        tokio::select! {
            () = tokio::time::sleep(jittered(pause, beat.entropy.as_ref())) => {}
            () = woken => {}
            changed = stop.changed() => if changed.is_err() { return },
        }
    }
}

/// Up to a quarter more or less, so that nodes do not march in step.
fn jittered(pause: Duration, entropy: &dyn Entropy) -> Duration {
    let [byte] = random::<1>(entropy);
    pause.mul_f64(0.75 + f64::from(byte) / 510.0)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use payonce_core::clock::{Fixed, Timestamp};
    use payonce_core::ports::StoreFault;

    use super::*;

    fn beat_of(every: Duration) -> Beat {
        Beat { name: "test", every, entropy: Arc::new(Fixed::new(Timestamp(0), 1)) }
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_batch_is_followed_at_once_a_wake_ends_the_pause_and_stop_ends_all() {
        let (told, stop) = watch::channel(false);
        let (wake, runs) = (Arc::new(Wake::default()), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&runs);
        let work = job(move || {
            let run = counted.fetch_add(1, Ordering::SeqCst);
            async move { Ok(run < 2) }
        });
        let task = tokio::spawn(beat(beat_of(Duration::from_secs(3600)), Arc::clone(&wake), Wakes::Settle, stop, work));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(runs.load(Ordering::SeqCst), 3, "two full batches and the one that was not");
        wake.settle.notify_one();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(runs.load(Ordering::SeqCst), 4);
        told.send(true).expect("a listener");
        task.await.expect("ended");
    }

    #[tokio::test(start_paused = true)]
    async fn failures_back_off_to_half_a_minute() {
        let (_told, stop) = watch::channel(false);
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let work = job(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Err(FlowFault::Store(StoreFault::Unavailable("down".to_owned()))) }
        });
        let wake = Arc::new(Wake::default());
        let task = tokio::spawn(beat(beat_of(Duration::from_secs(1)), Arc::clone(&wake), Wakes::Publish, stop, work));
        tokio::time::sleep(Duration::from_secs(600)).await;
        let seen = runs.load(Ordering::SeqCst);
        assert!((15..40).contains(&seen), "{seen} rounds in ten minutes");
        task.abort();
    }
}
