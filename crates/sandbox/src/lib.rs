//! The channels' own side on localhost: stateful, with the true ledger and with faults on demand.
//!
//! What comes in: requests in the channels' own formats, and control calls under `/_sandbox`. What goes out: answers and notifications
//! signed as the channels do. It never reaches out but to the loopback addresses that a request gave for notifications, and never has
//! real money or real keys.

mod clock;
mod control;
mod delivery;
mod faults;
mod ledger;
mod listen;
mod problem;
mod wire;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use payonce_channels::books::{self, SideAccount};
use payonce_core::clock::Clock;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use clock::WallClock;
pub use ledger::Row;
use wire::Shared;

/// How a sandbox is started.
#[derive(Clone)]
pub struct Options {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// All chance follows from it.
    pub seed: u64,
    /// Whether buyers pay as soon as they can.
    pub auto_pay: bool,
    /// Hosts beside the loopback ones that notifications may go to. Resolving them is the system's business.
    pub notify_allowed: Vec<String>,
    /// What time it is; `POST /_sandbox/clock` moves the channels' clock on from it.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 9090)),
            seed: 1,
            auto_pay: false,
            notify_allowed: Vec::new(),
            clock: Arc::new(WallClock),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("listen", &self.listen)
            .field("seed", &self.seed)
            .field("auto_pay", &self.auto_pay)
            .finish_non_exhaustive()
    }
}

/// Why a sandbox does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartFault {
    /// The address is taken or not ours.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// A channel's side does not come up.
    #[error("{0}")]
    Side(String),
}

/// The simulated channels.
#[derive(Debug)]
pub struct Sandbox;

impl Sandbox {
    /// Listens and serves until the handle is dropped or shut down. Needs a tokio runtime.
    pub async fn start(options: Options) -> Result<Running, StartFault> {
        let sides = books::sides().map_err(StartFault::Side)?;
        let listener = TcpListener::bind(options.listen).await.map_err(|why| StartFault::Listen(options.listen, why))?;
        let addr = listener.local_addr().map_err(|why| StartFault::Listen(options.listen, why))?;
        let shared = Arc::new(Shared::new(sides, options, base_url(addr)));
        let (stop, stopped) = watch::channel(false);
        let tasks = vec![
            tokio::spawn(listen::serve(listener, shared.clone(), stopped.clone())),
            tokio::spawn(delivery::pump(shared.clone(), stopped)),
        ];
        Ok(Running { addr, shared, stop, tasks })
    }
}

/// An address that a machine-local client can open, also where the sandbox listens on all interfaces.
fn base_url(addr: SocketAddr) -> String {
    if addr.ip().is_unspecified() { format!("http://127.0.0.1:{}", addr.port()) } else { format!("http://{addr}") }
}

/// A sandbox that runs. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    addr: SocketAddr,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Running {
    /// Where it listens.
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:9090`.
    pub fn base_url(&self) -> &str {
        self.shared.base_url()
    }

    /// The test accounts of every channel: what `GET /_sandbox/accounts` shows. `settings` are an account's settings for the product.
    pub fn accounts(&self) -> Vec<SideAccount> {
        self.shared.accounts()
    }

    /// The whole true ledger.
    pub fn ledger(&self) -> Vec<Row> {
        self.shared.ledger()
    }

    /// Stops: open requests have a moment to end.
    pub async fn shutdown(mut self) {
        // The receivers are gone only if the tasks have ended already.
        let _ = self.stop.send(true);
        for task in std::mem::take(&mut self.tasks) {
            let _ = task.await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
    }
}
