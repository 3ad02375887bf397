//! One PostgreSQL process on a directory of its own.
//!
//! What comes in: a directory and settings. What goes out: a server that answers on 127.0.0.1. It never listens elsewhere, never
//! runs as root, and a second start on the same data keeps the port, so that pools find it again.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::Child,
    time::Duration,
};

use super::{
    Options, binaries,
    wire::{QueryError, Session, USER},
};
use crate::{
    ports,
    run_dir::{self, Owner},
    sys::{self, Signal},
};

/// Crash recovery of a test's data takes far less.
const READY_DUE: Duration = Duration::from_secs(60);
const STOP_DUE: Duration = Duration::from_secs(20);

/// What every server of the tests runs with: small, on loopback only, nothing in the background that a short life does not need.
pub(super) const SETTINGS: &[&str] = &[
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=300",
    "shared_buffers=64MB",
    "autovacuum=off",
    "log_timezone=UTC",
    "timezone=UTC",
];

#[derive(Debug)]
pub(super) struct Server {
    bin: PathBuf,
    dir: PathBuf,
    owner: Option<Owner>,
    settings: Vec<String>,
    port: u16,
    child: Option<Child>,
}

impl Server {
    /// Makes a new data directory in `dir` and starts a server on it.
    pub(super) fn create(dir: &Path, options: &Options) -> io::Result<Self> {
        let bin = binaries::folder()?;
        let owner = Owner::for_servers()?;
        let data = dir.join("data");
        fs::create_dir(&data)?;
        run_dir::give(&data, owner)?;
        let made = run_dir::command(&bin.join("initdb"), dir, owner)
            .arg("--pgdata")
            .arg(&data)
            .args(["--username", USER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"])
            .output()?;
        if !made.status.success() {
            return Err(io::Error::other(format!("initdb: {}", String::from_utf8_lossy(&made.stderr))));
        }
        let mut settings: Vec<String> = SETTINGS.iter().map(|setting| (*setting).to_owned()).collect();
        if !options.fsync {
            settings.extend(["fsync=off", "synchronous_commit=off", "full_page_writes=off"].map(str::to_owned));
        }
        settings.extend(options.settings.iter().cloned());
        let mut server = Self { bin, dir: dir.to_owned(), owner, settings, port: 0, child: None };
        server.start_on_a_free_port()?;
        Ok(server)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Between a look at a port and the bind another process may take it; then another one is tried.
    fn start_on_a_free_port(&mut self) -> io::Result<()> {
        let mut tries = 0;
        loop {
            self.port = ports::free_port();
            tries += 1;
            match self.start() {
                Err(_) if tries < 5 && self.log().contains("could not bind") => {}
                done => return done,
            }
        }
    }

    /// Starts the server and waits until it answers a query.
    pub(super) fn start(&mut self) -> io::Result<()> {
        let log = File::create(self.dir.join("log"))?;
        let mut command = run_dir::command(&self.bin.join("postgres"), &self.dir, self.owner);
        command.arg("-D").arg(self.dir.join("data")).arg("-p").arg(self.port.to_string());
        for setting in &self.settings {
            command.arg("-c").arg(setting);
        }
        let mut child = command.stdout(log.try_clone()?).stderr(log).spawn()?;
        let mut ended = None;
        let ready = ports::wait_until(READY_DUE, || match child.try_wait() {
            Ok(None) => self.is_ready(child.id()) && answers(self.port),
            other => {
                ended = Some(other);
                true
            }
        });
        if ready && ended.is_none() {
            self.child = Some(child);
            return Ok(());
        }
        child.kill().ok();
        child.wait().ok();
        Err(io::Error::other(format!("PostgreSQL did not start ({ended:?}):\n{}", self.log())))
    }

    /// Ends it in good order: connections are cut, everything is written.
    pub(super) fn stop(&mut self) -> io::Result<()> {
        self.end(Signal::Interrupt)
    }

    /// Ends it without a last write, but not like a crash: for throwing it away.
    pub(super) fn quit(&mut self) -> io::Result<()> {
        self.end(Signal::Quit)
    }

    fn end(&mut self, signal: Signal) -> io::Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        sys::signal(child.id(), signal)?;
        if ports::wait_until(STOP_DUE, || !matches!(child.try_wait(), Ok(None))) {
            return Ok(());
        }
        child.kill()?;
        child.wait()?;
        Err(io::Error::other("PostgreSQL had to be killed"))
    }

    /// Kills every process of the server, as a crash of the machine would end them. What the kernel had taken from them stays in
    /// its page cache, so this is no test of fsync.
    pub(super) fn kill(&mut self) -> io::Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let backends = sys::children_of(child.id());
        child.kill()?;
        for backend in &backends {
            // One that has ended since is what we want.
            sys::signal(*backend, Signal::Kill).ok();
        }
        child.wait()?;
        // While one of them lives it keeps the shared memory, and the next start would be refused.
        let gone = |pid: &u32| !matches!(sys::parent_and_alive(*pid), Some((_, true)));
        if ports::wait_until(STOP_DUE, || backends.iter().all(gone)) { Ok(()) } else { Err(io::Error::other("a backend outlived SIGKILL")) }
    }

    /// Whether the data directory names this process, and that it is ready: another server may answer on a port that it took.
    fn is_ready(&self, pid: u32) -> bool {
        let text = fs::read_to_string(pid_file(&self.dir)).unwrap_or_default();
        let mut lines = text.lines().map(str::trim);
        lines.next() == Some(pid.to_string().as_str()) && lines.next_back() == Some("ready")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Also runs while a failed test unwinds, where a panic would abort; the watcher sees to what is left.
        self.quit().ok();
    }
}

/// Where the server that runs in `dir` writes its process id.
pub(super) fn pid_file(dir: &Path) -> PathBuf {
    dir.join("data/postmaster.pid")
}

/// Whether a server takes a session on the port. A refusal (such as "the database system is starting up") is a no.
pub(super) fn answers(port: u16) -> bool {
    let asked: Result<_, QueryError> = Session::open(port, "postgres").and_then(|mut session| session.query("SELECT 1"));
    asked.is_ok()
}
