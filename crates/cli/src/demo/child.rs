//! A process of this same binary: started, listened to, and killed as a crash would.
//!
//! In: arguments and environment. Out: what its talk says about addresses and keys. A child never outlives us: it ends when its stdin closes.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child as Process, Command};

use crate::exit::Fault;

/// From the start to `listening on`.
const START_WITHIN: Duration = Duration::from_secs(30);
/// Lines that say something, and what comes before it.
const FACTS: [&str; 3] = ["listening on ", "sandbox on ", "api key "];

/// A running child.
#[derive(Debug)]
pub(super) struct Child {
    process: Process,
    facts: BTreeMap<&'static str, String>,
}

/// How a child is started.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    /// What is typed after `payonce`.
    pub(super) args: Vec<String>,
    /// Beside this, the child sees nothing of ours that begins with `PAYONCE_`.
    pub(super) env: Vec<(String, String)>,
    /// Its working directory: ours could hold a `payonce.toml`.
    pub(super) dir: PathBuf,
    /// Where its talk goes.
    pub(super) log: PathBuf,
}

impl Child {
    /// Starts it and waits until it listens.
    pub(super) async fn start(recipe: &Recipe) -> Result<Self, Fault> {
        let mut command = Command::new(own_file()?);
        #[cfg(unix)]
        command.arg0("payonce");
        command.args(&recipe.args).arg("--until-stdin-closes").current_dir(&recipe.dir);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PAYONCE_") {
                command.env_remove(name);
            }
        }
        command.envs(recipe.env.iter().map(|(name, value)| (name, value)));
        let mut process = command.spawn().map_err(|why| Fault::new(format!("cannot start {}: {why}", recipe.args.join(" "))))?;
        let facts = match tokio::time::timeout(START_WITHIN, facts(&mut process, recipe)).await {
            Ok(facts) => facts?,
            Err(_) => {
                return Err(Fault::new(format!("`payonce {}` did not listen within {} s", recipe.args.join(" "), START_WITHIN.as_secs())));
            }
        };
        Ok(Self { process, facts })
    }

    /// `http://ADDR`.
    pub(super) fn url(&self) -> &str {
        self.facts.get("listening on ").map_or("", String::as_str)
    }

    /// The first API key that it told.
    pub(super) fn api_key(&self) -> Option<&str> {
        self.facts.get("api key ").map(String::as_str)
    }

    /// `kill -9`: no destructor, no shutdown, no flush.
    pub(super) async fn kill(&mut self) -> Result<(), Fault> {
        self.process.kill().await.map_err(|why| Fault::new(format!("cannot kill the service: {why}")))
    }

    /// Lets it end by itself.
    pub(super) async fn end(mut self) {
        drop(self.process.stdin.take());
        // What does not end is killed when `self` is dropped.
        let _ = tokio::time::timeout(Duration::from_secs(10), self.process.wait()).await;
    }
}

/// This program's file. Where the system has a way to it that survives an upgrade in the middle of a run, that one.
fn own_file() -> Result<PathBuf, Fault> {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() {
        return Ok(running);
    }
    std::env::current_exe().map_err(|why| Fault::new(format!("cannot find this program's file: {why}")))
}

async fn facts(process: &mut Process, recipe: &Recipe) -> Result<BTreeMap<&'static str, String>, Fault> {
    let name = recipe.args.join(" ");
    let stderr = process.stderr.take().ok_or_else(|| Fault::new(format!("`payonce {name}` has no stderr")))?;
    let mut log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&recipe.log)
        .map_err(|why| Fault::new(format!("cannot write {}: {why}", recipe.log.display())))?;
    let mut lines = BufReader::new(stderr).lines();
    let mut facts = BTreeMap::new();
    let mut fault = Fault::new(format!("`payonce {name}` ended before it listened"));
    while let Ok(Some(line)) = lines.next_line().await {
        let _ = writeln!(log, "{line}");
        for fact in FACTS {
            if let Some(value) = line.strip_prefix(fact) {
                facts.entry(fact).or_insert_with(|| value.trim().to_owned());
            }
        }
        if facts.contains_key("listening on ") {
            // A pipe that nobody reads would stop the child once it is full.
            tokio::spawn(async move {
                while let Ok(Some(line)) = lines.next_line().await {
                    let _ = writeln!(log, "{line}");
                }
            });
            return Ok(facts);
        }
        if let Some(what) = line.strip_prefix("error: ") {
            fault.what = format!("`payonce {name}`: {what}");
        } else if let Some(hint) = line.strip_prefix("hint: ") {
            fault.hint = Some(hint.to_owned());
        }
    }
    Err(fault)
}
