//! A closed loop: so many callers, each claiming a fresh key and keeping its answer, one after the other.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::designs::Run;

/// Not counted: connections are opened and caches filled.
const WARM_UP: Duration = Duration::from_millis(500);

/// What a loop came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) per_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

/// Runs `callers` loops for `span`. An error of any of them ends the measurement.
pub(crate) async fn closed_loop(run: Arc<dyn Run>, callers: usize, span: Duration) -> anyhow::Result<Figures> {
    let begin = Instant::now() + WARM_UP;
    let end = begin + span;
    let loops: Vec<_> = (0..callers)
        .map(|_| {
            let run = Arc::clone(&run);
            tokio::spawn(async move {
                let mut took = Vec::new();
                loop {
                    let started = Instant::now();
                    if started >= end {
                        return anyhow::Ok(took);
                    }
                    run.one_key().await?;
                    if started >= begin {
                        took.push(started.elapsed());
                    }
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    for one in loops {
        all.extend(one.await??);
    }
    all.sort_unstable();
    let at = |share: f64| all.get(((all.len() as f64 * share) as usize).min(all.len().saturating_sub(1))).copied().unwrap_or_default();
    Ok(Figures { per_second: all.len() as f64 / span.as_secs_f64(), p50: at(0.5), p99: at(0.99) })
}

/// How long a flush of 8 kB takes now: the median of 25.
pub(crate) fn flush_probe(folder: &Path) -> anyhow::Result<Duration> {
    let path = folder.join("probe");
    let mut file = std::fs::File::create(&path)?;
    let mut took = Vec::new();
    for _ in 0..25 {
        let started = Instant::now();
        file.write_all(&[7u8; 8192])?;
        file.sync_data()?;
        took.push(started.elapsed());
    }
    std::fs::remove_file(&path)?;
    took.sort_unstable();
    Ok(took[took.len() / 2])
}
