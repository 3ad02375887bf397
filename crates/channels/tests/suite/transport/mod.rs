//! The transport against peers that misbehave: what was not sent, what may have been, and nothing after the deadline.

mod peer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use payonce_channels::transport::http::{HttpOptions, HttpTransport, REPLY_BODY_MAX_BYTES};
use payonce_channels::transport::{Deadlines, SendFault, Transport, WireReply, WireRequest};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::Instant;

use peer::{Peer, Then};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Trace: a\r\nX-Trace: b\r\n\r\nok";

fn transport() -> HttpTransport {
    HttpTransport::new(&HttpOptions::default()).expect("a transport")
}

fn within(time: Duration) -> Deadlines {
    let by = Instant::now() + time;
    Deadlines { write_by: by, answer_by: by }
}

fn soon() -> Deadlines {
    within(Duration::from_secs(20))
}

fn post(address: impl std::fmt::Display) -> WireRequest {
    WireRequest {
        method: "POST",
        url: format!("http://{address}/pay/a%2Fb?x=1+2"),
        headers: vec![("content-type".to_owned(), "text/plain".to_owned())],
        body: b"body of the request".to_vec(),
    }
}

fn is_lost(ended: &Result<WireReply, SendFault>) -> bool {
    matches!(ended, Err(SendFault::Lost(_)))
}

fn is_not_sent(ended: &Result<WireReply, SendFault>) -> bool {
    matches!(ended, Err(SendFault::NotSent(_)))
}

#[tokio::test]
async fn a_request_arrives_byte_for_byte_and_the_reply_comes_whole() {
    let peer = Peer::start(vec![Then::Say(OK)]).await;
    let reply = transport().send(post(peer.address), soon()).await.expect("a reply");
    assert_eq!((reply.status, reply.body.as_slice(), reply.header("x-trace")), (200, b"ok".as_slice(), Some("a")));
    assert_eq!(reply.headers.iter().filter(|(name, _)| name == "x-trace").count(), 2);
    let heard = peer.heard().await.remove(0);
    assert!(heard.starts_with("POST /pay/a%2Fb?x=1+2 HTTP/1.1\r\n"), "{heard}");
    assert!(heard.ends_with("\r\n\r\nbody of the request"), "{heard}");
    let lower = heard.to_lowercase();
    for header in ["content-length: 19\r\n", "content-type: text/plain\r\n", "user-agent: payonce/", &format!("host: {}\r\n", peer.address)]
    {
        assert!(lower.contains(header), "{header} in {heard}");
    }
}

#[tokio::test]
async fn connections_are_used_again() {
    let peer = Peer::start(vec![Then::Say(OK), Then::Say(OK), Then::Say(OK)]).await;
    let transport = transport();
    for _ in 0..3 {
        transport.send(post(peer.address), soon()).await.expect("a reply");
    }
    assert_eq!((peer.heard().await.len(), peer.accepted()), (3, 1));
}

