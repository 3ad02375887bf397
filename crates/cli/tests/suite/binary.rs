//! Runs the binary: commands to their end, services for as long as a test lasts.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

static SERIAL: AtomicU32 = AtomicU32::new(0);

/// A folder that goes with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let serial = SERIAL.fetch_add(1, Ordering::SeqCst);
        let path = std::env::temp_dir().join(format!("payonce-cli-{}-{serial}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// All three, for a snapshot.
    pub(crate) fn whole(&self) -> String {
        format!("exit {}\n----- stdout\n{}----- stderr\n{}", self.code, self.stdout, self.stderr)
    }

    /// The document on stdout.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }
}

/// The binary, in `dir`, with nothing of the caller's settings.
pub(crate) fn command(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_payonce"));
    command.current_dir(dir).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PAYONCE_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs `payonce ARGS` (separated by spaces) to its end.
pub(crate) fn run(dir: &Path, args: &str) -> Ended {
    ended(command(dir).args(args.split_whitespace()))
}

pub(crate) fn ended(command: &mut Command) -> Ended {
    let output = command.output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended { code: output.status.code().unwrap_or(-1), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// A service that runs until it is dropped.
pub(crate) struct Service {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Every line until it listened.
    pub(crate) said: Vec<String>,
}

impl Service {
    /// Starts `payonce ARGS` and waits until it listens.
    pub(crate) fn start(dir: &Path, args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = command(dir);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).env("PAYONCE_LOG", "warn");
        command.envs(env.iter().copied());
        let mut child = command.spawn().expect("it starts");
        let stderr = child.stderr.take().expect("stderr is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let stdin = child.stdin.take();
        let mut service = Self { child, stdin, lines, said: Vec::new() };
        while !service.said.last().is_some_and(|line| line.starts_with("listening on ")) {
            match service.lines.recv_timeout(Duration::from_secs(30)) {
                Ok(line) => service.said.push(line),
                Err(why) => panic!("{why} after {:?}", service.said),
            }
        }
        service
    }

    /// What a line says that begins so.
    pub(crate) fn fact(&self, prefix: &str) -> String {
        let found = self.said.iter().find_map(|line| line.strip_prefix(prefix));
        found.unwrap_or_else(|| panic!("no {prefix:?} in {:?}", self.said)).to_owned()
    }

    /// Sends a signal by its name and waits for the end.
    pub(crate) fn signal(&mut self, name: &str) -> Option<i32> {
        let sent = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status().expect("kill runs");
        assert!(sent.success());
        self.child.wait().expect("it ends").code()
    }

    /// Closes its stdin and waits for the end.
    pub(crate) fn close_stdin(&mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
