//! What became of a batch that failed or whose answer was lost.
//!
//! A batch that the store asks to repeat is repeated whole. Any other that was not plainly turned away is taken apart: every row is
//! read back by its claim before anything is tried again, and what is then still open is tried row by row, so that one bad row harms
//! nobody. Nothing is ever tried again blindly: each second try is guarded by the claim id, so a first one that lands late does no harm.

use std::time::Duration;

use payonce_core::ports::StoreFault;
use payonce_core::ports::records::{NewClaim, Seen, TakeOver, Verb, Write, Written};
use payonce_core::record::{Fence, Record, RecordKey, RecordState};

use super::Table;

/// How often a transaction is repeated that the store rolled back (deadlock, serialisation), with a pause that grows.
const REPEATS: u32 = 3;
const REPEAT_PAUSE: Duration = Duration::from_millis(5);

pub(super) async fn claim(table: &Table, rows: &[NewClaim]) -> Vec<Result<Seen, StoreFault>> {
    match repeated(|| table.call(table.records.claim(rows))).await {
        Ok(seen) if seen.len() == rows.len() => rows.iter().zip(seen).map(|(row, seen)| Ok(own_is_won(row, seen))).collect(),
        Ok(_) => claim_apart(table, rows, &StoreFault::Ambiguous("the store miscounted".to_owned())).await,
        Err(fault @ StoreFault::Unavailable(_)) => all_failed(rows.len(), &fault),
        Err(fault @ (StoreFault::Ambiguous(_) | StoreFault::Retry(_) | StoreFault::Refused(_))) => claim_apart(table, rows, &fault).await,
    }
}

async fn claim_apart(table: &Table, rows: &[NewClaim], first: &StoreFault) -> Vec<Result<Seen, StoreFault>> {
    tracing::warn!(rows = rows.len(), fault = %first, "a batch of claims failed and is taken apart");
    let (records, now) = match read_back(table, rows.iter().map(|row| row.key.clone()).collect()).await {
        Ok(read) => read,
        // Whether the batch landed stays open; the caller answers 503 and gives the claim up.
        Err(_) => return all_failed(rows.len(), first),
    };
    let mut results = Vec::with_capacity(rows.len());
    let mut gone = None;
    for (row, record) in rows.iter().zip(records) {
        let result = match (record, &gone) {
            (Some(record), _) => Ok(own_is_won(row, Seen::Found { record: Box::new(record), now })),
            (None, Some(fault)) => Err(StoreFault::clone(fault)),
            (None, None) => claim_one(table, row).await,
        };
        if let Err(fault @ (StoreFault::Unavailable(_) | StoreFault::Ambiguous(_))) = &result {
            // The store went away in the middle. The rest is not dragged through its time-outs one by one.
            gone.get_or_insert_with(|| never_tried(first, fault));
        }
        results.push(result);
    }
    results
}

async fn claim_one(table: &Table, row: &NewClaim) -> Result<Seen, StoreFault> {
    let seen = repeated(|| table.call(table.records.claim(std::slice::from_ref(row)))).await?;
    let seen = seen.into_iter().next().ok_or_else(|| StoreFault::Refused("the store answered nothing".to_owned()))?;
    // The first try may have landed after it was read back: then the row that is found is ours.
    Ok(own_is_won(row, seen))
}

/// A row that is found with our own claim on it was won by a try whose answer was lost.
fn own_is_won(row: &NewClaim, seen: Seen) -> Seen {
    match seen {
        Seen::Found { record, now: _ } if record.claim_id == row.claim_id => Seen::Won { fence: record.fence },
        Seen::Found { .. } | Seen::Won { .. } => seen,
    }
}

pub(super) async fn write(table: &Table, rows: &[Write]) -> Vec<Result<Written, StoreFault>> {
    match repeated(|| table.call(table.records.write(rows))).await {
        Ok(written) if written.len() == rows.len() => written.into_iter().map(Ok).collect(),
        Ok(_) => write_apart(table, rows, &StoreFault::Ambiguous("the store miscounted".to_owned())).await,
        Err(fault @ StoreFault::Unavailable(_)) => all_failed(rows.len(), &fault),
        Err(fault @ (StoreFault::Ambiguous(_) | StoreFault::Retry(_) | StoreFault::Refused(_))) => write_apart(table, rows, &fault).await,
    }
}

async fn write_apart(table: &Table, rows: &[Write], first: &StoreFault) -> Vec<Result<Written, StoreFault>> {
    tracing::warn!(rows = rows.len(), fault = %first, "a batch of writes failed and is taken apart");
    let (records, _) = match read_back(table, rows.iter().map(|row| row.key.clone()).collect()).await {
        Ok(read) => read,
        Err(_) => return all_failed(rows.len(), first),
    };
    let mut results = Vec::with_capacity(rows.len());
    let mut gone = None;
    for (row, record) in rows.iter().zip(records) {
        let result = match (landed(row, record.as_ref()), &gone) {
            (Landed::Yes, _) => Ok(Written::Applied),
            (Landed::Never, _) => Ok(Written::Refused),
            (Landed::NotYet, Some(fault)) => Err(StoreFault::clone(fault)),
            (Landed::NotYet, None) => write_one(table, row).await,
        };
        if let Err(fault @ (StoreFault::Unavailable(_) | StoreFault::Ambiguous(_))) = &result {
            gone.get_or_insert_with(|| never_tried(first, fault));
        }
        results.push(result);
    }
    results
}

