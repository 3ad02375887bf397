//! SIGKILL in the middle of the writer's work: what was acknowledged is there.

mod common;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use common::Dir;
use payonce_core::ports::directory::Directory;

/// Cargo builds the examples of a package beside its tests.
fn example(name: &str) -> Command {
    let deps = std::env::current_exe().expect("this test's own path");
    let profile = deps.parent().and_then(|deps| deps.parent()).expect("target/PROFILE/deps");
    Command::new(profile.join("examples").join(name))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledged_claim_survives_a_crash_of_the_process() {
    let dir = Dir::new();
    let mut child = example("claims").arg(dir.file()).stdout(Stdio::piped()).spawn().expect("the example runs");
    let mut printed = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut acknowledged: Vec<String> = printed.by_ref().take(500).map(|line| line.expect("a line")).collect();
    assert_eq!(acknowledged.len(), 500, "the example ended by itself");
    child.kill().expect("SIGKILL");
    child.wait().expect("is gone");
    // What was still in the pipe had been acknowledged too; the very last line may be cut.
    acknowledged.extend(printed.map_while(Result::ok).filter(|line| line.len() == 36));

    let clock = common::clock();
    let store = common::open(&dir.file(), &clock);
    store.ping().await.expect("the file opens again");
    let file = rusqlite::Connection::open(dir.file()).expect("opens");
    let sound: String = file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checks");
    assert_eq!(sound, "ok");
    for name in acknowledged {
        let id = uuid::Uuid::parse_str(&name).expect("a name");
        let there: bool =
            file.query_row("SELECT EXISTS (SELECT 1 FROM records WHERE claim_id = ?1)", [id.as_bytes()], |row| row.get(0)).expect("reads");
        assert!(there, "{name} was acknowledged");
    }
}
