//! A shop that listens for notifications.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::world::{soon, verifies};

/// One that came, decoded once.
#[derive(Clone, Debug)]
pub(crate) struct Came {
    pub(crate) params: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
}

impl Came {
    pub(crate) fn text(&self, name: &str) -> String {
        let value = self.params.iter().find(|(n, _)| n == name.as_bytes()).map(|(_, value)| value.as_slice());
        String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
    }

    /// Whether Alipay signed it.
    pub(crate) fn is_authentic(&self, key_der: &[u8]) -> bool {
        let mut signed: Vec<_> = self.params.iter().filter(|(name, _)| name != b"sign" && name != b"sign_type").collect();
        signed.sort();
        let text = signed.iter().map(|(name, value)| [name.as_slice(), b"=", value].concat()).collect::<Vec<_>>().join(&b'&');
        verifies(key_der, &text, &self.text("sign"))
    }
}

pub(crate) struct Receiver {
    pub(crate) url: String,
    came: mpsc::UnboundedReceiver<Came>,
    answers: Arc<Mutex<VecDeque<&'static str>>>,
}

impl Receiver {
    /// Answers `success` unless it is told otherwise.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("listen");
        let url = format!("http://{}/notify", listener.local_addr().expect("address"));
        let (tell, came) = mpsc::unbounded_channel();
        let answers = Arc::new(Mutex::new(VecDeque::new()));
        let queue = answers.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tell, queue) = (tell.clone(), queue.clone());
                let service = service_fn(move |request| answer(tell.clone(), queue.clone(), request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, came, answers }
    }

    /// The next answers.
    pub(crate) fn answer_with(&self, answers: &[&'static str]) {
        self.answers.lock().expect("lock").extend(answers);
    }

    pub(crate) async fn next(&mut self) -> Came {
        soon(self.came.recv()).await.expect("open")
    }

    pub(crate) fn nothing_came(&mut self) -> bool {
        self.came.try_recv().is_err()
    }
}

async fn answer(
    tell: mpsc::UnboundedSender<Came>,
    queue: Arc<Mutex<VecDeque<&'static str>>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let content_type = request.headers().get("content-type").and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
    let body = request.into_body().collect().await?.to_bytes();
    let _ = tell.send(Came { params: decoded(&body), content_type, body: body.to_vec() });
    let answer = queue.lock().expect("lock").pop_front().unwrap_or("success");
    Ok(Response::new(Full::new(Bytes::from_static(answer.as_bytes()))))
}

pub(crate) fn decoded(form: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let plain = |text: &[u8]| {
        percent_encoding::percent_decode(&text.iter().map(|b| if *b == b'+' { b' ' } else { *b }).collect::<Vec<_>>()).collect::<Vec<u8>>()
    };
    form.split(|b| *b == b'&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let at = pair.iter().position(|b| *b == b'=').expect("a pair");
            (plain(&pair[..at]), plain(&pair[at + 1..]))
        })
        .collect()
}
