//! What was counted against what must have been.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::act::{Act, Moved};
use super::channel::Part;
use super::stage::Stage;
use super::story::Story;
use crate::exit::Fault;

/// How long counts may take to come to what is expected.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long is watched whether more comes after that. Look-ups and deliveries come several times within it.
const WATCH: Duration = Duration::from_millis(600);

/// A line of the table.
#[derive(Clone, Debug)]
pub(super) struct Line {
    channel: &'static str,
    slug: &'static str,
    title: &'static str,
    requests: u32,
    moved: Moved,
    events: u32,
    complaints: Vec<String>,
}

/// Plays a story and counts.
pub(super) async fn of(story: Story, stage: &mut Stage, part: Part) -> Result<Line, Fault> {
    let expected = story.expected();
    let must = Moved { charges: expected.charges, refunds: expected.refunds };
    let mut act = Act::new(stage, part, expected.slug);
    let before = act.moved().await?;
    if let Err(why) = story.play(&mut act).await {
        act.complaints.push(why.to_string());
    }
    let until = Instant::now() + PATIENCE;
    loop {
        let told = act.stage.merchant.told(&act.prefix());
        let all_told = expected.events.iter().all(|due| told.iter().any(|told| told.kind == *due)) && told.len() >= expected.events.len();
        let enough = since(before, act.moved().await?) == must && all_told;
        if enough || Instant::now() >= until {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(WATCH).await;

    let moved = since(before, act.moved().await?);
    act.expect(moved == must, || format!("{} charges and {} refunds were due", must.charges, must.refunds));
    let told = act.stage.merchant.told(&act.prefix());
    let kinds: Vec<&str> = told.iter().map(|told| told.kind.as_str()).collect();
    act.expect(is_due(&kinds, expected.events), || {
        format!("the merchant was told {}, and {} was due", kinds.join(" + "), expected.events.join(" + "))
    });
    let unsigned = act.stage.merchant.unsigned();
    act.expect(unsigned == 0, || format!("{unsigned} callbacks were not signed rightly"));
    // A fault that met nothing must not wait for the next story.
    let _ = act.stage.sandbox.delete("/_sandbox/faults").await;
    Ok(Line {
        channel: part.channel,
        slug: expected.slug,
        title: expected.title,
        requests: act.requests,
        moved,
        events: u32::try_from(told.len()).unwrap_or(u32::MAX),
        complaints: act.complaints,
    })
}

/// Everything once more at the end: nothing may have moved, and nobody may have been told anything, since its story ended.
pub(super) async fn afterwards(lines: &[Line], stage: &mut Stage, part: Part) -> Result<Line, Fault> {
    let lines: Vec<&Line> = lines.iter().filter(|line| line.channel == part.channel).collect();
    let mut act = Act::new(stage, part, "");
    let moved = act.moved().await?;
    let prefix = format!("demo-{}-{}-", act.stage.run, part.channel);
    let told = act.stage.merchant.told(&prefix);
    let due =
        Moved { charges: lines.iter().map(|line| line.moved.charges).sum(), refunds: lines.iter().map(|line| line.moved.refunds).sum() };
    let events: u32 = lines.iter().map(|line| line.events).sum();
    act.expect(moved == due, || format!("{} charges and {} refunds had been counted", due.charges, due.refunds));
    let now_told = u32::try_from(told.len()).unwrap_or(u32::MAX);
    act.expect(now_told == events, || format!("{events} events had been counted"));
    let twice = told.iter().filter(|told| told.deliveries > 1).count();
    act.expect(twice == 0, || format!("{twice} events were delivered again although they had been acknowledged"));
    Ok(Line {
        channel: part.channel,
        slug: "all",
        title: "all of it, once more at the end",
        requests: lines.iter().map(|line| line.requests).sum(),
        moved,
        events: now_told,
        complaints: act.complaints,
    })
}

/// Whether just these events were told, in any order.
fn is_due(told: &[&str], due: &[&str]) -> bool {
    let sorted = |kinds: &[&str]| {
        let mut kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        kinds.sort_unstable();
        kinds
    };
    sorted(told) == sorted(due)
}

const fn since(before: Moved, after: Moved) -> Moved {
    Moved { charges: after.charges.saturating_sub(before.charges), refunds: after.refunds.saturating_sub(before.refunds) }
}

impl Line {
    /// Whether all was as it should be.
    pub(super) fn is_good(&self) -> bool {
        self.complaints.is_empty()
    }

    /// As JSON.
    pub(super) fn document(&self) -> Value {
        json!({
            "channel": self.channel, "story": self.slug, "title": self.title, "requests": self.requests,
            "charges": self.moved.charges, "refunds": self.moved.refunds, "events": self.events,
            "verdict": if self.is_good() { "good" } else { "bad" }, "complaints": self.complaints,
        })
    }

    /// As a row of the table.
    pub(super) fn row(&self) -> Vec<String> {
        let verdict = if self.is_good() { "good".to_owned() } else { format!("BAD: {}", self.complaints.join("; ")) };
        vec![
            self.channel.to_owned(),
            self.title.to_owned(),
            self.requests.to_string(),
            self.moved.charges.to_string(),
            self.moved.refunds.to_string(),
            self.events.to_string(),
            verdict,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_by_kind() {
        assert!(is_due(&["b", "a"], &["a", "b"]));
        for wrong in [&["a", "a"][..], &["a", "c"], &["c"], &[]] {
            assert!(!is_due(wrong, &["a"]), "{wrong:?}");
        }
    }

    #[test]
    fn a_complaint_makes_a_line_bad_in_both_forms() {
        let mut line = Line {
            channel: "alipay",
            slug: "crash",
            title: "kill -9",
            requests: 2,
            moved: Moved { charges: 2, refunds: 0 },
            events: 1,
            complaints: Vec::new(),
        };
        assert_eq!((line.is_good(), line.document()["verdict"].as_str()), (true, Some("good")));
        line.complaints.push("1 charges and 0 refunds were due".to_owned());
        assert_eq!((line.is_good(), line.document()["verdict"].as_str()), (false, Some("bad")));
        assert!(line.row().last().is_some_and(|verdict| verdict.starts_with("BAD: 1 charges")));
    }
}
