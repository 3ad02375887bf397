//! The end of a run: stored first, answered then (B007). Where the store refuses the late writer, the answer is the store's truth.

use std::time::Duration;

use payonce_core::ports::StoreFault;
use payonce_core::ports::records::{Verb, Write, Written};
use payonce_core::record::RecordState;
use payonce_core::record::decision::{Decision, decide};
use payonce_core::secret::KeyedDigest;
use tokio::time::Instant;

use super::{Caller, Guard, answer_place};
use crate::answer::Answer;
use crate::claim::Claim;
use crate::reply::{Ending, Refusal, Reply, Request};
use crate::writer::CommitFault;

/// How long a failed write of an end waits before the next try.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// A run that ends when its lease has lapsed already still gets so long to store its end or learn the truth.
const LATE_GRACE: Duration = Duration::from_secs(5);

impl Guard {
    /// Stores the end and says what to answer. Answers the caller by itself, with [`Refusal::NotStored`], if the store is still down when
    /// the lease ends, and then goes on trying: a result that lands late is better than none.
    pub(super) async fn finish(&self, claim: Claim, request: &Request, digest: &KeyedDigest, ending: Ending, caller: &mut Caller) -> Reply {
        let answer_by = claim.held_until().max(Instant::now() + LATE_GRACE);
        let stored = self.store(claim, request, digest, ending);
        tokio::pin!(stored);
        tokio::select! {
            biased;
            reply = &mut stored => return reply,
            () = tokio::time::sleep_until(answer_by) => {}
        }
        tracing::error!(tenant = %request.key.tenant, scope = %request.key.scope, "a result could not be stored before its lease ended");
        caller.answer(Reply::Refused(Refusal::NotStored));
        stored.await
    }

    async fn store(&self, claim: Claim, request: &Request, digest: &KeyedDigest, ending: Ending) -> Reply {
        let (mut write, mut reply) = self.as_write(&claim, ending);
        let give_up = Instant::now() + self.inner.policy.finish_for;
        let mut pause = PAUSE.0;
        loop {
            let fault = match self.inner.writer.write(write.clone()).await {
                Ok(Written::Applied) => {
                    if let (Verb::Keep(_), Reply::Fresh(answer)) = (&write.verb, &reply) {
                        self.remember(&claim, request, digest, answer);
                    }
                    return reply;
                }
                Ok(Written::Refused) => match self.truth(&write, request, digest, &reply).await {
                    Ok(truth) => return truth,
                    Err(fault) => fault,
                },
                Err(fault) => fault,
            };
            tracing::warn!(%fault, tenant = %request.key.tenant, scope = %request.key.scope, "the end of a run could not be stored yet");
            match (&fault, &write.verb) {
                // The store does not take this answer, and never will. The key must not stay running for that.
                (CommitFault::Store(StoreFault::Refused(_)), Verb::Keep(_)) => {
                    write.verb = Verb::Park(None);
                    reply = Reply::Refused(Refusal::NotStored);
                }
                (CommitFault::Store(StoreFault::Refused(_)), Verb::Park(Some(_))) => write.verb = Verb::Park(None),
                (CommitFault::Closed, Verb::Renew(_) | Verb::Keep(_) | Verb::Release | Verb::Park(_)) => {
                    return Reply::Refused(Refusal::NotStored);
                }
                (CommitFault::Full | CommitFault::Store(_), Verb::Renew(_) | Verb::Keep(_) | Verb::Release | Verb::Park(_)) => {}
            }
            if Instant::now() >= give_up {
                return Reply::Refused(Refusal::NotStored);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// Puts a kept answer at hand for replays, where it is known until when the row holds.
    fn remember(&self, claim: &Claim, request: &Request, digest: &KeyedDigest, answer: &Answer) {
        let ttl = request.route.ttl.unwrap_or(self.inner.policy.ttl);
        // A repeat of an answer over the limit gets a marker, which only the store has.
        if let Some(claimed_at) = claim.claimed_at()
            && answer.is_kept_whole(self.inner.policy.max_answer_bytes)
        {
            self.inner.cache.put(claim.key(), digest, answer, claimed_at + ttl);
        }
    }

    fn as_write(&self, claim: &Claim, ending: Ending) -> (Write, Reply) {
        match ending {
            Ending::Keep(answer) => (claim.write(Verb::Keep(self.seal(claim, &answer))), Reply::Fresh(answer)),
            Ending::Release(answer) => (claim.write(Verb::Release), Reply::Fresh(answer)),
            Ending::Park(answer) => (claim.write(Verb::Park(Some(self.seal(claim, &answer)))), Reply::Fresh(answer)),
            Ending::Broken => (claim.write(Verb::Park(None)), Reply::Refused(Refusal::Broken)),
        }
    }

    fn seal(&self, claim: &Claim, answer: &Answer) -> payonce_core::secret::Sealed {
        let kept = answer.to_kept(self.inner.policy.max_answer_bytes);
        self.inner.ring.seal(self.inner.entropy.as_ref(), &answer_place(claim.key()), &kept)
    }

    /// What is true about a row that refused our write: it was taken over, released and claimed anew, parked, or our write had landed.
    async fn truth(&self, write: &Write, request: &Request, digest: &KeyedDigest, reply: &Reply) -> Result<Reply, CommitFault> {
        let (record, now) = self.inner.writer.read(write.key.clone()).await?;
        let unknown = Reply::Refused(Refusal::OutcomeUnknown);
        let Some(record) = record else {
            return Ok(match write.verb {
                Verb::Release => reply.clone(),
                // Removed by an operator.
                Verb::Keep(_) | Verb::Park(_) | Verb::Renew(_) => unknown,
            });
        };
        if record.claim_id == write.claim_id && record.fence == write.fence {
            return Ok(match (record.state, &write.verb) {
                (RecordState::Answered, Verb::Keep(_)) | (RecordState::Parked, Verb::Park(_)) => reply.clone(),
                // Somebody saw our lease lapse and parked it. What we would answer could not be repeated.
                (RecordState::Parked, Verb::Keep(_) | Verb::Release | Verb::Renew(_)) => unknown,
                (RecordState::Answered, Verb::Park(_) | Verb::Release | Verb::Renew(_))
                | (RecordState::Running, Verb::Keep(_) | Verb::Park(_) | Verb::Release | Verb::Renew(_)) => unknown,
            });
        }
        let matches = self.matches(&record, digest, &request.canonical).unwrap_or(false);
        Ok(match decide(&record, now, matches, request.route.resumable) {
            Decision::Replay => self.replay(&record),
            Decision::InUse { retry_after } => Reply::Refused(Refusal::InUse { retry_after }),
            Decision::Mismatch | Decision::OutcomeUnknown | Decision::ParkLapsed | Decision::Resume | Decision::Reuse => unknown,
        })
    }
}
