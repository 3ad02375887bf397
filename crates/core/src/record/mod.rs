//! The guard's record of a key: what is stored, and the pure decision on a claim (I8, design table "Guard record").

pub mod decision;

use std::fmt;

use uuid::Uuid;

use crate::clock::Timestamp;
use crate::id::TenantId;
use crate::key::IdempotencyKey;
use crate::secret::{KeyedDigest, Sealed};

/// Tenant, scope (method and route, e.g. `POST /v1/payments`) and the caller's key: together they name a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey {
    /// Whose request.
    pub tenant: TenantId,
    /// Method and route.
    pub scope: String,
    /// The caller's key, byte-exact.
    pub key: IdempotencyKey,
}

/// Names one run. Together with the [`Fence`] it guards every later write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimId(pub Uuid);

/// Goes up by one with each takeover of a record, so that a late writer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub i64);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What a record is in. Stored as 0, 1, 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordState {
    /// Somebody holds the lease, or died holding it. Never expires.
    Running,
    /// The outcome is unknown. Never expires.
    Parked,
    /// An answer is kept. Expires.
    Answered,
}

/// A record as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its name.
    pub key: RecordKey,
    /// The keyed digest of the canonical request.
    pub fingerprint: KeyedDigest,
    /// Which run holds or held it.
    pub claim_id: ClaimId,
    /// How often it was taken over, from 1.
    pub fence: Fence,
    /// Running, parked or answered.
    pub state: RecordState,
    /// When the key was first claimed.
    pub created_at: Timestamp,
    /// Until when the lease holds.
    pub locked_until: Timestamp,
    /// From when an answered record counts as absent. Fixed at the claim.
    pub expires_at: Timestamp,
    /// The sealed answer of an answered record (and, where one was given, of a parked one).
    pub answer: Option<Sealed>,
}
