//! Free ports on 127.0.0.1, and waiting until something listens there.
//!
//! What comes in: nothing, or a port and a deadline. What goes out: a port, or the word that it answers. It never looks at
//! an address other than 127.0.0.1.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    time::{Duration, Instant},
};

/// How long two looks at something outside the process lie apart.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A port on 127.0.0.1 that nobody listened on a moment ago. Another process may take it before the caller does, so a server
/// that can bind port 0 itself should do that, and one that cannot should be tried again on another port.
pub fn free_port() -> u16 {
    let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("127.0.0.1 has no free port");
    probe.local_addr().expect("a bound socket has an address").port()
}

/// 127.0.0.1 with a port.
pub fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Waits until something accepts connections on the port of 127.0.0.1.
///
/// # Errors
///
/// The last refusal, once `within` is over.
pub fn wait_until_listening(port: u16, within: Duration) -> io::Result<()> {
    let mut last = None;
    let listens = wait_until(within, || match TcpStream::connect(local(port)) {
        Ok(_) => true,
        Err(refusal) => {
            last = Some(refusal);
            false
        }
    });
    match (listens, last) {
        (true, _) => Ok(()),
        (false, Some(refusal)) => Err(refusal),
        (false, None) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Asks until the answer is yes, or `within` is over. For what sends no signal: another process, a socket that comes up.
#[must_use]
pub fn wait_until(within: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    loop {
        if holds() {
            return true;
        }
        if started.elapsed() >= within {
            return false;
        }
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "another process gives no signal to wait on; it has to be looked at again")]
fn pause() {
    std::thread::sleep(LOOK_EVERY);
}
