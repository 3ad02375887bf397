//! The socket: accepts, limits, serves, and drains.
//!
//! In: a listener and a router. Out: answers. A connection has a time for its head, so that slow senders hold nothing; over the limit of
//! connections the next one waits in the system's queue.

mod linger;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::config::Http;
use linger::Lingering;

/// How long open connections may take to end once nothing runs any more.
const CLOSE_WITHIN: Duration = Duration::from_secs(3);
/// The pause after a connection could not be accepted: out of descriptors, most likely.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until it is told to stop, then lets open connections end.
pub(crate) async fn serve(listener: TcpListener, router: Router, http: Http, mut stop: watch::Receiver<bool>) {
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(http.max_connections));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(http.header_timeout).max_headers(100);
    while !*stop.borrow() {
        let accepted = tokio::select! {
            changed = stop.changed() => { if changed.is_err() { break } continue }
            accepted = accept(&listener, &room) => accepted,
        };
        let (stream, permit) = match accepted {
            Ok(accepted) => accepted,
            Err(why) => {
                tracing::warn!(%why, "a connection was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let connection = builder.serve_connection(TokioIo::new(Lingering::new(stream)), TowerToHyperService::new(router.clone()));
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // An error here is a client that went away or spoke no HTTP.
            if let Err(why) = connection.await {
                tracing::debug!(%why, "a connection ended");
            }
            drop(permit);
        });
    }
    drop(listener);
    if tokio::time::timeout(CLOSE_WITHIN, graceful.shutdown()).await.is_err() {
        tracing::info!("some connections were still open at the end");
    }
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> std::io::Result<(tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, permit))
}
