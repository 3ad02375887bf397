//! [`Transport`] over TCP and TLS.
//!
//! In: a request and its deadlines. Out: the whole reply, or a fault that says whether a byte may have left. Never: a retry of a request
//! of which a byte was written, a redirect, a proxy out of the environment, a body over the limit, or a byte after the deadline.
//!
//! Connections are hyper's own; the pool is ours, because the verdict "not sent" needs the gate of the very connection that was used.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use super::gate::{Gate, Gated};
use super::pool::{Connection, Pool};
use super::target::{Origin, Target};
use super::{Deadlines, SendFault, Transport, WireReply, WireRequest};

/// The largest reply body. Channels' answers are a few KiB.
pub const REPLY_BODY_MAX_BYTES: usize = 1024 * 1024;
/// The largest head of a reply.
const REPLY_HEAD_MAX_BYTES: usize = 128 * 1024;
/// So many requests are under way at once, over all channels.
const IN_FLIGHT_MAX: usize = 512;
/// How long one of several addresses is tried.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// How long an answered connection may take to become ready for its next request before it is dropped instead.
const SETTLE_MAX: Duration = Duration::from_millis(20);

/// Settings of the transport.
#[derive(Clone, Debug, Default)]
pub struct HttpOptions {
    /// A PEM file of certificate authorities that are trusted beside the public ones.
    pub ca_file: Option<PathBuf>,
    /// Hosts that may be called over plain `http://`. Loopback always may.
    pub plain_http_hosts: Vec<String>,
}

/// Why the transport cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum HttpFault {
    /// The file of authorities.
    #[error("ca_file: {0}")]
    CaFile(String),
    /// The TLS library.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// The real network.
pub struct HttpTransport {
    tls: TlsConnector,
    pool: Pool,
    permits: Semaphore,
    plain_http_hosts: Vec<String>,
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpTransport")
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl HttpTransport {
    /// Makes the transport; reads `ca_file` once.
    pub fn new(options: &HttpOptions) -> Result<Self, HttpFault> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        if let Some(path) = &options.ca_file {
            let certificates = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let certificates = certificates.map_err(|fault| HttpFault::CaFile(fault.to_string()))?;
            if certificates.is_empty() {
                return Err(HttpFault::CaFile("holds no certificate".to_owned()));
            }
            for certificate in certificates {
                roots.add(certificate).map_err(|fault| HttpFault::CaFile(fault.to_string()))?;
            }
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            tls: TlsConnector::from(Arc::new(config)),
            pool: Pool::default(),
            permits: Semaphore::new(IN_FLIGHT_MAX),
            plain_http_hosts: options.plain_http_hosts.clone(),
        })
    }

    async fn connect(&self, origin: &Origin, write_by: Instant) -> io::Result<Connection> {
        let addresses = self.addresses(origin).await?;
        let mut refused = io::Error::other("the host has no address");
        let mut left = addresses.len();
        for address in addresses {
            left -= 1;
            // One dead address out of several must not use up the whole time to write.
            let patience = if left > 0 { Instant::now() + CONNECT_MAX } else { write_by };
            match timeout_at(patience, TcpStream::connect(address)).await {
                Ok(Ok(tcp)) => return self.over(tcp, origin, write_by).await,
                Ok(Err(fault)) => refused = fault,
                Err(_) => refused = io::Error::new(io::ErrorKind::TimedOut, "an address did not answer"),
            }
        }
        Err(refused)
    }

    async fn addresses(&self, origin: &Origin) -> io::Result<Vec<SocketAddr>> {
        let found = tokio::net::lookup_host((origin.host.as_str(), origin.port)).await?;
        let in_the_clear = !origin.encrypted && !self.plain_http_hosts.contains(&origin.host);
        let fit: Vec<SocketAddr> = found.filter(|address| !in_the_clear || address.ip().is_loopback()).collect();
        if fit.is_empty() && in_the_clear {
            return Err(io::Error::other("plain http:// is for loopback only: use https://, or list the host in plain_http_hosts"));
        }
        Ok(fit)
    }

    async fn over(&self, tcp: TcpStream, origin: &Origin, write_by: Instant) -> io::Result<Connection> {
        tcp.set_nodelay(true)?;
        let requests = Gate::of_requests();
        if !origin.encrypted {
            return handshake(Gated::new(tcp, requests.clone()), requests, None).await;
        }
        let records = Gate::of_records();
        records.open(write_by);
        let name = ServerName::try_from(origin.host.clone()).map_err(io::Error::other)?;
        let tls = self.tls.connect(name, Gated::new(tcp, records.clone())).await?;
        handshake(Gated::new(tls, requests.clone()), requests, Some(records)).await
    }
}

