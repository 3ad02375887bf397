//! Notifications on their way to the merchant: when, in what order, how often, and how they are spoilt on demand.
//!
//! What comes in: notices of the channels' sides, and modes set by control calls. What goes out: POSTs to loopback addresses. By default
//! a notice is sent at once after its state change, and again by the channel's schedule (on the channels' clock) until it is acknowledged.

mod outbox;
mod post;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use payonce_channels::books::{Notice, Variant};
use payonce_core::clock::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::wire::Shared;
use outbox::Outbox;
pub(crate) use outbox::Standing;
use post::Post;

/// How a reference's notifications are treated from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// Sent at once.
    Deliver,
    /// Kept back until `release` or `deliver`.
    Hold,
    /// Lost, and not sent again by the schedule.
    Drop,
    /// Kept back until there are two, which are then sent the other way round.
    Reorder,
    /// The buyer pays at once, and the notification is delivered before our request is answered.
    Early,
}

/// What became of one delivery.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Delivered {
    pub(crate) at: String,
    pub(crate) variant: &'static str,
    /// `null` where no answer came.
    pub(crate) status: Option<u16>,
    /// The answer's beginning.
    pub(crate) body: Option<String>,
    pub(crate) acknowledged: bool,
    pub(crate) error: Option<String>,
}

/// Everything about notifications.
#[derive(Debug)]
pub(crate) struct Delivery {
    outbox: Mutex<Outbox>,
    post: Post,
    wake: Notify,
    /// Deliveries that were begun by themselves and have not ended, and the word that one has.
    under_way: AtomicUsize,
    ended: Notify,
    /// Time passes in one place at a time: in the pump, or in a control call that moves the clock.
    passing: tokio::sync::Mutex<()>,
}

/// An early notification is waited for so long before our request is answered.
const EARLY_WAIT: Duration = Duration::from_secs(5);
/// Deliveries that are under way are waited for so long by what follows from them.
const CALM_WAIT: Duration = Duration::from_secs(10);
/// The pump looks at the channels' clocks at least so often, for what expires.
const TICK: Duration = Duration::from_secs(1);

