//! When a command that runs until it is told to end is told so: SIGTERM, SIGINT, or a parent that closed our stdin.
//!
//! Listening begins at [`Ending::listen`], before anything says that it is ready: a signal that comes right after that must not kill.

use tokio::io::AsyncReadExt as _;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Fault;

/// Waits to be told.
#[derive(Debug)]
pub(crate) struct Ending {
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    interrupt: Signal,
    until_stdin_closes: bool,
}

impl Ending {
    /// Listens from now on. With `until_stdin_closes` the end of stdin counts too.
    pub(crate) fn listen(until_stdin_closes: bool) -> Result<Self, Fault> {
        #[cfg(unix)]
        {
            let fault = |why: std::io::Error| Fault::new(format!("signals cannot be listened to: {why}"));
            let terminate = signal(SignalKind::terminate()).map_err(fault)?;
            let interrupt = signal(SignalKind::interrupt()).map_err(fault)?;
            Ok(Self { terminate, interrupt, until_stdin_closes })
        }
        #[cfg(not(unix))]
        Ok(Self { until_stdin_closes })
    }

    /// Until then.
    pub(crate) async fn told(&mut self) {
        let stdin = self.until_stdin_closes;
        tokio::select! {
            () = self.signalled() => {}
            () = stdin_closed(), if stdin => {}
        }
    }

    #[cfg(unix)]
    async fn signalled(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    async fn signalled(&mut self) {
        // Without a way to hear of it there is only the end of the process.
        let _ = tokio::signal::ctrl_c().await;
    }
}

async fn stdin_closed() {
    let mut stdin = tokio::io::stdin();
    let mut ignored = [0u8; 64];
    while stdin.read(&mut ignored).await.is_ok_and(|read| read > 0) {}
}