async fn handshake(stream: impl Stream + 'static, requests: Gate, records: Option<Gate>) -> io::Result<Connection> {
    let (sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(REPLY_HEAD_MAX_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    let driver = tokio::spawn(async move {
        if let Err(fault) = connection.await {
            tracing::debug!(%fault, "connection ended");
        }
    });
    Ok(Connection { sender, requests, records, driver })
}

#[async_trait]
impl Transport for HttpTransport {
    async fn send(&self, request: WireRequest, deadlines: Deadlines) -> Result<WireReply, SendFault> {
        let target = Target::parse(&request.url).map_err(|why| SendFault::NotSent(why.to_owned()))?;
        let late = |_| SendFault::NotSent("the time to write passed before a connection was there".to_owned());
        let _permit = timeout_at(deadlines.write_by, self.permits.acquire())
            .await
            .map_err(late)?
            .map_err(|_| SendFault::NotSent("the transport is closed".to_owned()))?;

        if let Some(connection) = self.pool.take(&target.origin) {
            match self.exchange(connection, &request, &target, deadlines).await {
                // The peer had closed it and not a byte was written, which the gate proves: this is still the first send.
                Err(SendFault::NotSent(why)) if Instant::now() < deadlines.write_by => tracing::debug!(why, "a kept connection was dead"),
                ended => return ended,
            }
        }
        let connection = timeout_at(deadlines.write_by, self.connect(&target.origin, deadlines.write_by))
            .await
            .map_err(late)?
            .map_err(|fault| SendFault::NotSent(format!("no connection: {fault}")))?;
        self.exchange(connection, &request, &target, deadlines).await
    }
}

impl HttpTransport {
    /// One request on one connection. However it ends, and if it is dropped, the connection's gates are shut unless it was answered whole.
    async fn exchange(
        &self,
        mut connection: Connection,
        request: &WireRequest,
        target: &Target,
        by: Deadlines,
    ) -> Result<WireReply, SendFault> {
        let request = wire(request, target).map_err(|fault| SendFault::NotSent(format!("the request cannot be written: {fault}")))?;
        if let Some(records) = &connection.records {
            records.open(by.write_by);
        }
        connection.requests.open(by.write_by);
        let sent = connection.sender.send_request(request);
        let ended = timeout_at(by.answer_by, async { read(sent.await.map_err(|fault| describe(&fault))?).await }).await;
        match ended {
            Ok(Ok(reply)) => {
                // Only a connection that has written and read everything is ready again.
                if let Ok(Ok(())) = timeout(SETTLE_MAX, connection.sender.ready()).await {
                    connection.requests.idle();
                    if let Some(records) = &connection.records {
                        records.idle();
                    }
                    self.pool.put(target.origin.clone(), connection);
                }
                Ok(reply)
            }
            Ok(Err(why)) => Err(verdict(&connection, why)),
            Err(_) => Err(verdict(&connection, "no answer in time".to_owned())),
        }
    }
}

fn verdict(connection: &Connection, why: String) -> SendFault {
    match connection.requests.shut() {
        0 => SendFault::NotSent(why),
        _ => SendFault::Lost(why),
    }
}

fn wire(request: &WireRequest, target: &Target) -> Result<http::Request<Full<Bytes>>, http::Error> {
    let mut builder = http::Request::builder().method(request.method).uri(target.path_and_query.as_str());
    let named = |name: &str| request.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    if !named("host") {
        builder = builder.header(http::header::HOST, target.authority.as_str());
    }
    if !named("user-agent") {
        // WeChat refuses requests without one.
        builder = builder.header(http::header::USER_AGENT, concat!("payonce/", env!("CARGO_PKG_VERSION")));
    }
    for (name, value) in &request.headers {
        builder = builder.header(name.as_str(), value.as_str());
    }
    builder.body(Full::new(Bytes::from(request.body.clone())))
}

async fn read(response: http::Response<hyper::body::Incoming>) -> Result<WireReply, String> {
    let (head, mut body) = response.into_parts();
    let headers = head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec())).collect();
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|fault| describe(&fault))?;
        if let Some(data) = frame.data_ref() {
            if whole.len() + data.len() > REPLY_BODY_MAX_BYTES {
                return Err(format!("the reply is larger than {REPLY_BODY_MAX_BYTES} bytes"));
            }
            whole.extend_from_slice(data);
        }
    }
    Ok(WireReply { status: head.status.as_u16(), headers, body: whole })
}

fn describe(fault: &hyper::Error) -> String {
    match std::error::Error::source(fault) {
        Some(source) => format!("{fault}: {source}"),
        None => fault.to_string(),
    }
}
