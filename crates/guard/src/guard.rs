//! The engine: a request with a key comes in, one reply goes out, and the work runs at most once at a time and once to its end.
//!
//! Admit (claim, decide, take over), run (the lease is renewed meanwhile), finish (the end is stored, then the answer goes out). All
//! three happen in a task of their own: a caller that hangs up stops nothing. It never answers what is not stored, and never
//! decides who may run by anything but the table.

mod admit;
mod finish;

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use payonce_core::clock::Entropy;
use payonce_core::ports::records::Records;
use payonce_core::record::RecordKey;
use payonce_core::secret::{KeyedDigest, Keyring};
use tokio::sync::oneshot;
use tracing::Instrument as _;

use crate::cache::Cache;
use crate::local::{Entered, Local};
use crate::policy::{Policy, PolicyFault};
use crate::reply::{Ending, Refusal, Reply, Request, Running};
use crate::writer::GroupCommit;

use self::admit::Admitted;

/// When a refused caller may ask again where nothing better is known.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Guards requests on one store. Cheap to clone; all clones are one guard.
#[derive(Clone)]
pub struct Guard {
    inner: Arc<Inner>,
}

struct Inner {
    writer: GroupCommit,
    ring: Arc<Keyring>,
    entropy: Arc<dyn Entropy>,
    policy: Policy,
    local: Arc<Local>,
    cache: Cache,
}

impl Guard {
    /// Starts a guard with a writer of its own on `records`. Must be called inside a tokio runtime.
    pub fn start(records: Arc<dyn Records>, ring: Arc<Keyring>, entropy: Arc<dyn Entropy>, policy: Policy) -> Result<Self, PolicyFault> {
        policy.check()?;
        let writer = GroupCommit::start(records, policy.writer);
        let (local, cache) = (Arc::new(Local::new()), Cache::new(policy.cache_bytes));
        Ok(Self { inner: Arc::new(Inner { writer, ring, entropy, policy, local, cache }) })
    }

    /// Runs `work` under the request's key, or answers without running it.
    ///
    /// The work runs in a task of its own and goes on to its end if this future is dropped. A [`Reply::Fresh`] is returned only after the
    /// end of the run is stored. A panic of the work parks the key and is answered [`Refusal::Broken`].
    pub async fn run<W, F>(&self, request: Request, work: W) -> Reply
    where
        W: FnOnce(Running) -> F + Send + 'static,
        F: Future<Output = Ending> + Send + 'static,
    {
        let digest = self.inner.ring.digest(&request.canonical);
        if let Some(answer) = self.inner.cache.look(&request.key, &digest) {
            return Reply::Replayed(answer);
        }
        let Some(entered) = self.inner.local.enter(self.inner.policy.max_runs) else {
            return Reply::Refused(Refusal::Busy { retry_after: ASK_AGAIN });
        };
        let (answered, answer) = oneshot::channel();
        tokio::spawn(self.clone().serve(request, digest, work, Caller(Some(answered)), entered).in_current_span());
        // The task answers in every branch; it is only cut off when the whole runtime goes down.
        answer.await.unwrap_or(Reply::Refused(Refusal::NotStored))
    }

    async fn serve<W, F>(self, request: Request, digest: KeyedDigest, work: W, mut caller: Caller, entered: Entered)
    where
        W: FnOnce(Running) -> F + Send + 'static,
        F: Future<Output = Ending> + Send + 'static,
    {
        let mut claim = match self.admit(&request, &digest).await {
            Admitted::Run(claim) => claim,
            Admitted::Answer(reply) => return caller.answer(reply),
        };
        let marked = self.inner.local.mark(&request.key);
        if payonce_failpoint::hit("guard.claimed").await {
            return;
        }
        let running = claim.running();
        // Inside the block, so that a panic while the future is made is caught like one of the future itself.
        let work = AssertUnwindSafe(async move { work(running).await }).catch_unwind();
        let ending = claim.hold(&self.inner.writer, work).await.unwrap_or_else(|_| {
            tracing::error!(tenant = %request.key.tenant, scope = %request.key.scope, "guarded work panicked; its key is parked");
            Ending::Broken
        });
        let reply = self.finish(claim, &request, &digest, ending, &mut caller).await;
        // Stored: repeats that wait here may look now.
        drop(marked);
        if payonce_failpoint::hit("guard.finished").await {
            return;
        }
        caller.answer(reply);
        drop(entered);
    }

    /// Stops taking requests, waits until those that run have ended (at most `at_most`), and drains the writer. Whether all had ended.
    pub async fn shutdown(&self, at_most: Duration) -> bool {
        self.inner.writer.drain_claims().await;
        let ended = tokio::time::timeout(at_most, self.inner.local.empty()).await.is_ok();
        self.inner.writer.drain_writes().await;
        ended
    }

    /// The guard's limits.
    pub fn policy(&self) -> &Policy {
        &self.inner.policy
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("writer", &self.inner.writer).field("policy", &self.inner.policy).finish_non_exhaustive()
    }
}

/// Whoever waits for the reply. Gets it once.
struct Caller(Option<oneshot::Sender<Reply>>);

impl Caller {
    fn answer(&mut self, reply: Reply) {
        if let Some(caller) = self.0.take() {
            // A caller that hung up does not need it; the record has it.
            let _ = caller.send(reply);
        }
    }
}

/// Names the row and column for sealing, so that an answer moved to another key does not open.
fn answer_place(key: &RecordKey) -> String {
    // Neither a tenant nor a key can hold a line break, so no two keys share a place.
    format!("guard answer\n{}\n{}\n{}", key.tenant, key.key, key.scope)
}
