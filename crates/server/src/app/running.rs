//! A service that runs, and how it ends: new requests are refused first, what runs is finished or parked, workers and connections end last.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::post;
use payonce::{Guard, Policy};
use payonce_core::clock::Entropy;
use payonce_core::id::TenantId;
use payonce_core::secret::Secret;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tower_http::catch_panic::CatchPanicLayer;

use super::{App, StartFault, sandbox};
use crate::api::{self, Api};
use crate::{dashboard, observe, pages, serve, webhook, workers};

/// Answers that a repeat gets without asking the store. They cannot change until they expire, on whatever node.
const REPLAYS_AT_HAND_BYTES: usize = 16 << 20;

/// How long workers may take over the round that they have begun.
const WORKERS_WITHIN: Duration = Duration::from_secs(20);

/// A service that runs.
#[derive(Debug)]
pub struct Running {
    /// Where it listens.
    pub addr: SocketAddr,
    /// The sandbox that its channels are set up against.
    pub sandbox_url: Option<String>,
    /// API keys that are ready against the sandbox.
    pub api_keys: Vec<(TenantId, Secret)>,
    /// What callbacks are signed with against the sandbox.
    pub webhook_secrets: Vec<(TenantId, Secret)>,
    guard: Guard,
    drain: Duration,
    draining: watch::Sender<bool>,
    stop_workers: watch::Sender<bool>,
    workers: Vec<JoinHandle<()>>,
    stop_serving: watch::Sender<bool>,
    serving: JoinHandle<()>,
    ended: watch::Receiver<bool>,
    own_sandbox: Option<payonce_sandbox::Running>,
}

impl App {
    /// Binds the port, sets the sandbox up if that is asked for, and starts guard, workers and socket.
    pub async fn serve(self) -> Result<Running, StartFault> {
        observe::meter::start();
        let config = &self.config;
        let listener = TcpListener::bind(config.listen.as_str()).await.map_err(|why| {
            StartFault::new(format!("cannot listen on {}: {why}", config.listen))
                .hint_that("name another address with --listen; port 0 takes a free one")
        })?;
        let addr = listener.local_addr().map_err(|why| StartFault::new(why.to_string()))?;
        let ledger = match &config.public_url {
            Some(_) => self.ledger(),
            None => self.ledger_at(reachable(addr)),
        };
        let set_up = if config.sandbox.enabled { Some(self.set_up_sandbox().await?) } else { None };
        if config.public_url.is_none() && !config.sandbox.enabled {
            tracing::warn!(url = ledger.public_url, "public_url is not set: channels are told to send notifications there");
        }
        let policy = Policy {
            lease: config.guard.lease,
            ttl: config.guard.ttl,
            max_answer_bytes: config.guard.max_answer_bytes,
            max_runs: config.guard.max_runs,
            cache_bytes: REPLAYS_AT_HAND_BYTES,
            ..Policy::default()
        };
        let records = Arc::clone(&self.store);
        let guard =
            Guard::start(records, self.keyring(), self.entropy(), policy).map_err(|why| StartFault::new(format!("guard: {why}")))?;
        let (draining, is_draining) = watch::channel(false);
        let (stop_workers, workers_stop) = watch::channel(false);
        let (stop_serving, serving_stops) = watch::channel(false);
        let (ends, ended) = watch::channel(false);
        let signers = self.endpoints.keys().cloned().collect();
        let api =
            Arc::new(Api { config: Arc::clone(config), ledger: Arc::clone(&ledger), guard: guard.clone(), draining: is_draining, signers });
        let router = router(api, self.entropy());
        let http = config.http;
        let serving = tokio::spawn(async move {
            serve::serve(listener, router, http, serving_stops).await;
            let _ = ends.send(true);
        });
        let workers = workers::start(&ledger, &self.merchant(), config, &workers_stop);
        let webhook_secrets = match set_up {
            Some(_) => {
                sandbox::tenants().filter_map(|tenant| Some((tenant.clone(), self.endpoints.get(&tenant)?.secret.clone()))).collect()
            }
            None => Vec::new(),
        };
        let (sandbox_url, api_keys, own_sandbox) = match set_up {
            Some(set_up) => (Some(set_up.url), set_up.api_keys, set_up.own),
            None => (None, Vec::new(), None),
        };
        let drain = config.http.drain;
        Ok(Running {
            addr,
            sandbox_url,
            api_keys,
            webhook_secrets,
            guard,
            drain,
            draining,
            stop_workers,
            workers,
            stop_serving,
            serving,
            ended,
            own_sandbox,
        })
    }
}

fn router(api: Arc<Api>, entropy: Arc<dyn Entropy>) -> Router {
    Router::new()
        .merge(api::router())
        .merge(pages::router())
        .merge(dashboard::router())
        .route("/webhooks/{channel}/{account}", post(webhook::receive))
        .fallback(pages::no_route)
        .method_not_allowed_fallback(pages::no_method)
        // Bodies are read by the door, with its own limit.
        .layer(DefaultBodyLimit::disable())
        .layer(CatchPanicLayer::custom(|_| api::fault::panicked()))
        .layer(axum::middleware::from_fn_with_state(entropy, observe::access::observed))
        .with_state(api)
}

/// An address that channels and browsers on this machine can open.
fn reachable(addr: SocketAddr) -> String {
    if addr.ip().is_unspecified() { format!("http://127.0.0.1:{}", addr.port()) } else { format!("http://{addr}") }
}

impl Running {
    /// Returns when the socket is lost or the service has ended.
    pub async fn wait(&self) {
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }

    /// Ends the service: `/readyz` and new POSTs answer 503, what runs has [`crate::config::Http::drain`] to end, then workers and connections end.
    /// Whether everything had ended in time; what had not is taken over when its lease lapses.
    pub async fn shutdown(self) -> bool {
        let _ = self.draining.send(true);
        let mut all_ended = self.guard.shutdown(self.drain).await;
        let _ = self.stop_workers.send(true);
        let workers = futures_util::future::join_all(self.workers);
        all_ended &= tokio::time::timeout(WORKERS_WITHIN, workers).await.is_ok();
        let _ = self.stop_serving.send(true);
        let _ = self.serving.await;
        if let Some(sandbox) = self.own_sandbox {
            sandbox.shutdown().await;
        }
        all_ended
    }
}

/// Returns at SIGTERM, or at an interrupt from the keyboard.
pub async fn shutdown_signal() {
    let interrupt = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminate = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminate = std::future::pending::<()>();
    tokio::select! {
        () = interrupt => {}
        () = terminate => {}
    }
}
