//! Sweep: bounded clean-up of what has served its time.
//!
//! In: a tick. Out: a report. Never: a running or parked record; an inbox row that is not at its end.

use std::time::Duration;

use crate::ledger::{FlowFault, Ledger};

/// Rows of one statement.
const BATCH: usize = 1000;
/// Statements of one round.
const ROUNDS: usize = 20;

/// What one round removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Expired answers.
    pub records: usize,
    /// Settled and foreign notifications past their retention.
    pub inbox: usize,
}

impl Ledger {
    /// One round. `inbox_retention` is at least the longest redelivery horizon of any channel; the configuration checks that.
    pub async fn sweep_once(&self, inbox_retention: Duration) -> Result<Report, FlowFault> {
        let mut report = Report::default();
        for _ in 0..ROUNDS {
            let went = self.store.sweep_records(BATCH).await?;
            report.records += went;
            if went < BATCH {
                break;
            }
        }
        let before = self.now().minus(inbox_retention);
        for _ in 0..ROUNDS {
            let went = self.store.sweep_inbox(before, BATCH).await?;
            report.inbox += went;
            if went < BATCH {
                break;
            }
        }
        Ok(report)
    }
}
