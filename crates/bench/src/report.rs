//! The rows as a table of medians with ratios, and as JSON Lines.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use comfy_table::Table;
use serde_json::json;

use crate::measure::Figures;

pub(crate) struct Row {
    pub(crate) design: &'static str,
    pub(crate) round: u32,
    pub(crate) callers: usize,
    pub(crate) probe: Duration,
    pub(crate) figures: Figures,
}

/// Medians over the rounds. The ratio is to the plain design of the same engine with the same callers: the median of the rounds' own ratios.
pub(crate) fn table(rows: &[Row]) {
    let mut table = Table::new();
    table.set_header(["design", "callers", "keys/s", "p50 ms", "p99 ms", "flush ms", "ratio to plain"]);
    let mut seen = BTreeSet::new();
    for row in rows {
        if !seen.insert((row.callers, row.design)) {
            continue;
        }
        let own: Vec<&Row> = rows.iter().filter(|r| r.design == row.design && r.callers == row.callers).collect();
        let ratios = own.iter().filter_map(|r| {
            let plain = rows.iter().find(|p| p.design == plain_of(r.design) && p.callers == r.callers && p.round == r.round)?;
            Some(r.figures.per_second / plain.figures.per_second)
        });
        let ms = |pick: fn(&Row) -> Duration| format!("{:.2}", median(own.iter().map(|r| pick(r).as_secs_f64() * 1000.0).collect()));
        table.add_row([
            row.design.to_owned(),
            row.callers.to_string(),
            format!("{:.0}", median(own.iter().map(|r| r.figures.per_second).collect())),
            ms(|r| r.figures.p50),
            ms(|r| r.figures.p99),
            ms(|r| r.probe),
            format!("{:.2}", median(ratios.collect())),
        ]);
    }
    println!("{table}");
}

fn plain_of(design: &str) -> &'static str {
    if design.starts_with("sqlite") { "sqlite: two statements" } else { "postgres: two statements" }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(crate) fn json_lines(path: &Path, rows: &[Row]) -> anyhow::Result<()> {
    let mut file = std::fs::File::create(path)?;
    for row in rows {
        let line = json!({
            "design": row.design, "round": row.round, "callers": row.callers, "keys_per_s": row.figures.per_second,
            "p50_ms": row.figures.p50.as_secs_f64() * 1000.0, "p99_ms": row.figures.p99.as_secs_f64() * 1000.0,
            "flush_ms": row.probe.as_secs_f64() * 1000.0,
        });
        writeln!(file, "{line}")?;
    }
    eprintln!("wrote {}", path.display());
    Ok(())
}
