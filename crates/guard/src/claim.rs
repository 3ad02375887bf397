//! The one-use right to run.
//!
//! A claim is made by winning or taking over a row, cannot be copied, and is consumed by ending it. While the work runs it renews its lease
//! at a third of its length; it never stops the work, because money may be under way.

use std::future::Future;
use std::time::Duration;

use payonce_core::ports::records::{Verb, Write, Written};
use payonce_core::record::{ClaimId, Fence, RecordKey};
use tokio::time::Instant;

use crate::reply::Running;
use crate::writer::{CommitFault, GroupCommit};

/// The right to run under a key. Every later write is guarded by its id and its fence.
///
/// ```compile_fail
/// fn twice(claim: payonce::claim::Claim) -> (payonce::claim::Claim, payonce::claim::Claim) {
///     (claim.clone(), claim)
/// }
/// ```
#[derive(Debug)]
pub struct Claim {
    key: RecordKey,
    claim_id: ClaimId,
    fence: Fence,
    resumed: bool,
    lease: Duration,
    /// By our own clock, counted from before the claim was sent: the row is ours at least until then.
    held_until: Instant,
    /// When the row began, or a moment before; `None` for a resumed row, whose time of expiry was fixed earlier.
    claimed_at: Option<Instant>,
    lost: bool,
}

impl Claim {
    /// `sent` is the moment before the claim or takeover was sent.
    pub(crate) fn won(key: RecordKey, claim_id: ClaimId, fence: Fence, resumed: bool, lease: Duration, sent: Instant) -> Self {
        let claimed_at = (!resumed).then_some(sent);
        Self { key, claim_id, fence, resumed, lease, held_until: sent + lease, claimed_at, lost: false }
    }

    pub(crate) const fn claimed_at(&self) -> Option<Instant> {
        self.claimed_at
    }

    /// Which record.
    pub const fn key(&self) -> &RecordKey {
        &self.key
    }

    /// Which run.
    pub const fn claim_id(&self) -> ClaimId {
        self.claim_id
    }

    /// Its fence.
    pub const fn fence(&self) -> Fence {
        self.fence
    }

    pub(crate) const fn running(&self) -> Running {
        Running { resumed: self.resumed, fence: self.fence, claim_id: self.claim_id }
    }

    /// Until when the row is surely ours.
    pub(crate) const fn held_until(&self) -> Instant {
        self.held_until
    }

    /// Runs the work to its end and renews the lease meanwhile.
    pub(crate) async fn hold<T>(&mut self, writer: &GroupCommit, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        let mut renew_at = self.held_until - self.lease + self.lease / 3;
        loop {
            tokio::select! {
                biased;
                ended = &mut work => return ended,
                () = tokio::time::sleep_until(renew_at), if !self.lost => {
                    let sent = Instant::now();
                    // The work goes on while the renewal is written; one that is no longer waited for is not written at all.
                    let renewed = tokio::select! {
                        biased;
                        ended = &mut work => return ended,
                        renewed = writer.write(self.write(Verb::Renew(self.lease))) => renewed,
                    };
                    renew_at = self.renewed(renewed, sent);
                }
            }
        }
    }

    fn renewed(&mut self, renewed: Result<Written, CommitFault>, sent: Instant) -> Instant {
        match renewed {
            Ok(Written::Applied) => {
                self.held_until = sent + self.lease;
                sent + self.lease / 3
            }
            Ok(Written::Refused) => {
                tracing::warn!(tenant = %self.key.tenant, scope = %self.key.scope, fence = %self.fence, "the lease was lost while its work runs");
                self.lost = true;
                sent
            }
            Err(fault) => {
                tracing::warn!(%fault, "a lease could not be renewed");
                Instant::now() + (self.lease / 10).min(Duration::from_secs(1))
            }
        }
    }

    pub(crate) fn write(&self, verb: Verb) -> Write {
        Write { key: self.key.clone(), claim_id: self.claim_id, fence: self.fence, verb }
    }
}
