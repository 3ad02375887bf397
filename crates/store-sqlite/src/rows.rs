//! Stored columns as the types of the core, and back.
//!
//! In: a row. Out: a value, or the fault that it cannot be read. Nothing is repaired on the way.

use payonce_core::channel::{AccountName, ChannelName};
use payonce_core::clock::Timestamp;
use payonce_core::id::{ApiKeyId, InboxId, PaymentId, TenantId};
use payonce_core::key::IdempotencyKey;
use payonce_core::payment::Payment;
use payonce_core::ports::directory::{Account, ApiKey};
use payonce_core::ports::inbox::{InboxRow, InboxStatus};
use payonce_core::record::{ClaimId, Fence, Record, RecordKey, RecordState};
use payonce_core::secret::{KeyId, KeyedDigest, Sealed};
use rusqlite::Row;
use uuid::Uuid;

use crate::fault::Fault;

pub(crate) const fn state_number(state: RecordState) -> i64 {
    match state {
        RecordState::Running => 0,
        RecordState::Parked => 1,
        RecordState::Answered => 2,
    }
}

/// Key id and digest in one column: 36 bytes.
pub(crate) fn fingerprint_bytes(digest: &KeyedDigest) -> Vec<u8> {
    [digest.key_id.0.as_slice(), digest.digest.as_slice()].concat()
}

fn fingerprint(bytes: &[u8]) -> Option<KeyedDigest> {
    let (key_id, digest) = bytes.split_first_chunk::<4>()?;
    Some(KeyedDigest { key_id: KeyId(*key_id), digest: digest.try_into().ok()? })
}

/// The columns of `records/read` and `records/find`.
pub(crate) fn record(row: &Row<'_>, key: RecordKey) -> Result<Record, Fault> {
    let damaged = || Fault::damaged("record");
    let state = match row.get::<_, i64>(3)? {
        0 => RecordState::Running,
        1 => RecordState::Parked,
        2 => RecordState::Answered,
        _ => return Err(damaged()),
    };
    Ok(Record {
        key,
        fingerprint: fingerprint(row.get_ref(0)?.as_bytes().map_err(|_| damaged())?).ok_or_else(damaged)?,
        claim_id: ClaimId(Uuid::from_slice(row.get_ref(1)?.as_bytes().map_err(|_| damaged())?).map_err(|_| damaged())?),
        fence: Fence(row.get(2)?),
        state,
        created_at: Timestamp(row.get(4)?),
        locked_until: Timestamp(row.get(5)?),
        expires_at: Timestamp(row.get(6)?),
        answer: row.get::<_, Option<Vec<u8>>>(7)?.map(Sealed::from_bytes),
    })
}

/// As [`record`], with key and scope in the columns behind.
pub(crate) fn record_of(row: &Row<'_>, tenant: &TenantId) -> Result<Record, Fault> {
    let key = IdempotencyKey::parse(&row.get::<_, String>(8)?).map_err(|_| Fault::damaged("record"))?;
    record(row, RecordKey { tenant: tenant.clone(), scope: row.get(9)?, key })
}

/// Puts an aggregate together from rows of kind and document, in order.
#[derive(Debug, Default)]
pub(crate) struct Aggregate(Option<Payment>);

impl Aggregate {
    /// Takes the next row. A payment's own row comes first.
    pub(crate) fn take(&mut self, kind: i64, doc: &str) -> Result<(), Fault> {
        match (kind, &mut self.0) {
            (0, slot) => *slot = Some(serde_json::from_str(doc)?),
            (1, Some(payment)) => payment.attempts.push(serde_json::from_str(doc)?),
            (2, Some(payment)) => payment.captures.push(serde_json::from_str(doc)?),
            (3, Some(payment)) => payment.refunds.push(serde_json::from_str(doc)?),
            (4, Some(payment)) => payment.surpluses.push(serde_json::from_str(doc)?),
            (_, Some(_) | None) => return Err(Fault::damaged("payment")),
        }
        Ok(())
    }

    /// The aggregate, if there was one.
    pub(crate) fn finish(self) -> Option<Payment> {
        self.0
    }
}

pub(crate) fn tenant(text: &str) -> Result<TenantId, Fault> {
    TenantId::parse(text).ok_or_else(|| Fault::damaged("tenant"))
}

pub(crate) fn payment_id(text: &str) -> Result<PaymentId, Fault> {
    PaymentId::parse(text).ok_or_else(|| Fault::damaged("payment id"))
}

/// The columns of `inbox/row`.
pub(crate) fn inbox_row(row: &Row<'_>) -> Result<InboxRow, Fault> {
    let damaged = || Fault::damaged("notification");
    let payment = row.get::<_, Option<String>>(5)?;
    Ok(InboxRow {
        tenant: tenant(&row.get::<_, String>(0)?)?,
        id: InboxId::parse(&row.get::<_, String>(1)?).ok_or_else(damaged)?,
        channel: ChannelName::parse(&row.get::<_, String>(2)?).ok_or_else(damaged)?,
        account: AccountName::parse(&row.get::<_, String>(3)?).ok_or_else(damaged)?,
        status: InboxStatus::parse(&row.get::<_, String>(4)?).ok_or_else(damaged)?,
        payment_id: payment.map(|text| payment_id(&text)).transpose()?,
        note: row.get(6)?,
        received_at: Timestamp(row.get(7)?),
        tries: row.get(8)?,
        notification: serde_json::from_str(&row.get::<_, String>(9)?)?,
        raw: Sealed::from_bytes(row.get(10)?),
    })
}

/// The columns of `directory/api_key`.
pub(crate) fn api_key(row: &Row<'_>) -> Result<ApiKey, Fault> {
    let damaged = || Fault::damaged("API key");
    Ok(ApiKey {
        id: ApiKeyId::parse(&row.get::<_, String>(0)?).ok_or_else(damaged)?,
        tenant: tenant(&row.get::<_, String>(1)?)?,
        label: row.get(2)?,
        hash: row.get::<_, Vec<u8>>(3)?.try_into().map_err(|_| damaged())?,
        created_at: Timestamp(row.get(4)?),
        revoked_at: row.get::<_, Option<i64>>(5)?.map(Timestamp),
    })
}

/// The columns of `directory/account`.
pub(crate) fn account(row: &Row<'_>) -> Result<Account, Fault> {
    let damaged = || Fault::damaged("account");
    Ok(Account {
        name: AccountName::parse(&row.get::<_, String>(0)?).ok_or_else(damaged)?,
        tenant: tenant(&row.get::<_, String>(1)?)?,
        channel: ChannelName::parse(&row.get::<_, String>(2)?).ok_or_else(damaged)?,
        settings: Sealed::from_bytes(row.get(3)?),
        created_at: Timestamp(row.get(4)?),
    })
}
