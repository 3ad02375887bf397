//! The fault proxy, in front of a server that answers each line with the same line.

use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use payonce_testkit::tcp_fault::{Cut, Direction, FaultProxy};

const DUE: Duration = Duration::from_secs(20);

/// Answers on its own threads until the test's process ends. Counts the lines that arrived whole.
fn echo() -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let lines = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&lines);
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let count = Arc::clone(&count);
            thread::spawn(move || {
                let mut reader = BufReader::new(socket.try_clone().unwrap());
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
                    if line.ends_with('\n') {
                        count.fetch_add(1, Ordering::SeqCst);
                        (&socket).write_all(line.as_bytes()).ok();
                    }
                    line.clear();
                }
            });
        }
    });
    (port, lines)
}

fn connect(proxy: &FaultProxy) -> TcpStream {
    let socket = TcpStream::connect(proxy.address()).unwrap();
    socket.set_read_timeout(Some(DUE)).unwrap();
    socket
}

fn ask(socket: &mut TcpStream, line: &str) -> std::io::Result<String> {
    socket.write_all(line.as_bytes())?;
    let mut answer = vec![0; line.len()];
    socket.read_exact(&mut answer)?;
    Ok(String::from_utf8(answer).unwrap())
}

#[test]
fn without_a_fault_bytes_pass_unchanged() {
    let (port, _) = echo();
    let proxy = FaultProxy::start(port);
    let long = format!("{}\n", "x".repeat(100_000));
    let mut socket = connect(&proxy);
    assert_eq!(ask(&mut socket, "hello\n").unwrap(), "hello\n");
    let mut sender = socket.try_clone().unwrap();
    let text = long.clone();
    let sending = thread::spawn(move || sender.write_all(text.as_bytes()).unwrap());
    let mut answer = vec![0; long.len()];
    socket.read_exact(&mut answer).unwrap();
    sending.join().unwrap();
    assert!(answer == long.as_bytes(), "a long line came back changed");
    assert_eq!(proxy.passed(Direction::ToServer), long.len() as u64 + 6);
    assert_eq!(proxy.accepted(), 1);
}

#[test]
fn an_answer_can_be_lost_after_the_server_has_acted() {
    let (port, lines) = echo();
    let proxy = FaultProxy::start(port);
    proxy.cut_after(Direction::ToClient, 0, Cut::Reset);
    let lost = ask(&mut connect(&proxy), "pay\n").unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::ConnectionReset);
    assert_eq!(lines.load(Ordering::SeqCst), 1, "the server did not see the request");
    assert_eq!(proxy.passed(Direction::ToClient), 0);
    assert_eq!(ask(&mut connect(&proxy), "again\n").unwrap(), "again\n", "a cut happens once");
}

#[test]
fn a_request_can_be_cut_in_the_middle() {
    let (port, lines) = echo();
    let proxy = FaultProxy::start(port);
    proxy.cut_after(Direction::ToServer, 3, Cut::Close);
    let lost = ask(&mut connect(&proxy), "payment\n").unwrap_err();
    assert!(matches!(lost.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset), "{lost}");
    assert_eq!(proxy.passed(Direction::ToServer), 3);
    assert_eq!(lines.load(Ordering::SeqCst), 0, "the server took half a request for a whole one");
}

#[test]
fn a_held_direction_keeps_bytes_until_it_is_released() {
    let (port, lines) = echo();
    let proxy = FaultProxy::start(port);
    let mut socket = connect(&proxy);
    proxy.hold(Direction::ToClient);
    socket.write_all(b"pay\n").unwrap();
    assert!(proxy.wait_held(Direction::ToClient, DUE), "no answer arrived at the proxy");
    assert_eq!(lines.load(Ordering::SeqCst), 1);
    assert_eq!(proxy.passed(Direction::ToClient), 0);
    proxy.release(Direction::ToClient);
    let mut answer = [0; 4];
    socket.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"pay\n");
    assert!(proxy.wait_passed(Direction::ToClient, 4, DUE));
}

#[test]
fn refused_connections_come_back_on_the_same_port() {
    let (port, _) = echo();
    let proxy = FaultProxy::start(port);
    let mut old = connect(&proxy);
    assert_eq!(ask(&mut old, "a\n").unwrap(), "a\n");
    proxy.refuse();
    assert_eq!(TcpStream::connect(proxy.address()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(ask(&mut old, "b\n").unwrap(), "b\n", "a connection that existed goes on");
    proxy.heal();
    assert_eq!(ask(&mut connect(&proxy), "c\n").unwrap(), "c\n");
}

#[test]
fn all_connections_can_be_cut_at_once() {
    let (port, _) = echo();
    let proxy = FaultProxy::start(port);
    let mut sockets = [connect(&proxy), connect(&proxy)];
    for socket in &mut sockets {
        ask(socket, "a\n").unwrap();
    }
    proxy.cut_all(Cut::Reset);
    for socket in &mut sockets {
        assert_eq!(socket.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    assert_eq!(ask(&mut connect(&proxy), "b\n").unwrap(), "b\n");
}

#[test]
fn a_delay_holds_an_answer_back_for_as_long() {
    let (port, _) = echo();
    let proxy = FaultProxy::start(port);
    let delay = Duration::from_millis(200);
    proxy.delay(Direction::ToClient, delay);
    let started = Instant::now();
    assert_eq!(ask(&mut connect(&proxy), "a\n").unwrap(), "a\n");
    assert!(started.elapsed() >= delay, "the answer came after {:?}", started.elapsed());
}
