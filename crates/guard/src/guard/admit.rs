//! Who may run: claim, and where a row is met, decide on it by the table of I8 and act on the decision.

use std::time::Duration;

use payonce_core::clock::{Timestamp, random};
use payonce_core::ports::records::{NewClaim, Seen, TakeOver, Verb, Write, Written};
use payonce_core::record::decision::{Decision, decide};
use payonce_core::record::{ClaimId, Record, RecordKey};
use payonce_core::secret::{KeyedDigest, equal_in_constant_time};
use tokio::time::Instant;

use super::{ASK_AGAIN, Guard, answer_place};
use crate::answer::Answer;
use crate::claim::Claim;
use crate::policy::InFlight;
use crate::reply::{Refusal, Reply, Request};
use crate::writer::CommitFault;

/// How often a row may change between reading and acting before the request is told to come back.
const MAX_RACES: u32 = 8;
/// How a waiting repeat polls a run of another process: quickly at first, then slower.
const POLL: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

pub(super) enum Admitted {
    Run(Claim),
    Answer(Reply),
}

/// What a look at a row leads to.
enum Step {
    Done(Admitted),
    /// It changed under our eyes: look again.
    Again,
    /// Somebody runs.
    Wait {
        retry_after: Duration,
    },
}

impl Guard {
    pub(super) async fn admit(&self, request: &Request, digest: &KeyedDigest) -> Admitted {
        // One id for all tries, so that a try whose answer was lost is recognised by the next.
        let claim_id = ClaimId(uuid::Builder::from_random_bytes(random(self.inner.entropy.as_ref())).into_uuid());
        let wait_until = match request.route.in_flight {
            InFlight::Refuse => None,
            InFlight::Wait { at_most } => Some(Instant::now() + at_most),
        };
        let (mut races, mut pause) = (0, POLL.0);
        let mut undo = Verb::Release;
        loop {
            // Taken before the look, so that a run that ends between look and wait is not missed.
            let ended = self.inner.local.ended(&request.key);
            let ended = ended.as_ref().map(|ended| ended.notified());
            let step = match self.look(request, digest, claim_id, &mut undo).await {
                Ok(step) => step,
                Err(fault) => return Admitted::Answer(Reply::Refused(self.not_admitted(request, claim_id, undo, &fault))),
            };
            match step {
                Step::Done(admitted) => return admitted,
                Step::Again if races < MAX_RACES => races += 1,
                Step::Again => return Admitted::Answer(Reply::Refused(Refusal::InUse { retry_after: ASK_AGAIN })),
                Step::Wait { retry_after } => {
                    let Some(until) = wait_until.filter(|until| Instant::now() < *until) else {
                        return Admitted::Answer(Reply::Refused(Refusal::InUse { retry_after }));
                    };
                    let poll = tokio::time::sleep_until(until.min(Instant::now() + pause));
                    match ended {
                        // Woken in time in most cases; the poll is for a run that was taken over elsewhere.
                        Some(ended) => tokio::select! { () = ended => {}, () = poll => {} },
                        None => poll.await,
                    }
                    pause = (pause * 2).min(POLL.1);
                }
            }
        }
    }

