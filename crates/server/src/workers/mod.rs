//! The workers: one shared loop that alone knows intervals, jitter and shutdown, around jobs that run once and report.
//!
//! Waking is a hint; the tables are looked at anyway. A job that has begun is finished: it is bounded by its own deadlines.

mod beat;

use std::sync::Arc;
use std::time::Duration;

use payonce_flows::merchant::Merchant;
use payonce_flows::{FlowFault, Ledger};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::observe::worked;
use beat::{Beat, beat};

/// How often old rows are cleared away.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// So many deliver callbacks side by side in batches, so that one slow merchant holds up only one of them.
const PUBLISHERS: usize = 4;
/// So many settle notifications.
const SETTLERS: usize = 2;

/// Starts all workers of this process.
pub(crate) fn start(
    ledger: &Arc<Ledger>,
    merchant: &Arc<dyn Merchant>,
    config: &Config,
    stop: &watch::Receiver<bool>,
) -> Vec<JoinHandle<()>> {
    let interval = config.reconcile.interval;
    let retention = config.inbox.retention;
    let mut tasks = Vec::new();
    let mut go = |name: &'static str, every: Duration, wakes: Wakes, job: Job| {
        let beat_of = Beat { name, every, entropy: Arc::clone(&ledger.entropy) };
        tasks.push(tokio::spawn(beat(beat_of, Arc::clone(&ledger.wake), wakes, stop.clone(), job)));
    };
    for _ in 0..SETTLERS {
        let ledger = Arc::clone(ledger);
        go("settle", interval, Wakes::Settle, job(move || settle(Arc::clone(&ledger))));
    }
    for _ in 0..PUBLISHERS {
        let (ledger, merchant) = (Arc::clone(ledger), Arc::clone(merchant));
        go("publish", interval, Wakes::Publish, job(move || publish(Arc::clone(&ledger), Arc::clone(&merchant))));
    }
    {
        let ledger = Arc::clone(ledger);
        go("reconcile", interval, Wakes::Reconcile, job(move || reconcile(Arc::clone(&ledger))));
    }
    {
        let ledger = Arc::clone(ledger);
        go("sweep", SWEEP_EVERY, Wakes::Nothing, job(move || sweep(Arc::clone(&ledger), retention)));
    }
    tasks
}

use beat::{Job, Wakes, job};

/// Whether more may be waiting.
type Done = Result<bool, FlowFault>;

async fn settle(ledger: Arc<Ledger>) -> Done {
    let report = ledger.settle_once().await?;
    worked("settle", "settled", report.settled);
    worked("settle", "unmatched", report.unmatched);
    worked("settle", "foreign", report.foreign);
    worked("settle", "again", report.again);
    Ok(report.is_full())
}

async fn publish(ledger: Arc<Ledger>, merchant: Arc<dyn Merchant>) -> Done {
    let report = ledger.publish_once(merchant.as_ref()).await?;
    worked("publish", "acknowledged", report.acknowledged);
    worked("publish", "again", report.again);
    worked("publish", "dead", report.dead);
    worked("publish", "feed_only", report.feed_only);
    Ok(report.is_full())
}

async fn reconcile(ledger: Arc<Ledger>) -> Done {
    let report = ledger.reconcile_once().await?;
    worked("reconcile", "looked", report.looked);
    worked("reconcile", "moved", report.moved);
    worked("reconcile", "failed", report.failed);
    Ok(report.is_full())
}

async fn sweep(ledger: Arc<Ledger>, retention: Duration) -> Done {
    let report = ledger.sweep_once(retention).await?;
    worked("sweep", "records", report.records);
    worked("sweep", "inbox", report.inbox);
    Ok(false)
}