#[tokio::test]
async fn a_refused_connection_and_a_name_without_an_address_are_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    assert!(is_not_sent(&transport().send(post(address), soon()).await));
    assert!(is_not_sent(&transport().send(post("name.invalid:80"), soon()).await));
    for url in ["", "gateway.do", "ftp://127.0.0.1/", "http://user:secret@127.0.0.1/"] {
        let ended = transport().send(WireRequest { url: url.to_owned(), ..post("x") }, soon()).await;
        assert!(is_not_sent(&ended), "{url}: {ended:?}");
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_written_is_not_sent() {
    let peer = Peer::start(vec![Then::Say(OK)]).await;
    let mut bad = post(peer.address);
    bad.headers.push(("x-split".to_owned(), "a\r\nb: c".to_owned()));
    assert!(is_not_sent(&transport().send(bad, soon()).await));
    assert!(peer.bytes() == 0);
}

#[tokio::test]
async fn a_peer_that_hangs_up_before_it_reads_or_after_has_perhaps_acted() {
    for then in [Then::HangUp, Then::Reset, Then::SayAndHangUp(b""), Then::SayAndHangUp(b"HTTP/1.1 200 OK\r\nContent-Le")] {
        let peer = Peer::start(vec![then]).await;
        let ended = transport().send(post(peer.address), soon()).await;
        assert!(is_lost(&ended), "{then:?}: {ended:?}");
    }
}

#[tokio::test]
async fn half_a_reply_or_none_of_http_is_lost() {
    for said in [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".as_slice(),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x15\x03\x01\x00\x02\x02\x28",
    ] {
        let peer = Peer::start(vec![Then::SayAndHangUp(said)]).await;
        let ended = transport().send(post(peer.address), soon()).await;
        assert!(is_lost(&ended), "{}: {ended:?}", String::from_utf8_lossy(said));
    }
}

#[tokio::test]
async fn an_endless_reply_is_cut_at_the_limit() {
    let peer = Peer::start(vec![Then::SayForEver]).await;
    let ended = transport().send(post(peer.address), soon()).await;
    let Err(SendFault::Lost(why)) = ended else { panic!("lost: {ended:?}") };
    assert!(why.contains(&REPLY_BODY_MAX_BYTES.to_string()), "{why}");
}

#[tokio::test]
async fn a_slow_reply_is_lost_at_the_deadline_and_the_connection_is_closed() {
    let peer = Peer::start(vec![Then::Silence, Then::Say(OK)]).await;
    let transport = transport();
    let started = Instant::now();
    let ended = transport.send(post(peer.address), within(Duration::from_millis(200))).await;
    assert!(is_lost(&ended) && started.elapsed() < Duration::from_secs(10), "{ended:?}");
    peer.closed().await;
    transport.send(post(peer.address), soon()).await.expect("a new connection");
    assert_eq!(peer.accepted(), 2);
}

#[tokio::test]
async fn redirects_are_replies() {
    let peer = Peer::start(vec![Then::Say(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")]).await;
    let reply = transport().send(post(peer.address), soon()).await.expect("a reply");
    assert_eq!((reply.status, peer.accepted()), (302, 1));
}

#[tokio::test]
async fn a_kept_connection_that_died_in_the_meantime_does_not_lose_the_next_request() {
    let peer = Peer::start(vec![Then::SayAndHangUp(OK), Then::Say(OK)]).await;
    let transport = transport();
    transport.send(post(peer.address), soon()).await.expect("a reply");
    peer.closed().await;
    transport.send(post(peer.address), soon()).await.expect("on a new connection");
    assert_eq!((peer.heard().await.len(), peer.accepted()), (2, 2), "each request once");
}

#[tokio::test]
async fn a_kept_connection_that_dies_under_the_request_is_not_tried_again() {
    let peer = Peer::start(vec![Then::Say(OK), Then::HangUp, Then::Say(OK)]).await;
    let transport = transport();
    transport.send(post(peer.address), soon()).await.expect("a reply");
    let ended = transport.send(post(peer.address), soon()).await;
    assert!(is_lost(&ended), "{ended:?}");
    assert_eq!((peer.heard().await.len(), peer.accepted()), (2, 1), "the peer has read it once and nobody sent it again");
}

#[tokio::test]
async fn after_the_deadline_not_a_byte_is_written() {
    let peer = Peer::start(vec![Then::Say(OK), Then::Say(OK)]).await;
    let transport = transport();
    let past = Deadlines { write_by: Instant::now(), answer_by: Instant::now() + Duration::from_secs(20) };
    assert!(is_not_sent(&transport.send(post(peer.address), past).await), "no connection yet");
    transport.send(post(peer.address), soon()).await.expect("a reply");
    let before = peer.bytes();
    let past = Deadlines { write_by: Instant::now(), answer_by: Instant::now() + Duration::from_secs(20) };
    assert!(is_not_sent(&transport.send(post(peer.address), past).await), "on a kept connection");
    assert_eq!(peer.bytes(), before);
}

/// A process that is stopped between handing the request over and the write, and goes on after the deadline. One thread and one task: while
/// the second future spins, nothing else runs, as if the process stood still.
#[tokio::test(flavor = "current_thread")]
async fn a_process_that_was_stopped_before_the_write_writes_nothing_when_it_goes_on() {
    let peer = Peer::start(vec![Then::Say(OK), Then::Say(OK)]).await;
    let transport = transport();
    transport.send(post(peer.address), soon()).await.expect("a kept connection");
    let before = peer.bytes();

    let write_by = Instant::now() + Duration::from_millis(50);
    let deadlines = Deadlines { write_by, answer_by: write_by + Duration::from_secs(20) };
    let stopped = async {
        while Instant::now() < write_by + Duration::from_millis(20) {
            std::hint::spin_loop();
        }
    };
    let (ended, ()) = tokio::join!(transport.send(post(peer.address), deadlines), stopped);
    assert!(is_not_sent(&ended), "{ended:?}");
    assert_eq!(peer.bytes(), before, "nothing more has arrived");
}

#[tokio::test]
async fn a_send_that_is_dropped_writes_nothing_more() {
    let peer = Peer::start(vec![Then::Silence, Then::Say(OK)]).await;
    let transport = transport();
    let request = post(peer.address);
    let dropped = tokio::time::timeout(Duration::from_millis(100), transport.send(request, soon())).await;
    assert!(dropped.is_err());
    peer.closed().await;
}

#[tokio::test]
async fn plain_http_is_for_loopback_only() {
    // 192.0.2.0/24 is for documentation: nothing answers there, and nothing may be tried.
    let started = Instant::now();
    let ended = transport().send(post("192.0.2.1:80"), within(Duration::from_secs(60))).await;
    let Err(SendFault::NotSent(why)) = ended else { panic!("{ended:?}") };
    assert!(why.contains("loopback") && started.elapsed() < Duration::from_secs(5), "{why}");
}

/// A TLS server that answers every request.
async fn tls_peer(ip: &str) -> std::net::SocketAddr {
    let certificates =
        CertificateDer::pem_slice_iter(include_bytes!("tls/server.pem")).collect::<Result<Vec<_>, _>>().expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key")).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .expect("a certificate and its key");
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((ip, 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut tls) = acceptor.accept(tcp).await else { return };
                let mut heard = [0u8; 4096];
                while tls.read(&mut heard).await.is_ok_and(|n| n > 0) {
                    if tls.write_all(OK).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[tokio::test]
async fn tls_trusts_the_given_authority_and_no_unknown_one() {
    let (address, elsewhere) = (tls_peer("127.0.0.1").await, tls_peer("127.0.0.2").await);
    let ca_file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/transport/tls/ca.pem"));
    let with_ca = HttpTransport::new(&HttpOptions { ca_file: Some(ca_file), plain_http_hosts: Vec::new() }).expect("a transport");
    let at = |host: &str, port: u16| WireRequest { url: format!("https://{host}:{port}/pay"), ..post("x") };
    let to = |host: &str| at(host, address.port());
    for _ in 0..2 {
        assert_eq!(with_ca.send(to("localhost"), soon()).await.expect("a reply").body, b"ok");
    }
    assert!(is_not_sent(&transport().send(to("localhost"), soon()).await), "an authority that nobody named");
    let ended = with_ca.send(at("127.0.0.2", elsewhere.port()), soon()).await;
    assert!(matches!(&ended, Err(SendFault::NotSent(why)) if why.contains("certificate")), "a certificate for another name: {ended:?}");
    let missing = HttpOptions { ca_file: Some(PathBuf::from("/does/not/exist")), plain_http_hosts: Vec::new() };
    assert!(HttpTransport::new(&missing).is_err());
}

#[tokio::test]
async fn tls_that_never_answers_the_handshake_is_not_sent() {
    let peer = Peer::start(vec![Then::Silence]).await;
    let request = WireRequest { url: format!("https://localhost:{}/pay", peer.address.port()), ..post("x") };
    let ended = transport().send(request, within(Duration::from_millis(200))).await;
    assert!(is_not_sent(&ended), "{ended:?}");
}

/// Whatever the peer does: what is called not sent was never heard, and nothing is heard twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_a_chaotic_peer_not_sent_means_never_heard_and_nothing_is_heard_twice() {
    let ends = [
        Then::Say(OK),
        Then::SayAndHangUp(OK),
        Then::HangUp,
        Then::Say(OK),
        Then::Reset,
        Then::SayAndHangUp(b"HTTP/1.1 200"),
        Then::Say(OK),
    ];
    let script: Vec<Then> = (0..2000usize).map(|n| ends[(n * n + n / 3) % ends.len()]).collect();
    let peer = Peer::start(script).await;
    let transport = Arc::new(transport());
    let senders: Vec<_> = (0..8u64)
        .map(|sender| {
            let (transport, address) = (transport.clone(), peer.address);
            tokio::spawn(async move {
                let mut ended = Vec::new();
                for n in 0..100u64 {
                    let id = format!("id-{sender}-{n}-");
                    let request = WireRequest { body: id.clone().into_bytes(), ..post(address) };
                    // Some deadlines pass while the request is on its way.
                    let deadlines = if n % 10 == 9 { within(Duration::from_micros(n * 5)) } else { soon() };
                    ended.push((id, transport.send(request, deadlines).await));
                }
                ended
            })
        })
        .collect();
    let mut ended = Vec::new();
    for sender in senders {
        ended.extend(sender.await.expect("a sender"));
    }
    let heard = peer.heard().await;
    let times = |id: &str| heard.iter().filter(|request| request.contains(id)).count();
    let (mut answered, mut lost, mut not_sent) = (0, 0, 0);
    for (id, ended) in &ended {
        match ended {
            Ok(reply) => {
                answered += 1;
                assert_eq!((reply.status, times(id)), (200, 1), "{id}");
            }
            Err(SendFault::Lost(_)) => {
                lost += 1;
                assert!(times(id) <= 1, "{id} was heard {} times", times(id));
            }
            Err(SendFault::NotSent(why)) => {
                not_sent += 1;
                assert_eq!(times(id), 0, "{id}: {why}");
            }
        }
    }
    assert!(answered > 200 && lost > 100 && not_sent > 0, "{answered} answered, {lost} lost, {not_sent} not sent");
}
