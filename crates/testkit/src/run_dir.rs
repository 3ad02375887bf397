//! The directory that one server of the tests runs in, and the watcher that ends it when its users are gone.
//!
//! What comes in: a name. What goes out: a directory under the system's temporary one, a lease on it, and the user a server has
//! to run as. A server never runs as root, and outlives its users by no more than the time they grant, however they end.

use std::{
    fs::{self, File, OpenOptions},
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::unix::{
        fs::{DirBuilderExt, MetadataExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use crate::sys;

/// A user that a server runs as.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    uid: u32,
    gid: u32,
}

impl Owner {
    /// `None` when this process is an ordinary user, whose servers run as the same; else the user `postgres`.
    pub(crate) fn for_servers() -> io::Result<Option<Self>> {
        if sys::own_uid()? != 0 {
            return Ok(None);
        }
        let passwd = fs::read_to_string("/etc/passwd")?;
        let owner = passwd.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            match fields.as_slice() {
                ["postgres", _, uid, gid, ..] => Some(Self { uid: uid.parse().ok()?, gid: gid.parse().ok()? }),
                _ => None,
            }
        });
        owner.map(Some).ok_or_else(|| io::Error::other("no user named postgres, and a server does not run as root; run `make setup`"))
    }
}

/// Gives a file or directory to the owner; nothing to do without one.
pub(crate) fn give(path: &Path, owner: Option<Owner>) -> io::Result<()> {
    match owner {
        Some(Owner { uid, gid }) => std::os::unix::fs::chown(path, Some(uid), Some(gid)),
        None => Ok(()),
    }
}

/// A command that runs as the owner, in `dir`, with a small fixed environment, and that a Ctrl-C at the terminal does not reach:
/// its end is for the test or the watcher to bring about.
pub(crate) fn command(program: &Path, dir: &Path, owner: Option<Owner>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir).env_clear().env("LC_ALL", "C").env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command.stdin(Stdio::null()).process_group(0);
    if let Some(Owner { uid, gid }) = owner {
        // Run by root, this also drops all supplementary groups.
        command.uid(uid).gid(gid);
    }
    command
}

/// Where all servers of this checkout and this user keep their directories; a changed `settings` text gets another place.
pub(crate) fn base(settings: &str) -> io::Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    (env!("CARGO_MANIFEST_DIR"), settings).hash(&mut hasher);
    let uid = sys::own_uid()?;
    // Not under target/: that may lie below a directory which the user `postgres` cannot enter.
    let base = std::env::temp_dir().join(format!("payonce-testkit-{uid}-{:016x}", hasher.finish()));
    match fs::DirBuilder::new().mode(0o755).create(&base) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    if fs::symlink_metadata(&base)?.uid() != uid {
        return Err(io::Error::other(format!("{} belongs to somebody else", base.display())));
    }
    Ok(base)
}

/// Takes the lock that decides who starts or stops what in `base`. Held until the file is dropped.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    file.lock()?;
    Ok(file)
}

/// Joins the users of a running server's directory. The lease ends with the file, or with the process.
pub(crate) fn lease(dir: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(dir.join("lease"))?;
    file.lock_shared()?;
    Ok(file)
}

/// A new directory for one server, with a lease held by this process.
#[derive(Debug)]
pub(crate) struct RunDir {
    path: PathBuf,
    lease: File,
    watcher: Option<Child>,
}

impl RunDir {
    /// Makes the directory `base/name-<process>-<number>`.
    pub(crate) fn create(base: &Path, name: &str) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("{name}-{}-{number}", std::process::id()));
        // A process with the same number, long gone, may have left one.
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::DirBuilder::new().mode(0o755).create(&path)?;
        let lease = lease(&path)?;
        Ok(Self { path, lease, watcher: None })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Starts the watcher: it stops the server named in `pid_file` and removes the directory `idle_seconds` after the last user.
    pub(crate) fn watch(&mut self, pid_file: &Path, lock: &Path, idle_seconds: u32) -> io::Result<()> {
        let watcher = Command::new("/bin/sh")
            .args(["-c", include_str!("supervise.sh"), "supervise.sh"])
            .args([&self.path, pid_file, lock])
            .arg(idle_seconds.to_string())
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        self.watcher = Some(watcher);
        Ok(())
    }

    /// Keeps only the lease; the directory lives on for the users to come.
    pub(crate) fn into_lease(self) -> (PathBuf, File) {
        (self.path, self.lease)
    }

    /// Removes the directory of a server that has ended, and waits for the watcher, which has nothing left to do.
    pub(crate) fn remove(self) {
        let Self { path, lease, watcher } = self;
        // A leftover under the temporary directory harms nobody, and this also runs while a failed test unwinds.
        fs::remove_dir_all(&path).ok();
        drop(lease);
        if let Some(mut watcher) = watcher {
            watcher.wait().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ports::wait_until;

    const DUE: Duration = Duration::from_secs(20);

    /// What a killed test leaves: a server, and a lease that the kernel takes back.
    #[test]
    fn a_server_ends_with_its_last_user() {
        let mut dir = RunDir::create(&base("test").unwrap(), "watched").unwrap();
        let mut server = Command::new("sleep").arg("300").current_dir(dir.path()).spawn().unwrap();
        let pid_file = dir.path().join("pid");
        fs::write(&pid_file, format!("{}\n", server.id())).unwrap();
        dir.watch(&pid_file, &dir.path().join("lock"), 0).unwrap();
        let second = lease(dir.path()).unwrap();
        let (path, first) = dir.into_lease();
        drop(first);
        // No signal tells that nothing happens; a watcher that were to end it now would take a few milliseconds.
        let ended_early = wait_until(Duration::from_millis(300), || !matches!(server.try_wait(), Ok(None)));
        assert!(!ended_early, "the server was ended while it had a user");
        drop(second);
        assert!(wait_until(DUE, || !matches!(server.try_wait(), Ok(None))), "the server outlived its users");
        assert!(wait_until(DUE, || !path.exists()), "{} was left", path.display());
    }

    #[test]
    fn a_number_that_another_process_got_is_left_alone() {
        let mut dir = RunDir::create(&base("test").unwrap(), "stale").unwrap();
        let mut stranger = Command::new("sleep").arg("300").current_dir("/").spawn().unwrap();
        let pid_file = dir.path().join("pid");
        fs::write(&pid_file, format!("{}\n", stranger.id())).unwrap();
        dir.watch(&pid_file, &dir.path().join("lock"), 0).unwrap();
        let (path, lease) = dir.into_lease();
        drop(lease);
        assert!(wait_until(DUE, || !path.exists()), "{} was left", path.display());
        assert!(matches!(stranger.try_wait(), Ok(None)), "a process that is not ours was ended");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}