async fn write_one(table: &Table, row: &Write) -> Result<Written, StoreFault> {
    let written = repeated(|| table.call(table.records.write(std::slice::from_ref(row)))).await?;
    match written.first() {
        Some(Written::Applied) => Ok(Written::Applied),
        // Perhaps refused only because the first try has landed meanwhile.
        Some(Written::Refused) | None => {
            let (records, _) = read_back(table, vec![row.key.clone()]).await?;
            match landed(row, records.first().and_then(Option::as_ref)) {
                Landed::Yes => Ok(Written::Applied),
                Landed::Never => Ok(Written::Refused),
                Landed::NotYet => Err(StoreFault::Refused("the store refuses a row that is still held".to_owned())),
            }
        }
    }
}

/// Whether a holder's write is in the table.
#[derive(Debug, PartialEq, Eq)]
enum Landed {
    Yes,
    /// The row is still ours and running.
    NotYet,
    /// The row is no longer ours to write.
    Never,
}

fn landed(row: &Write, record: Option<&Record>) -> Landed {
    match (record, &row.verb) {
        // Only its holder releases a row, and an operator only one that is stuck.
        (None, Verb::Release) => Landed::Yes,
        (None, Verb::Renew(_) | Verb::Keep(_) | Verb::Park(_)) => Landed::Never,
        (Some(record), verb) if record.claim_id == row.claim_id && record.fence == row.fence => match (record.state, verb) {
            (RecordState::Running, Verb::Renew(_) | Verb::Keep(_) | Verb::Release | Verb::Park(_)) => Landed::NotYet,
            (RecordState::Answered, Verb::Keep(_)) => Landed::Yes,
            // Parked with our answer, or by somebody who saw our lease lapse: the row says the same either way.
            (RecordState::Parked, Verb::Park(_)) => Landed::Yes,
            (RecordState::Answered, Verb::Renew(_) | Verb::Release | Verb::Park(_))
            | (RecordState::Parked, Verb::Renew(_) | Verb::Keep(_) | Verb::Release) => Landed::Never,
        },
        // Another run at fence 1 stands there only if the row was released first.
        (Some(record), Verb::Release) if record.fence == Fence(1) => Landed::Yes,
        (Some(_), Verb::Renew(_) | Verb::Keep(_) | Verb::Release | Verb::Park(_)) => Landed::Never,
    }
}

pub(super) async fn take_over(table: &Table, row: &TakeOver) -> Result<Option<Fence>, StoreFault> {
    match repeated(|| table.call(table.records.take_over(row))).await {
        Err(fault @ StoreFault::Ambiguous(_)) => {
            let (records, _) = read_back(table, vec![row.key.clone()]).await.map_err(|_| fault)?;
            let ours = records.into_iter().flatten().find(|record| record.claim_id == row.claim_id && record.state == RecordState::Running);
            Ok(ours.map(|record| record.fence))
        }
        other @ (Ok(_) | Err(StoreFault::Unavailable(_) | StoreFault::Retry(_) | StoreFault::Refused(_))) => other,
    }
}

/// Reads rows as they are; the number of rows is checked.
async fn read_back(table: &Table, keys: Vec<RecordKey>) -> Result<(Vec<Option<Record>>, payonce_core::clock::Timestamp), StoreFault> {
    let (records, now) = repeated(|| table.call(table.records.read(&keys))).await?;
    if records.len() == keys.len() { Ok((records, now)) } else { Err(StoreFault::Refused("the store miscounted".to_owned())) }
}

/// Repeats a transaction that the store rolled back and asks to have again.
async fn repeated<T, F: Future<Output = Result<T, StoreFault>>>(mut call: impl FnMut() -> F) -> Result<T, StoreFault> {
    let mut repeats = 0;
    loop {
        match call().await {
            Err(StoreFault::Retry(_)) if repeats < REPEATS => {
                repeats += 1;
                tokio::time::sleep(REPEAT_PAUSE * repeats).await;
            }
            other => return other,
        }
    }
}

/// The fault of rows that were not tried again because the store went away in the middle (`now`). After a lost commit they may still land.
fn never_tried(first: &StoreFault, now: &StoreFault) -> StoreFault {
    match first {
        StoreFault::Ambiguous(_) => first.clone(),
        StoreFault::Unavailable(_) | StoreFault::Retry(_) | StoreFault::Refused(_) => StoreFault::Unavailable(now.to_string()),
    }
}

fn all_failed<T>(rows: usize, fault: &StoreFault) -> Vec<Result<T, StoreFault>> {
    (0..rows).map(|_| Err(fault.clone())).collect()
}
