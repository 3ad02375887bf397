//! A raw TCP peer with a script: one entry for each request, over as many connections as it takes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

/// What the peer does once a request is there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    /// Answers and keeps the connection.
    Say(&'static [u8]),
    /// Answers, perhaps in part, and ends the connection.
    SayAndHangUp(&'static [u8]),
    /// Ends the connection.
    HangUp,
    /// Ends the connection by a reset.
    Reset,
    /// A body without an end.
    SayForEver,
    /// Reads and says nothing, until the other side hangs up.
    Silence,
}

#[derive(Debug, Default)]
struct Seen {
    heard: Vec<String>,
    bytes: usize,
    accepted: usize,
    closed: usize,
}

#[derive(Debug)]
struct Shared {
    seen: Mutex<Seen>,
    changed: watch::Sender<u64>,
    script: Mutex<std::vec::IntoIter<Then>>,
}

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peer {
    pub(super) async fn start(script: Vec<Then>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared { seen: Mutex::default(), changed: watch::Sender::new(0), script: Mutex::new(script.into_iter()) });
        let serving = shared.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                locked(&serving.seen).accepted += 1;
                let serving = serving.clone();
                tokio::spawn(async move {
                    serve(stream, &serving).await;
                    serving.note(|seen| seen.closed += 1);
                });
            }
        });
        Self { address, shared }
    }

    /// The requests that were read whole.
    pub(super) async fn heard(&self) -> Vec<String> {
        locked(&self.shared.seen).heard.clone()
    }

    pub(super) fn bytes(&self) -> usize {
        locked(&self.shared.seen).bytes
    }

    pub(super) fn accepted(&self) -> usize {
        locked(&self.shared.seen).accepted
    }

    /// Waits until a connection has ended.
    pub(super) async fn closed(&self) {
        let mut changed = self.shared.changed.subscribe();
        let closed = async {
            while locked(&self.shared.seen).closed == 0 {
                changed.changed().await.expect("the peer lives");
            }
        };
        timeout(Duration::from_secs(20), closed).await.expect("the connection ends");
    }
}

impl Shared {
    fn note(&self, what: impl FnOnce(&mut Seen)) {
        what(&mut locked(&self.seen));
        self.changed.send_modify(|n| *n += 1);
    }
}

async fn serve(mut stream: TcpStream, shared: &Shared) {
    while let Some(request) = request(&mut stream, shared).await {
        shared.note(|seen| seen.heard.push(request));
        let then = locked(&shared.script).next();
        match then.unwrap_or(Then::HangUp) {
            Then::Say(bytes) => {
                if stream.write_all(bytes).await.is_err() {
                    return;
                }
            }
            Then::SayAndHangUp(bytes) => {
                let _ = stream.write_all(bytes).await;
                return;
            }
            Then::HangUp => return,
            Then::Reset => {
                let _ = stream.set_zero_linger();
                return;
            }
            Then::SayForEver => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
                while stream.write_all(&[b'x'; 16 * 1024]).await.is_ok() {}
                return;
            }
            Then::Silence => {
                let mut rest = [0u8; 1024];
                while let Ok(count) = stream.read(&mut rest).await {
                    if count == 0 {
                        return;
                    }
                    shared.note(|seen| seen.bytes += count);
                }
                return;
            }
        }
    }
}

/// Reads a request with a `Content-Length`; bytes that are no request are counted and waited out.
async fn request(stream: &mut TcpStream, shared: &Shared) -> Option<String> {
    let mut whole = Vec::new();
    let mut piece = [0u8; 4096];
    loop {
        let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        whole.extend_from_slice(&piece[..count]);
        shared.note(|seen| seen.bytes += count);
        let text = String::from_utf8_lossy(&whole).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if body.len() >= length.unwrap_or(0) {
            return Some(text);
        }
    }
}
