//! A gate on the way to the socket: nothing is written after the deadline, and it is known whether anything was.
//!
//! In: writes of the HTTP or TLS layer. Out: the same writes, or a refusal. The clock is read in the call that hands the bytes to the
//! kernel, so a process that was stopped for an hour writes nothing when it goes on (I3). One lock covers the check, the write and the
//! verdict: after [`Gate::shut`] has said "not a byte", not a byte follows.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// What may pass.
#[derive(Debug)]
enum State {
    /// Between requests: nothing of a request, but what the layer below needs for itself.
    Idle,
    /// Until the deadline; so many bytes have passed.
    Open { until: Instant, passed: u64 },
    /// Nothing any more, ever.
    Shut,
}

/// Shared by a connection and the request that uses it.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    state: Arc<Mutex<State>>,
    /// Whether bytes may pass between requests: true below TLS, which has alerts of its own to write.
    passes_when_idle: bool,
}

impl Gate {
    /// For the layer whose bytes are the request's own.
    pub(super) fn of_requests() -> Self {
        Self { state: Arc::new(Mutex::new(State::Idle)), passes_when_idle: false }
    }

    /// For the socket below TLS.
    pub(super) fn of_records() -> Self {
        Self { state: Arc::new(Mutex::new(State::Idle)), passes_when_idle: true }
    }

    /// Lets a request pass until `until`.
    pub(super) fn open(&self, until: Instant) {
        let mut state = self.lock();
        if !matches!(*state, State::Shut) {
            *state = State::Open { until, passed: 0 };
        }
    }

    /// The request is over and was answered.
    pub(super) fn idle(&self) {
        let mut state = self.lock();
        if !matches!(*state, State::Shut) {
            *state = State::Idle;
        }
    }

    /// Lets nothing pass any more, and says how many bytes of the request have.
    pub(super) fn shut(&self) -> u64 {
        match std::mem::replace(&mut *self.lock(), State::Shut) {
            State::Open { passed, .. } => passed,
            State::Idle | State::Shut => 0,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one write under the lock.
    fn pass(&self, write: impl FnOnce() -> Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let mut state = self.lock();
        match &mut *state {
            State::Idle if self.passes_when_idle => write(),
            State::Idle | State::Shut => Poll::Ready(Err(io::Error::other("no request may be written on this connection"))),
            State::Open { until, .. } if Instant::now() >= *until => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the time to write has passed")))
            }
            State::Open { passed, .. } => {
                let wrote = write();
                if let Poll::Ready(Ok(count)) = &wrote {
                    *passed = passed.saturating_add(u64::try_from(*count).unwrap_or(u64::MAX));
                }
                wrote
            }
        }
    }
}

/// A stream behind a gate.
#[derive(Debug)]
pub(super) struct Gated<S> {
    inner: S,
    gate: Gate,
}

impl<S> Gated<S> {
    pub(super) const fn new(inner: S, gate: Gate) -> Self {
        Self { inner, gate }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gated<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gated<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let gate = self.gate.clone();
        gate.pass(|| Pin::new(&mut self.inner).poll_write(cx, buf))
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let gate = self.gate.clone();
        gate.pass(|| Pin::new(&mut self.inner).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn nothing_passes_after_the_deadline_or_the_verdict() {
        let gate = Gate::of_requests();
        let mut stream = Gated::new(Vec::new(), gate.clone());
        assert!(stream.write_all(b"x").await.is_err(), "idle");

        gate.open(Instant::now() + Duration::from_secs(60));
        stream.write_all(b"abc").await.expect("open");
        gate.open(Instant::now());
        assert!(stream.write_all(b"late").await.is_err(), "the deadline is exclusive");

        gate.open(Instant::now() + Duration::from_secs(60));
        stream.write_all(b"de").await.expect("open again");
        assert_eq!(gate.shut(), 2);
        gate.open(Instant::now() + Duration::from_secs(60));
        assert!(stream.write_all(b"x").await.is_err(), "shut for good");
        assert_eq!(stream.inner, b"abcde");
    }

    #[tokio::test]
    async fn below_tls_alerts_pass_between_requests() {
        let gate = Gate::of_records();
        let mut stream = Gated::new(Vec::new(), gate.clone());
        stream.write_all(b"alert").await.expect("idle");
        gate.open(Instant::now());
        assert!(stream.write_all(b"record").await.is_err());
        assert_eq!(gate.shut(), 0);
    }
}
