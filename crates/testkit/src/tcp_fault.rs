//! A TCP proxy on loopback that breaks connections on purpose.
//!
//! What comes in: a target on 127.0.0.1 and faults. What goes out: an address that forwards to the target until a fault says
//! otherwise. It is the way to make "sent, but no answer" without touching either side: it knows bytes, not protocols, and never
//! changes one.

mod connection;

use std::{
    net::SocketAddr,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use tokio::{net::TcpListener, sync::watch};

use crate::ports;

/// Opening and closing the listener is a matter of microseconds.
const SWITCH_DUE: Duration = Duration::from_secs(10);

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Requests.
    ToServer,
    /// Answers.
    ToClient,
}

/// How a connection ends when it is cut. Both sides see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// In order: the reader sees the end of the stream.
    Close,
    /// By a reset: reader and writer see an error.
    Reset,
}

/// What is done to bytes of one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Fault {
    delay: Duration,
    hold: bool,
    cut: Option<(u64, Cut)>,
}

/// What all connections have to obey at the moment.
#[derive(Clone, Copy, Debug)]
struct Plan {
    listening: bool,
    ended: bool,
    faults: [Fault; 2],
    /// Raised by [`FaultProxy::cut_all`]; a connection made under an earlier number ends.
    generation: u64,
    how: Cut,
}

#[derive(Debug, Default)]
struct Seen {
    listening: bool,
    accepted: u64,
    passed: [u64; 2],
    held: [u64; 2],
}

#[derive(Debug)]
struct Shared {
    plan: watch::Sender<Plan>,
    seen: Mutex<Seen>,
    changed: Condvar,
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, what: impl FnOnce(&mut Seen)) {
        what(&mut self.seen());
        self.changed.notify_all();
    }

    fn wait(&self, within: Duration, holds: impl Fn(&Seen) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.seen(), within, |seen| !holds(seen));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// A running proxy. It works on a thread of its own, so that it serves blocking and asynchronous tests, and ends with this value.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl FaultProxy {
    /// Starts one on a free port of 127.0.0.1 that forwards to `port`, at first without any fault.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    #[must_use]
    pub fn start(port: u16) -> Self {
        let plan = Plan { listening: true, ended: false, faults: [Fault::default(); 2], generation: 0, how: Cut::Close };
        let shared = Arc::new(Shared { plan: watch::Sender::new(plan), seen: Mutex::default(), changed: Condvar::new() });
        let listener = std::net::TcpListener::bind(ports::local(0)).expect("127.0.0.1 has no free port");
        listener.set_nonblocking(true).expect("a socket can be made non-blocking");
        let address = listener.local_addr().expect("a bound socket has an address");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
        let inside = Arc::clone(&shared);
        let thread = std::thread::spawn(move || runtime.block_on(listen(listener, ports::local(port), inside)));
        let proxy = Self { address, shared, thread: Some(thread) };
        assert!(proxy.shared.wait(SWITCH_DUE, |seen| seen.listening), "the proxy did not start");
        proxy
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port of [`Self::address`].
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Lets `bytes` more bytes pass in this direction, counted over all connections from now on, and cuts the connection that
    /// carried the last of them; with 0, the one that wants to carry the next, of which nothing passes. Happens once.
    ///
    /// "Executed, answer lost" is `cut_after(ToClient, 0, …)`; "half a request" is `cut_after(ToServer, n, …)`.
    pub fn cut_after(&self, direction: Direction, bytes: u64, how: Cut) {
        self.change(direction, |fault| fault.cut = Some((bytes, how)));
    }

    /// Cuts every connection there is now. New ones are taken.
    pub fn cut_all(&self, how: Cut) {
        self.shared.plan.send_modify(|plan| {
            plan.generation += 1;
            plan.how = how;
        });
    }

    /// Holds what arrives in this direction for so long before it goes on.
    pub fn delay(&self, direction: Direction, delay: Duration) {
        self.change(direction, |fault| fault.delay = delay);
    }

    /// Keeps what arrives in this direction until [`Self::release`]; the connection stays open. A network that swallows.
    pub fn hold(&self, direction: Direction) {
        self.change(direction, |fault| fault.hold = true);
    }

    /// Lets pass what was held.
    pub fn release(&self, direction: Direction) {
        self.change(direction, |fault| fault.hold = false);
    }

    /// Refuses new connections, as a server that is down does. Connections that exist go on.
    ///
    /// # Panics
    ///
    /// If the listener cannot be closed.
    pub fn refuse(&self) {
        self.shared.plan.send_modify(|plan| plan.listening = false);
        assert!(self.shared.wait(SWITCH_DUE, |seen| !seen.listening), "the proxy still listens");
    }

    /// Takes back every fault, and takes connections again, on the same port.
    ///
    /// # Panics
    ///
    /// If another process has taken the port meanwhile.
    pub fn heal(&self) {
        self.shared.plan.send_modify(|plan| {
            plan.listening = true;
            plan.faults = [Fault::default(); 2];
        });
        assert!(self.shared.wait(SWITCH_DUE, |seen| seen.listening), "the proxy does not listen again");
    }

    /// How many connections were taken so far.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.shared.seen().accepted
    }

    /// How many bytes have passed in this direction so far.
    #[must_use]
    pub fn passed(&self, direction: Direction) -> u64 {
        self.shared.seen().passed[direction as usize]
    }

    /// Waits until so many bytes have passed in this direction since the start; `false` if `within` is over first.
    #[must_use]
    pub fn wait_passed(&self, direction: Direction, bytes: u64, within: Duration) -> bool {
        self.shared.wait(within, |seen| seen.passed[direction as usize] >= bytes)
    }

    /// Waits until bytes are being held in this direction: the moment at which the other side has sent and nobody has heard.
    #[must_use]
    pub fn wait_held(&self, direction: Direction, within: Duration) -> bool {
        self.shared.wait(within, |seen| seen.held[direction as usize] > 0)
    }

    fn change(&self, direction: Direction, what: impl FnOnce(&mut Fault)) {
        self.shared.plan.send_modify(|plan| what(&mut plan.faults[direction as usize]));
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.shared.plan.send_modify(|plan| plan.ended = true);
        if let Some(thread) = self.thread.take() {
            // Its panic, if it had one, has been printed; this may run while a failed test unwinds.
            thread.join().ok();
        }
    }
}

/// Takes connections until the plan ends; then the runtime goes, and with it every connection.
async fn listen(first: std::net::TcpListener, target: SocketAddr, shared: Arc<Shared>) {
    let address = first.local_addr().expect("a bound socket has an address");
    let mut listener = Some(TcpListener::from_std(first).expect("the runtime takes the socket"));
    shared.note(|seen| seen.listening = true);
    let mut plan = shared.plan.subscribe();
    loop {
        let now = *plan.borrow_and_update();
        if now.ended {
            return;
        }
        if listener.is_some() != now.listening {
            // Dropping it first: the old one would refuse the new one the port.
            drop(listener.take());
            if now.listening {
                listener = Some(TcpListener::bind(address).await.expect("another process has taken the proxy's port"));
            }
            shared.note(|seen| seen.listening = now.listening);
        }
        match &listener {
            None => {
                let Ok(()) = plan.changed().await else { return };
            }
            Some(open) => tokio::select! {
                changed = plan.changed() => {
                    let Ok(()) = changed else { return };
                }
                taken = open.accept() => {
                    if let Ok((client, _)) = taken {
                        shared.note(|seen| seen.accepted += 1);
                        tokio::spawn(connection::forward(client, target, Arc::clone(&shared)));
                    }
                }
            },
        }
    }
}
