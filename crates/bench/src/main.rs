//! `make bench`: keys per second and latencies of the guard's stores beside two plain statements on the same table and beside the
//! physical limit, in interleaved rounds of one run, with every commit flushed.
//!
//! In: `--rounds N`, `--seconds S`. Out: a table on stdout, JSON Lines in `target/bench/store.jsonl`. Only ratios between rows of one run
//! mean anything; each row carries the disk's flush time just before it.

mod designs;
mod measure;
mod report;

use std::time::Duration;

use anyhow::Context as _;

/// Callers at once.
const CALLERS: [usize; 3] = [1, 16, 64];

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut rounds = 3;
    let mut seconds = 2.0;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || args.next().with_context(|| format!("{arg} needs a number"));
        match arg.as_str() {
            "--rounds" => rounds = number()?.parse().context("--rounds takes a whole number")?,
            "--seconds" => seconds = number()?.parse().context("--seconds takes a number")?,
            other => anyhow::bail!("unknown argument {other}; there are --rounds N and --seconds S"),
        }
    }
    let span = Duration::from_secs_f64(seconds);
    let folder = std::env::current_dir()?.join("target/bench");
    std::fs::create_dir_all(&folder)?;
    let designs = designs::all(&folder).await?;
    let mut rows = Vec::new();
    for round in 1..=rounds {
        for callers in CALLERS {
            for design in &designs {
                let probe = measure::flush_probe(&folder)?;
                let figures = measure::closed_loop(design.run.clone(), callers, span).await?;
                eprintln!("round {round}/{rounds}  {:<28} {callers:>3} callers  {:>9.0} keys/s", design.name, figures.per_second);
                rows.push(report::Row { design: design.name, round, callers, probe, figures });
            }
        }
    }
    report::table(&rows);
    report::json_lines(&folder.join("store.jsonl"), &rows)
}
