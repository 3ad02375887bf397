//! A connection that is closed gently: what the other side is still sending is read away for a moment, because closing with bytes unread
//! resets the connection, and a reset may take the answer with it (a refused body that is too long).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;

/// For so long at most.
const FOR: Duration = Duration::from_secs(2);
/// Nobody sends any more once this has passed without a byte.
const IDLE: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Debug)]
pub(super) struct Lingering(Option<TcpStream>);

impl Lingering {
    pub(super) const fn new(stream: TcpStream) -> Self {
        Self(Some(stream))
    }

    fn stream(self: Pin<&mut Self>) -> io::Result<Pin<&mut TcpStream>> {
        // Only dropping takes the stream out.
        self.get_mut().0.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        if let (Some(stream), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(tokio::time::timeout(FOR, read_away(stream)));
        }
    }
}

async fn read_away(mut stream: TcpStream) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let mut away = [0u8; 16 * 1024];
    while let Ok(Ok(1..)) = tokio::time::timeout(IDLE, stream.read(&mut away)).await {}
}

impl AsyncRead for Lingering {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_read(cx, into)
    }
}

impl AsyncWrite for Lingering {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(cx)
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }
}
