//! Two server processes on one database: however the requests fall, one charge each.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::Answer;
use crate::process::{Installation, Process, Store, order, post, wait_for_status};

const CALLERS: usize = 200;

/// All of `bodies` at once, spread over the servers. Every caller gets an answer.
fn at_once(servers: &[Process], requests: Vec<(String, String, Value)>) -> Vec<Answer> {
    let gate = Arc::new(std::sync::Barrier::new(requests.len()));
    std::thread::scope(|scope| {
        let callers: Vec<_> = requests
            .into_iter()
            .enumerate()
            .map(|(i, (key, path, body))| {
                let (gate, server) = (Arc::clone(&gate), &servers[i % servers.len()]);
                scope.spawn(move || {
                    gate.wait();
                    post(server, &key, &path, &body).expect("an answer")
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().expect("no panic")).collect()
    })
}

fn no_5xx(answers: &[Answer]) {
    let bad: Vec<_> = answers.iter().filter(|answer| answer.status >= 500).map(|a| String::from_utf8_lossy(&a.body).into_owned()).collect();
    assert!(bad.is_empty(), "{} of {} answers are 5xx: {}", bad.len(), answers.len(), bad[0]);
}

#[test]
fn b006_two_hundred_identical_requests_charge_once() {
    let shop = Installation::new(Store::postgres());
    let servers = [shop.serve(&[]), shop.serve(&[])];
    for round in 0..3 {
        let order_id = format!("same-{round}");
        let requests = (0..CALLERS).map(|_| (format!("K-{round}"), "/v1/payments".to_owned(), order(&order_id, 1990))).collect();
        let answers = at_once(&servers, requests);
        no_5xx(&answers);
        assert!(answers.iter().all(|a| matches!(a.status, 201 | 202 | 409)), "{:?}", statuses(&answers));
        assert!(answers.iter().any(|a| a.status == 201), "{:?}", statuses(&answers));
        let bodies: HashSet<_> = answers.iter().filter(|a| a.status == 201).map(|a| a.body.clone()).collect();
        assert_eq!(bodies.len(), 1, "every 201 is the same answer");
        wait_for_status(&servers[0], &order_id, "paid", Duration::from_secs(20));
        assert_eq!(shop.sandbox.executed("charge").0, round + 1);
    }
}

#[test]
fn b001_two_hundred_keys_for_one_order_charge_once() {
    let shop = Installation::new(Store::postgres());
    let servers = [shop.serve(&[]), shop.serve(&[])];
    for round in 0..3 {
        let order_id = format!("one-{round}");
        let requests = (0..CALLERS).map(|i| (format!("K-{round}-{i}"), "/v1/payments".to_owned(), order(&order_id, 1990))).collect();
        let answers = at_once(&servers, requests);
        no_5xx(&answers);
        assert!(answers.iter().all(|a| matches!(a.status, 200..=202)), "{:?}", statuses(&answers));
        let ids: HashSet<_> = answers.iter().map(|a| a.json()["id"].to_string()).collect();
        assert_eq!(ids.len(), 1, "one payment");
        wait_for_status(&servers[1], &order_id, "paid", Duration::from_secs(20));
        assert_eq!(shop.sandbox.executed("charge").0, round + 1);
    }
}

#[test]
fn b078_two_refunds_at_once_never_exceed_the_payment() {
    let shop = Installation::new(Store::postgres());
    let servers = [shop.serve(&[]), shop.serve(&[])];
    for round in 0..20 {
        let order_id = format!("refund-{round}");
        let paid = post(&servers[0], &format!("P-{round}"), "/v1/payments", &order(&order_id, 10_000)).expect("an answer").json();
        let path = format!("/v1/payments/{}/refunds", paid["id"].as_str().expect("an id"));
        let requests = ["r1", "r2"].map(|r| (format!("R-{round}-{r}"), path.clone(), json!({ "refund_id": r, "amount": 6000 }))).to_vec();
        let answers = at_once(&servers, requests);
        no_5xx(&answers);
        let mut got = statuses(&answers);
        got.sort_unstable();
        assert_eq!(got, [201, 422], "exactly one succeeds");
        assert_eq!(shop.sandbox.executed("refund").0, round + 1);
    }
}

fn statuses(answers: &[Answer]) -> Vec<u16> {
    answers.iter().map(|answer| answer.status).collect()
}

/// A merchant's endpoint: says 200 to everything and keeps the ids.
pub(crate) struct Receiver {
    addr: String,
    ids: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("an address").to_string();
        let ids = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&ids);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut reader = BufReader::new(stream.try_clone().expect("a socket can be cloned"));
                let (mut length, mut line) = (0usize, String::new());
                while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                    if let Some((name, value)) = line.split_once(':') {
                        match name.to_ascii_lowercase().as_str() {
                            "content-length" => length = value.trim().parse().unwrap_or(0),
                            "webhook-id" => sink.lock().expect("no panic holds it").push(value.trim().to_owned()),
                            _ => {}
                        }
                    }
                    line.clear();
                }
                let _ = reader.take(length as u64).read_to_end(&mut Vec::new());
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        });
        Self { addr, ids }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.addr)
    }

    pub(crate) fn allow(&self) -> String {
        self.addr.clone()
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.ids.lock().expect("no panic holds it").clone()
    }
}
