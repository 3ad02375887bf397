//! The few calls to the operating system that the standard library does not offer: signals, and what /proc
//! knows of a process.
//!
//! The only file of the testkit with unsafe code. It signals only processes whose id the caller was given when it started them.

use std::{io, os::unix::fs::MetadataExt};

/// A signal, by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    /// PostgreSQL: fast shutdown.
    Interrupt,
    /// PostgreSQL: immediate shutdown. PgBouncer: ends at once.
    Quit,
    /// Cannot be caught: what a crash is.
    Kill,
}

/// Sends a signal to one process.
#[expect(unsafe_code, reason = "the standard library sends no signal but SIGKILL, and only to a child")]
pub(crate) fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    let number = match signal {
        Signal::Interrupt => libc::SIGINT,
        Signal::Quit => libc::SIGQUIT,
        Signal::Kill => libc::SIGKILL,
    };
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    // 0 and negative numbers would mean a whole group of processes.
    if pid <= 1 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: kill(2) reads two integers and touches no memory of this process.
    if unsafe { libc::kill(pid, number) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The user this process runs as.
pub(crate) fn own_uid() -> io::Result<u32> {
    Ok(std::fs::metadata("/proc/self")?.uid())
}

/// The parent of a process, and whether it still runs (a zombie does not).
pub(crate) fn parent_and_alive(pid: u32) -> Option<(u32, bool)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything, so what follows is counted from its last one.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    Some((parent, !matches!(state, "Z" | "X")))
}

/// The living children of a process.
pub(crate) fn children_of(pid: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|candidate| parent_and_alive(*candidate) == Some((pid, true)))
        .collect()
}