impl Delivery {
    pub(crate) fn new(notify_allowed: Vec<String>) -> Self {
        Self {
            outbox: Mutex::default(),
            post: Post::new(notify_allowed),
            wake: Notify::new(),
            under_way: AtomicUsize::new(0),
            ended: Notify::new(),
            passing: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no delivery is under way, so that what is decided next knows their answers. Gives up after a while.
    pub(crate) async fn calm(&self) {
        let calm = async {
            loop {
                let ended = self.ended.notified();
                if self.under_way.load(Ordering::SeqCst) == 0 {
                    return;
                }
                ended.await;
            }
        };
        let _ = tokio::time::timeout(CALM_WAIT, calm).await;
    }
}

/// Counts a delivery as long as it lives, however it ends.
struct UnderWay(Arc<Shared>);

impl UnderWay {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.delivery.under_way.fetch_add(1, Ordering::SeqCst);
        Self(shared.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.delivery.under_way.fetch_sub(1, Ordering::SeqCst);
        self.0.delivery.ended.notify_waiters();
    }
}

/// Sends one after the other, by itself. It counts as under way before this returns.
fn launch(shared: &Arc<Shared>, numbers: Vec<u64>) -> JoinHandle<()> {
    let under_way = UnderWay::new(shared);
    let shared = shared.clone();
    tokio::spawn(async move {
        send_all(shared, numbers).await;
        drop(under_way);
    })
}

/// Takes in what a side wants told. `answering` is given where a request waits for its answer: then early notices are delivered first.
pub(crate) async fn take_in(shared: &Arc<Shared>, channel: &'static str, notices: Vec<Notice>, answering: bool) {
    let mut now = Vec::new();
    let mut early = Vec::new();
    for notice in notices {
        let order_ref = notice.order_ref.clone();
        let mut outbox = shared.delivery.outbox();
        let mode = outbox.mode(channel, &order_ref);
        let number = outbox.add(channel, notice);
        match mode {
            Mode::Deliver => now.push(number),
            Mode::Early => early.push(number),
            Mode::Hold => outbox.stand(number, Standing::Held),
            Mode::Drop => outbox.stand(number, Standing::Dropped),
            Mode::Reorder => {
                outbox.stand(number, Standing::Held);
                let held = outbox.outstanding(channel, Some(&order_ref));
                if held.len() >= 2 {
                    outbox.set_mode(channel, Some(&order_ref), Mode::Deliver);
                    now.extend(held.into_iter().rev());
                }
            }
        }
    }
    if !early.is_empty() {
        let sent = launch(shared, early);
        if answering {
            // Past the wait it goes on by itself; the answer is given.
            let _ = tokio::time::timeout(EARLY_WAIT, sent).await;
        }
    }
    if !now.is_empty() {
        launch(shared, now);
    }
}

/// Sends one after the other.
pub(crate) async fn send_all(shared: Arc<Shared>, numbers: Vec<u64>) -> Vec<Delivered> {
    let mut done = Vec::with_capacity(numbers.len());
    for number in numbers {
        done.extend(send(&shared, number, Variant::Genuine).await);
    }
    done
}

/// Sends one notice once. A genuine one that is not acknowledged is due again by the schedule. `None` where there is no such notice.
pub(crate) async fn send(shared: &Arc<Shared>, number: u64, variant: Variant) -> Option<Delivered> {
    let (channel, notice) = {
        let mut outbox = shared.delivery.outbox();
        if variant == Variant::Genuine {
            outbox.begin(number);
        }
        outbox.notice(number)?
    };
    let done = send_notice(shared, channel, &notice, variant).await;
    let gaps = shared.side(channel).map(|side| side.redelivery()).unwrap_or_default();
    shared.delivery.outbox().end(number, &done, variant == Variant::Genuine, gaps, shared.clock.now());
    shared.delivery.wake.notify_one();
    Some(done)
}

/// Sends a notice that need not be in the outbox.
pub(crate) async fn send_notice(shared: &Arc<Shared>, channel: &'static str, notice: &Notice, variant: Variant) -> Delivered {
    let now = shared.clock.now();
    let name = match variant {
        Variant::Genuine => "genuine",
        Variant::Forged => "forged",
        Variant::Tampered => "tampered",
        Variant::Stale => "stale",
    };
    let mut done = Delivered { at: now.to_string(), variant: name, status: None, body: None, acknowledged: false, error: None };
    let Some(side) = shared.side(channel) else { return done };
    match shared.delivery.post.send(&notice.url, side.compose(notice, now, variant)).await {
        Ok((status, body)) => {
            done.acknowledged = side.acknowledged(status, &body);
            done.status = Some(status);
            done.body = Some(String::from_utf8_lossy(body.get(..200).unwrap_or(&body)).into_owned());
        }
        Err(why) => {
            tracing::warn!(channel, url = notice.url, why, "a notification was not delivered");
            done.error = Some(why);
        }
    }
    done
}

/// Sends what is due and does what time does, until it is stopped.
pub(crate) async fn pump(shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    loop {
        let next = shared.delivery.outbox().next_due().map_or(TICK, |at| shared.clock.until(at).min(TICK));
        tokio::select! {
            _ = stopped.changed() => return,
            () = shared.delivery.wake.notified() => {}
            () = tokio::time::sleep(next) => {}
        }
        if *stopped.borrow() {
            return;
        }
        let passing = shared.delivery.passing.lock().await;
        shared.tick().await;
        let due = shared.delivery.outbox().take_due(shared.clock.now());
        for number in due {
            launch(&shared, vec![number]);
        }
        drop(passing);
    }
}

/// Moves the clock on, stopping at every moment at which something is due, as if the time had really passed. The answer is what was
/// delivered on the way.
pub(crate) async fn advance(shared: &Arc<Shared>, by: Duration) -> Vec<Delivered> {
    let _passing = shared.delivery.passing.lock().await;
    shared.delivery.calm().await;
    let target = shared.clock.now().plus(by);
    let mut done = Vec::new();
    loop {
        let due = shared.delivery.outbox().next_due();
        let next = [due, shared.wakes_at()].into_iter().flatten().min();
        let stop = next.filter(|at| *at < target).unwrap_or(target);
        shared.clock.move_to(stop);
        shared.tick().await;
        // What the tick has begun to tell belongs to this moment.
        shared.delivery.calm().await;
        done.extend(deliver_due(shared).await);
        if stop >= target {
            return done;
        }
    }
}

async fn deliver_due(shared: &Arc<Shared>) -> Vec<Delivered> {
    let due = shared.delivery.outbox().take_due(shared.clock.now());
    let sends = due.into_iter().map(|number| send(shared, number, Variant::Genuine));
    join_all(sends).await.into_iter().flatten().collect()
}

/// When a notice that was tried `tries` times is due again.
fn due_again(tries: usize, gaps: &[Duration], now: Timestamp) -> Option<Timestamp> {
    gaps.get(tries.checked_sub(1)?).map(|gap| now.plus(*gap))
}
