//! `payonce key …`

pub(crate) mod list;
pub(crate) mod release;
pub(crate) mod show;

use payonce_core::Timestamp;
use payonce_core::key::IdempotencyKey;
use payonce_core::record::{Record, RecordState};
use serde_json::{Value, json};

use crate::exit::Fault;
use crate::printer::Printer;

/// Prints records: where they stand, never the fingerprint or the kept answer.
fn print(json: bool, records: &[Record], now: Timestamp) -> Result<(), Fault> {
    let headings = ["KEY", "TENANT", "SCOPE", "STATE", "CLAIMS", "CREATED", "UNTIL"];
    Printer::new(json).list(&headings, records, |record| document(record, now), |record| row(record, now))
}

fn document(record: &Record, now: Timestamp) -> Value {
    json!({
        "key": record.key.key.as_str(), "tenant": record.key.tenant, "scope": record.key.scope, "state": state(record, now),
        "claims": record.fence.0, "created_at": record.created_at.to_string(), "locked_until": record.locked_until.to_string(),
        "expires_at": record.expires_at.to_string(), "has_answer": record.answer.is_some(),
    })
}

fn row(record: &Record, now: Timestamp) -> Vec<String> {
    let until = match record.state {
        RecordState::Running => record.locked_until.to_string(),
        RecordState::Answered => record.expires_at.to_string(),
        RecordState::Parked => "-".to_owned(),
    };
    vec![
        record.key.key.as_str().to_owned(),
        record.key.tenant.to_string(),
        record.key.scope.clone(),
        state(record, now).to_owned(),
        record.fence.to_string(),
        record.created_at.to_string(),
        until,
    ]
}

fn state(record: &Record, now: Timestamp) -> &'static str {
    match record.state {
        RecordState::Running if record.locked_until < now => "lapsed",
        RecordState::Running => "running",
        RecordState::Parked => "parked",
        RecordState::Answered if record.expires_at <= now => "expired",
        RecordState::Answered => "answered",
    }
}

/// Parses a key as the header would be.
fn parse(key: &str) -> Result<IdempotencyKey, Fault> {
    IdempotencyKey::parse(key).map_err(|why| Fault::new(why.to_string()))
}
