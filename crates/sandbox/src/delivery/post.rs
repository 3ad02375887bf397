//! The one way out of the sandbox: a POST to a loopback address.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use payonce_channels::books::WireNotice;

/// The merchant has so long to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_MAX_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Post {
    client: Client<HttpConnector, Full<Bytes>>,
    allowed: Vec<String>,
}

impl Post {
    pub(super) fn new(allowed: Vec<String>) -> Self {
        Self { client: Client::builder(TokioExecutor::new()).build_http(), allowed }
    }

    /// Status and body of the answer, or why there is none.
    pub(super) async fn send(&self, url: &str, notice: WireNotice) -> Result<(u16, Vec<u8>), String> {
        let uri = self.permitted(url)?;
        let mut request = Request::post(uri);
        for (name, value) in &notice.headers {
            request = request.header(name, value);
        }
        let request =
            request.body(Full::new(Bytes::from(notice.body))).map_err(|why| format!("the notification cannot be written: {why}"))?;
        let exchange = async {
            let answer = self.client.request(request).await.map_err(|why| format!("no answer from {url}: {}", cause(&why)))?;
            let status = answer.status().as_u16();
            let body =
                Limited::new(answer.into_body(), ANSWER_MAX_BYTES).collect().await.map_err(|why| format!("the answer broke off: {why}"))?;
            Ok((status, body.to_bytes().to_vec()))
        };
        tokio::time::timeout(ANSWER_WITHIN, exchange)
            .await
            .unwrap_or_else(|_| Err(format!("no answer from {url} within {} s", ANSWER_WITHIN.as_secs())))
    }

    /// The sandbox never calls out: it must not become a way to reach other machines.
    fn permitted(&self, url: &str) -> Result<Uri, String> {
        let uri: Uri = url.parse().map_err(|_| format!("refused: {url} is no address"))?;
        if uri.scheme_str() != Some("http") {
            return Err(format!("refused: the sandbox sends notifications over http only, and this is {url}"));
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(format!("refused: {url} carries user information"));
        }
        let host = uri.host().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let local = host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip| ip.is_loopback());
        if local || self.allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(host)) {
            return Ok(uri);
        }
        Err(format!("refused: the sandbox sends notifications to this machine only, and {host} is not on it"))
    }
}

/// The innermost reason, which is the one that says something.
fn cause(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_called() {
        let post = Post::new(vec!["shop.test".to_owned()]);
        for good in ["http://127.0.0.1:8080/x", "http://localhost/x", "http://[::1]:1/", "http://127.9.9.9/", "http://shop.test/n"] {
            assert!(post.permitted(good).is_ok(), "{good}");
        }
        for bad in [
            "http://10.0.0.5/",
            "http://169.254.169.254/",
            "https://127.0.0.1/",
            "http://example.test/",
            "http://localhost@10.0.0.1/",
            "http://localhost.example.test/",
            "/x",
            "",
        ] {
            assert!(post.permitted(bad).is_err(), "{bad}");
        }
    }
}
