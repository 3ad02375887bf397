//! Stored columns as the types of the core, and back.
//!
//! In: a row. Out: a value, or the fault that it cannot be read. Nothing is repaired on the way.

use payonce_core::channel::{AccountName, ChannelName};
use payonce_core::clock::Timestamp;
use payonce_core::id::{ApiKeyId, InboxId, PaymentId, TenantId};
use payonce_core::key::IdempotencyKey;
use payonce_core::payment::Payment;
use payonce_core::ports::StoreFault;
use payonce_core::ports::directory::{Account, ApiKey};
use payonce_core::ports::inbox::{InboxRow, InboxStatus};
use payonce_core::record::{ClaimId, Fence, Record, RecordKey, RecordState};
use payonce_core::secret::{KeyId, KeyedDigest, Sealed};
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::fault::{damaged, unreadable};

/// A column by its place.
pub(crate) fn at<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, StoreFault> {
    row.try_get(column).map_err(|error| StoreFault::Refused(format!("a stored column cannot be read: {error}")))
}

/// A document by its place.
pub(crate) fn doc<T: DeserializeOwned>(row: &Row, column: usize) -> Result<T, StoreFault> {
    serde_json::from_str(at(row, column)?).map_err(|error| unreadable(&error))
}

/// A document as it is stored.
pub(crate) fn json<T: serde::Serialize>(value: &T) -> Result<String, StoreFault> {
    serde_json::to_string(value).map_err(|error| StoreFault::Refused(format!("a document cannot be stored: {error}")))
}

pub(crate) fn number(value: u64) -> Result<i64, StoreFault> {
    i64::try_from(value).map_err(|_| StoreFault::Refused("a version or number is out of range".to_owned()))
}

/// A limit as SQL takes it.
pub(crate) fn bound(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A number of rows.
pub(crate) fn total(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

pub(crate) const fn state_number(state: RecordState) -> i16 {
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

/// The columns of `records/find`, and those of `records/read` behind its first.
pub(crate) fn record(row: &Row, first: usize, key: RecordKey) -> Result<Record, StoreFault> {
    let state = match at::<i16>(row, first + 3)? {
        0 => RecordState::Running,
        1 => RecordState::Parked,
        2 => RecordState::Answered,
        _ => return Err(damaged("record")),
    };
    Ok(Record {
        key,
        fingerprint: fingerprint(at(row, first)?).ok_or_else(|| damaged("record"))?,
        claim_id: ClaimId(at(row, first + 1)?),
        fence: Fence(at(row, first + 2)?),
        state,
        created_at: Timestamp(at(row, first + 4)?),
        locked_until: Timestamp(at(row, first + 5)?),
        expires_at: Timestamp(at(row, first + 6)?),
        answer: at::<Option<Vec<u8>>>(row, first + 7)?.map(Sealed::from_bytes),
    })
}

/// As [`record`], with key and scope in the columns behind.
pub(crate) fn record_of(row: &Row, tenant: &TenantId) -> Result<Record, StoreFault> {
    let key = IdempotencyKey::parse(at(row, 8)?).map_err(|_| damaged("record"))?;
    record(row, 0, RecordKey { tenant: tenant.clone(), scope: at(row, 9)?, key })
}

/// Puts an aggregate together from rows of kind and document, in order.
#[derive(Debug, Default)]
pub(crate) struct Aggregate(Option<Payment>);

impl Aggregate {
    /// Takes the next row. A payment's own row comes first.
    pub(crate) fn take(&mut self, kind: i32, row: &Row, column: usize) -> Result<(), StoreFault> {
        match (kind, &mut self.0) {
            (0, slot) => *slot = Some(doc(row, column)?),
            (1, Some(payment)) => payment.attempts.push(doc(row, column)?),
            (2, Some(payment)) => payment.captures.push(doc(row, column)?),
            (3, Some(payment)) => payment.refunds.push(doc(row, column)?),
            (4, Some(payment)) => payment.surpluses.push(doc(row, column)?),
            (_, Some(_) | None) => return Err(damaged("payment")),
        }
        Ok(())
    }

    /// The aggregate, if there was one.
    pub(crate) fn finish(self) -> Option<Payment> {
        self.0
    }
}

pub(crate) fn tenant(text: &str) -> Result<TenantId, StoreFault> {
    TenantId::parse(text).ok_or_else(|| damaged("tenant"))
}

pub(crate) fn payment_id(text: &str) -> Result<PaymentId, StoreFault> {
    PaymentId::parse(text).ok_or_else(|| damaged("payment id"))
}

/// The columns of `inbox/row`.
pub(crate) fn inbox_row(row: &Row) -> Result<InboxRow, StoreFault> {
    let lost = || damaged("notification");
    Ok(InboxRow {
        tenant: tenant(at(row, 0)?)?,
        id: InboxId::parse(at(row, 1)?).ok_or_else(lost)?,
        channel: ChannelName::parse(at(row, 2)?).ok_or_else(lost)?,
        account: AccountName::parse(at(row, 3)?).ok_or_else(lost)?,
        status: InboxStatus::parse(at(row, 4)?).ok_or_else(lost)?,
        payment_id: at::<Option<&str>>(row, 5)?.map(payment_id).transpose()?,
        note: at(row, 6)?,
        received_at: Timestamp(at(row, 7)?),
        tries: u32::try_from(at::<i64>(row, 8)?).map_err(|_| lost())?,
        notification: doc(row, 9)?,
        raw: Sealed::from_bytes(at(row, 10)?),
    })
}

/// The columns of `directory/api_key`.
pub(crate) fn api_key(row: &Row) -> Result<ApiKey, StoreFault> {
    let lost = || damaged("API key");
    Ok(ApiKey {
        id: ApiKeyId::parse(at(row, 0)?).ok_or_else(lost)?,
        tenant: tenant(at(row, 1)?)?,
        label: at(row, 2)?,
        hash: at::<&[u8]>(row, 3)?.try_into().map_err(|_| lost())?,
        created_at: Timestamp(at(row, 4)?),
        revoked_at: at::<Option<i64>>(row, 5)?.map(Timestamp),
    })
}

/// The columns of `directory/account`.
pub(crate) fn account(row: &Row) -> Result<Account, StoreFault> {
    let lost = || damaged("account");
    Ok(Account {
        name: AccountName::parse(at(row, 0)?).ok_or_else(lost)?,
        tenant: tenant(at(row, 1)?)?,
        channel: ChannelName::parse(at(row, 2)?).ok_or_else(lost)?,
        settings: Sealed::from_bytes(at(row, 3)?),
        created_at: Timestamp(at(row, 4)?),
    })
}

/// Text for a column. U+0000, which PostgreSQL's text cannot hold, only ever comes from a channel's words for people.
pub(crate) fn text(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
