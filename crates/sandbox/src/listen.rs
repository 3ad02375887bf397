//! The socket: reads whole requests, hands them on as tasks of their own, and closes or resets connections where a fault says so.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use payonce_channels::books::SideReply;
use payonce_core::notification::RawRequest;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::problem::Problem;
use crate::wire::{Answer, Shared};
use crate::{control, wire};

const BODY_MAX_BYTES: usize = 1024 * 1024;
const HEAD_WITHIN: Duration = Duration::from_secs(30);
const END_WITHIN: Duration = Duration::from_secs(1);

/// Serves until it is stopped.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    let graceful = GracefulShutdown::new();
    loop {
        let stream = tokio::select! {
            _ = stopped.changed() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(why) => {
                    // Out of descriptors, most likely: a moment later there may be some.
                    tracing::warn!(%why, "a connection was not accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let _ = stream.set_nodelay(true);
        let reset = Arc::new(AtomicBool::new(false));
        let io = TokioIo::new(Connection { stream, reset: reset.clone() });
        let shared = shared.clone();
        let service = service_fn(move |request| answer(shared.clone(), reset.clone(), request));
        let connection = http1::Builder::new().timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).serve_connection(io, service);
        let connection = graceful.watch(connection);
        // An error here is a client that went away or a fault that closed the connection: both are as they should be.
        tokio::spawn(async move { drop(connection.await) });
    }
    drop(listener);
    let _ = tokio::time::timeout(END_WITHIN, graceful.shutdown()).await;
}

/// The connection ends without an answer.
#[derive(Debug, thiserror::Error)]
#[error("closed without an answer")]
struct Closed;

async fn answer(shared: Arc<Shared>, reset: Arc<AtomicBool>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Closed> {
    let raw = match read(request).await {
        Ok(raw) => raw,
        Err(Some(problem)) => return Ok(response(problem.into_reply())),
        Err(None) => return Err(Closed),
    };
    // A task of its own: what was read is handled to its end, even if the caller hangs up.
    let answer = tokio::spawn(dispatch(shared, raw)).await.map_err(|_| Closed)?;
    match answer {
        Answer::Reply(reply) => Ok(response(reply)),
        Answer::Close => Err(Closed),
        Answer::Reset => {
            reset.store(true, Ordering::SeqCst);
            Err(Closed)
        }
    }
}

async fn dispatch(shared: Arc<Shared>, raw: RawRequest) -> Answer {
    if let Some(reply) = control::handle(&shared, &raw).await {
        return Answer::Reply(reply);
    }
    let path = raw.path_and_query.clone();
    match wire::handle(&shared, raw).await {
        Some(answer) => answer,
        None => Answer::Reply(Problem::no_such_path(&path, &shared.channels()).into_reply()),
    }
}

/// The whole request; `None` where the caller broke off in the middle.
async fn read(request: Request<Incoming>) -> Result<RawRequest, Option<Problem>> {
    let (head, body) = request.into_parts();
    let body = match Limited::new(body, BODY_MAX_BYTES).collect().await {
        Ok(body) => body.to_bytes().to_vec(),
        Err(why) if why.is::<http_body_util::LengthLimitError>() => return Err(Some(Problem::too_large(BODY_MAX_BYTES))),
        Err(_) => return Err(None),
    };
    Ok(RawRequest {
        method: head.method.to_string(),
        path_and_query: head.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
        headers: head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec())).collect(),
        body,
    })
}

fn response(reply: SideReply) -> Response<Full<Bytes>> {
    let mut response = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    response.body(Full::new(Bytes::from(reply.body))).unwrap_or_else(|_| {
        let mut broken = Response::new(Full::new(Bytes::from_static(b"the sandbox made an answer that HTTP does not allow")));
        *broken.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        broken
    })
}

/// A connection that can be made to end with a reset.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    reset: Arc<AtomicBool>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.reset.load(Ordering::SeqCst) {
            // With no time to linger, closing sends RST in place of FIN.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
