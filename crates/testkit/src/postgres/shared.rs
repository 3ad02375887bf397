//! The one server that the tests of a run share.
//!
//! A test runner starts a process per test, so what is shared lies in files: `lock` decides who starts or stops, `current` names
//! the running server, and each user holds a lease on the server's directory until its process ends.

use std::{
    fs::{self, File},
    io, mem,
    path::{Path, PathBuf},
};

use super::{
    Options,
    server::{self, Server},
};
use crate::run_dir::{self, RunDir};

/// How long the server waits for a next user. Longer than a runner takes from one test to the next, compiling excluded.
const IDLE_SECONDS: u32 = 20;

/// Joins the running server, or starts one. Returns its port, its directory and the lease.
pub(super) fn join() -> io::Result<(u16, PathBuf, File)> {
    let base = run_dir::base(&server::SETTINGS.join(" "))?;
    let lock_path = base.join("lock");
    let _one_at_a_time = run_dir::lock(&lock_path)?;
    let current = base.join("current");
    if let Some((port, dir)) = read(&current) {
        if dir.is_dir() {
            let lease = run_dir::lease(&dir)?;
            if server::answers(port) {
                return Ok((port, dir, lease));
            }
            // Whoever ended it left its files; its watcher, if one is left, finds nothing more to do.
            fs::remove_dir_all(&dir)?;
        }
        fs::remove_file(&current)?;
    }
    let mut dir = RunDir::create(&base, "pg")?;
    // Before there is a server: if this process is killed while it starts one, the watcher still finds it.
    dir.watch(&server::pid_file(dir.path()), &lock_path, IDLE_SECONDS)?;
    let server = Server::create(dir.path(), &Options::default())?;
    fs::write(&current, format!("{}\n{}\n", server.port(), dir.path().display()))?;
    let port = server.port();
    let (path, lease) = dir.into_lease();
    // It outlives this process: from here on the watcher decides.
    mem::forget(server);
    Ok((port, path, lease))
}

fn read(current: &Path) -> Option<(u16, PathBuf)> {
    let text = fs::read_to_string(current).ok()?;
    let mut lines = text.lines();
    Some((lines.next()?.parse().ok()?, PathBuf::from(lines.next()?)))
}