    /// `undo` is what frees the row again should the store's answer be lost.
    async fn look(&self, request: &Request, digest: &KeyedDigest, claim_id: ClaimId, undo: &mut Verb) -> Result<Step, CommitFault> {
        let sent = Instant::now();
        let lease = request.route.lease.unwrap_or(self.inner.policy.lease);
        let ttl = request.route.ttl.unwrap_or(self.inner.policy.ttl);
        let row = NewClaim { key: request.key.clone(), fingerprint: digest.clone(), claim_id, lease, ttl };
        let won = |fence, resumed| Step::Done(Admitted::Run(Claim::won(request.key.clone(), claim_id, fence, resumed, lease, sent)));
        let (record, now) = match self.inner.writer.claim(row).await? {
            Seen::Won { fence } => return Ok(won(fence, false)),
            Seen::Found { record, now } => (record, now),
        };
        let Some(matches) = self.matches(&record, digest, &request.canonical) else {
            return Ok(unreadable(&record, now));
        };
        let decision = decide(&record, now, matches, request.route.resumable);
        match decision {
            Decision::Replay => {
                let reply = self.replay(&record);
                if let Reply::Replayed(answer) = &reply {
                    self.inner.cache.put(&record.key, digest, answer, sent + record.expires_at.since(now));
                }
                Ok(done(reply))
            }
            Decision::Mismatch => Ok(done(Reply::Refused(Refusal::Mismatch))),
            Decision::OutcomeUnknown => Ok(done(Reply::Refused(Refusal::OutcomeUnknown))),
            Decision::InUse { retry_after } => Ok(Step::Wait { retry_after }),
            Decision::ParkLapsed => match self.inner.writer.park_lapsed(&record.key, record.claim_id, record.fence).await? {
                Written::Applied => Ok(done(Reply::Refused(Refusal::OutcomeUnknown))),
                Written::Refused => Ok(Step::Again),
            },
            Decision::Resume | Decision::Reuse => {
                let resumed = decision == Decision::Resume;
                // A row that was parked for long would be answered and expired at once, and then run again as new.
                let short = record.expires_at < now.plus(ttl / 2);
                // A resumed row goes back to parked: an earlier run under it may have moved money, so it is never released unrun.
                *undo = if resumed { Verb::Park(None) } else { Verb::Release };
                let sent = Instant::now();
                let row = TakeOver {
                    key: record.key.clone(),
                    seen_claim: record.claim_id,
                    seen_fence: record.fence,
                    seen_state: record.state,
                    claim_id,
                    fingerprint: digest.clone(),
                    lease,
                    ttl: (!resumed || short).then_some(ttl),
                };
                Ok(match self.inner.writer.take_over(&row).await? {
                    Some(fence) => Step::Done(Admitted::Run(Claim::won(record.key, claim_id, fence, resumed, lease, sent))),
                    None => Step::Again,
                })
            }
        }
    }

    /// Whether the record is of the same request, compared under the key that digested it; `None` where that key is gone.
    pub(super) fn matches(&self, record: &Record, digest: &KeyedDigest, canonical: &[u8]) -> Option<bool> {
        let ours = if record.fingerprint.key_id == digest.key_id {
            digest.clone()
        } else {
            self.inner.ring.digest_with(record.fingerprint.key_id, canonical)?
        };
        Some(equal_in_constant_time(&ours.digest, &record.fingerprint.digest))
    }

    pub(super) fn replay(&self, record: &Record) -> Reply {
        let opened = record.answer.as_ref().and_then(|sealed| self.inner.ring.open(&answer_place(&record.key), sealed).ok());
        match opened.and_then(|kept| Answer::from_kept(&kept).ok()) {
            Some(answer) => Reply::Replayed(answer),
            None => {
                tracing::error!(tenant = %record.key.tenant, scope = %record.key.scope, "a kept answer does not open");
                Reply::Refused(Refusal::Unreadable)
            }
        }
    }

    fn not_admitted(&self, request: &Request, claim_id: ClaimId, undo: Verb, fault: &CommitFault) -> Refusal {
        tracing::warn!(%fault, tenant = %request.key.tenant, scope = %request.key.scope, "a request could not be claimed");
        if fault.is_ambiguous() {
            self.give_up(request.key.clone(), claim_id, undo);
        }
        match fault {
            CommitFault::Full => Refusal::Busy { retry_after: ASK_AGAIN },
            CommitFault::Closed | CommitFault::Store(_) => Refusal::StoreUnavailable { retry_after: ASK_AGAIN },
        }
    }

    /// Undoes a claim that may have landed although the store's answer was lost: nothing was run under it.
    fn give_up(&self, key: RecordKey, claim_id: ClaimId, undo: Verb) {
        let guard = self.clone();
        tokio::spawn(async move {
            let until = Instant::now() + guard.inner.policy.lease;
            let mut pause = POLL.0;
            while Instant::now() < until {
                // Looked at several times: a lost commit may land late.
                match guard.inner.writer.read(key.clone()).await {
                    Ok((Some(record), _)) if record.claim_id == claim_id => {
                        let write = Write { key: record.key, claim_id, fence: record.fence, verb: undo.clone() };
                        if guard.inner.writer.write(write).await.is_ok() {
                            return;
                        }
                    }
                    // Shutting down: the lease will lapse.
                    Err(CommitFault::Closed) => return,
                    Ok(_) | Err(_) => {}
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(guard.inner.policy.lease / 4);
            }
        });
    }
}

fn done(reply: Reply) -> Step {
    Step::Done(Admitted::Answer(reply))
}

/// A record under a key that the ring has lost can neither be compared nor replayed, and is never run over.
fn unreadable(record: &Record, now: Timestamp) -> Step {
    tracing::error!(tenant = %record.key.tenant, scope = %record.key.scope, %now, "a record's fingerprint was made with a key that is gone");
    done(Reply::Refused(Refusal::Unreadable))
}
