//! `payonce demo`: the failure stories, played against a real service and real (simulated) channels, each in a process of its own.
//!
//! In: a database, channels, a seed. Out: a line per story with what was counted at the channel and at the merchant. The verdict follows
//! from the sandbox's ledger and the merchant's receiver, never from what the service says of itself.

mod act;
mod channel;
mod child;
mod ground;
mod merchant;
mod stage;
mod stories;
mod story;
mod verdict;

use std::path::{Path, PathBuf};

use payonce::system::SystemEntropy;
use payonce_core::clock::{Entropy, random};

use crate::args::trial::Demo;
use crate::ending::Ending;
use crate::exit::{Exit, Fault};
use crate::printer::{Printer, talk};
use crate::progress::Progress;
use channel::{PARTS, Part};
use ground::Ground;
use stage::Stage;
use story::Story;
use verdict::Line;

pub(crate) async fn run(args: Demo) -> Result<Exit, Fault> {
    let parts = parts(&args.channel)?;
    let entropy = SystemEntropy::default();
    let seed = args.seed.unwrap_or_else(|| u64::from(u32::from_le_bytes(random(&entropy))));
    let dir = scratch(&random::<6>(&entropy))?;
    let run = hex(&random::<4>(&entropy));
    let ground = match Ground::lay(args.database.as_deref(), &dir, &run).await {
        Ok(ground) => ground,
        Err(fault) => {
            // Nothing has been played in it.
            let _ = std::fs::remove_dir_all(&dir);
            return Err(fault);
        }
    };
    let played = perform(&ground, &dir, run, seed, &parts, &entropy).await;
    let good = played.as_ref().is_ok_and(|lines| lines.iter().all(Line::is_good));
    let shown = played.and_then(|lines| show(&lines, args.form.json));
    if good {
        // Nobody has a use for the files of a run that went well.
        let _ = std::fs::remove_dir_all(&dir);
        ground.clear().await?;
    } else {
        let kept = ground.kept().map_or_else(String::new, |schema| format!(", and {schema}"));
        talk(format!("logs and database are kept in {}{kept}", dir.display()));
    }
    shown?;
    talk(format!("seed {seed}, {} stories, {}", Story::ALL.len() * parts.len(), if good { "all good" } else { "not all good" }));
    Ok(if good { Exit::Done } else { Exit::No })
}

/// Sets the stage, plays everything, and strikes the stage.
async fn perform(ground: &Ground, dir: &Path, run: String, seed: u64, parts: &[Part], entropy: &dyn Entropy) -> Result<Vec<Line>, Fault> {
    let mut ending = Ending::listen(false)?;
    let progress = Progress::new();
    progress.say("starting the sandbox and the service");
    let mut stage = Stage::set(dir.to_owned(), run, ground, seed, entropy).await?;
    let lines = tokio::select! {
        lines = play(&mut stage, parts, &progress) => lines,
        () = ending.told() => Err(Fault::new("interrupted")),
    };
    stage.strike().await;
    lines
}

fn show(lines: &[Line], json: bool) -> Result<(), Fault> {
    let headings =
        ["CHANNEL", "STORY", "REQUESTS\nSENT", "CHARGES AT\nTHE CHANNEL", "REFUNDS AT\nTHE CHANNEL", "EVENTS TO\nTHE MERCHANT", "VERDICT"];
    Printer::new(json).list(&headings, lines, Line::document, Line::row)
}

async fn play(stage: &mut Stage, parts: &[Part], progress: &Progress) -> Result<Vec<Line>, Fault> {
    let mut lines: Vec<Line> = Vec::new();
    for part in parts {
        for (n, story) in Story::ALL.into_iter().enumerate() {
            progress.say(&format!("{} {}/{}  {}", part.channel, n + 1, Story::ALL.len(), story.expected().title));
            lines.push(verdict::of(story, stage, *part).await?);
        }
        lines.push(verdict::afterwards(&lines, stage, *part).await?);
    }
    Ok(lines)
}

fn parts(name: &str) -> Result<Vec<Part>, Fault> {
    let wanted: Vec<Part> = PARTS.iter().filter(|part| name == "all" || part.channel == name).copied().collect();
    if wanted.is_empty() {
        let names: Vec<&str> = PARTS.iter().map(|part| part.channel).collect();
        return Err(Fault::new(format!("the demo has no channel {name}")).hint(format!("all, or one of: {}", names.join(", "))));
    }
    Ok(wanted)
}

/// A folder that only we can read: it holds a database with its key.
fn scratch(random: &[u8]) -> Result<PathBuf, Fault> {
    let dir = std::env::temp_dir().join(format!("payonce-demo-{}", hex(random)));
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&dir).map_err(|why| Fault::new(format!("cannot make {}: {why}", dir.display())))?;
    Ok(dir)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
