//! Callbacks to merchants: the port of [`payonce_flows::merchant`] over HTTP.
//!
//! In: an address, headers, the signed body. Out: a status. It resolves the name itself, refuses addresses inside the network unless they are
//! listed, connects to what it resolved (so that a name cannot lead elsewhere in between), follows no redirect, and reads no more of the
//! answer than it has to.

pub(crate) mod address;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use payonce_core::id::TenantId;
use payonce_flows::merchant::{Answer, Endpoint, Merchant};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use address::{Allowed, Target};

/// How long a callback may take from the first look at its name to the end of its answer.
const DEADLINE: Duration = Duration::from_secs(15);
/// So much of an answer is read; merchants answer with a status.
const ANSWER_MAX_BYTES: usize = 64 * 1024;

/// The way to the merchants. Each callback has a connection of its own: it is resolved and checked anew.
pub(crate) struct Callbacks {
    endpoints: BTreeMap<TenantId, Endpoint>,
    allowed: Allowed,
    tls: TlsConnector,
}

impl std::fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Callbacks({} endpoints)", self.endpoints.len())
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Callbacks {
    pub(crate) fn new(endpoints: BTreeMap<TenantId, Endpoint>, allowed: Allowed) -> Result<Self, rustls::Error> {
        let mut roots = rustls::RootCertStore::empty();
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let tls = tls.with_root_certificates(roots).with_no_client_auth();
        Ok(Self { endpoints, allowed, tls: TlsConnector::from(Arc::new(tls)) })
    }

    async fn send(&self, url: &str, headers: &[(&str, String)], body: Vec<u8>) -> Result<Answer, String> {
        let target = address::check(url, &self.allowed).map_err(|why| format!("the address is refused: {why}"))?;
        let request = request_to(&target, headers, body).ok_or_else(|| "the address cannot be called".to_owned())?;
        let stream = self.connect(&target).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|why| why.to_string())?;
        // Ends with the deadline of the whole, too: it is polled beside the exchange and dropped with it.
        let exchange = async {
            let answer = sender.send_request(request).await.map_err(|why| why.to_string())?;
            let status = answer.status().as_u16();
            let retry_after = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.trim().parse().ok());
            // Read to its end, or to the limit, so that the merchant sees a finished exchange. What it says is of no interest.
            let _ = Limited::new(answer.into_body(), ANSWER_MAX_BYTES).collect().await;
            Ok(Answer { status, retry_after })
        };
        tokio::pin!(connection);
        tokio::pin!(exchange);
        tokio::select! {
            biased;
            answer = &mut exchange => answer,
            // The connection may end before the exchange has picked up what came over it.
            ended = &mut connection => match ended {
                Ok(()) => exchange.await,
                Err(why) => Err(why.to_string()),
            },
        }
    }

    /// Resolves, checks every address, and connects to one that passed.
    async fn connect(&self, target: &Target) -> Result<Box<dyn Stream>, String> {
        let found = tokio::net::lookup_host((target.host.as_str(), target.port)).await.map_err(|why| why.to_string())?;
        let found: Vec<SocketAddr> = found.collect();
        // One address inside is enough to refuse the name: which of them a retry would take is chance.
        if let Some(inside) = found.iter().find(|found| !address::may_connect(target, found.ip(), &self.allowed)) {
            return Err(format!("{} leads to {}, which is inside the network", target.host, inside.ip()));
        }
        let stream = TcpStream::connect(found.as_slice()).await.map_err(|why| why.to_string())?;
        stream.set_nodelay(true).map_err(|why| why.to_string())?;
        if target.url.scheme() != "https" {
            return Ok(Box::new(stream));
        }
        let name = ServerName::try_from(target.host.clone()).map_err(|_| "the host is no name that TLS knows".to_owned())?;
        Ok(Box::new(self.tls.connect(name, stream).await.map_err(|why| why.to_string())?))
    }
}

fn request_to(target: &Target, headers: &[(&str, String)], body: Vec<u8>) -> Option<Request<Full<Bytes>>> {
    let url = &target.url;
    let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let host = url.port().map_or_else(|| url.host_str().map(str::to_owned), |port| Some(format!("{}:{port}", url.host_str()?)))?;
    let mut request =
        Request::builder().method(Method::POST).uri(path).header(HOST, HeaderValue::from_str(&host).ok()?).header("user-agent", "payonce");
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    request.body(Full::new(Bytes::from(body))).ok()
}

#[async_trait]
impl Merchant for Callbacks {
    fn endpoint(&self, tenant: &TenantId) -> Option<Endpoint> {
        self.endpoints.get(tenant).cloned()
    }

    async fn post(&self, url: &str, headers: &[(&str, String)], body: Vec<u8>) -> Result<Answer, String> {
        let sent = tokio::time::timeout(DEADLINE, self.send(url, headers, body)).await;
        sent.unwrap_or_else(|_| Err(format!("no answer within {} s", DEADLINE.as_secs())))
    }
}
