//! One story under way: what it sends, what it finds wrong with the answers, and what was counted at the channel meanwhile.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::channel::Part;
use super::stage::Stage;
use crate::client::{Answer, Client};
use crate::exit::Fault;

/// How long a caller goes on repeating its request with the same key.
const PATIENCE: Duration = Duration::from_secs(20);

/// Money that really moved, by the sandbox's ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moved {
    /// Charges that were executed.
    pub(super) charges: u64,
    /// Refunds that were executed.
    pub(super) refunds: u64,
}

/// A story under way.
pub(super) struct Act<'a> {
    pub(super) stage: &'a mut Stage,
    pub(super) part: Part,
    slug: &'static str,
    orders: u32,
    keys: u32,
    /// Requests of the merchant to the service that could move money.
    pub(super) requests: u32,
    /// What was not as it should be.
    pub(super) complaints: Vec<String>,
}

impl<'a> Act<'a> {
    pub(super) fn new(stage: &'a mut Stage, part: Part, slug: &'static str) -> Self {
        Self { stage, part, slug, orders: 0, keys: 0, requests: 0, complaints: Vec::new() }
    }

    /// What every order number of this story begins with.
    pub(super) fn prefix(&self) -> String {
        format!("demo-{}-{}-{}-", self.stage.run, self.part.channel, self.slug)
    }

    /// A new idempotency key.
    pub(super) fn key(&mut self) -> String {
        self.keys += 1;
        format!("{}key{}", self.prefix(), self.keys)
    }

    /// The body of a payment that takes its money within the request.
    pub(super) fn at_once(&mut self, amount: i64) -> Value {
        let options = (self.part.at_once_options)();
        self.body(amount, self.part.at_once, Some(options))
    }

    /// The body of a payment that waits for its buyer.
    pub(super) fn by_buyer(&mut self, amount: i64) -> Value {
        self.body(amount, self.part.by_buyer, None)
    }

    fn body(&mut self, amount: i64, method: &str, options: Option<Value>) -> Value {
        self.orders += 1;
        let mut body = json!({
            "order_id": format!("{}{}", self.prefix(), self.orders), "amount": amount, "currency": self.part.currency,
            "channel": self.part.channel, "method": method, "description": "payonce demo", "notify_url": self.stage.merchant.url(),
        });
        if let Some(options) = options {
            body["channel_options"] = options;
        }
        body
    }

    /// Sends once.
    pub(super) async fn post(&mut self, path: &str, key: &str, body: &Value) -> Result<Answer, Fault> {
        self.requests += 1;
        self.stage.api.post(path, Some(key), body).await.map_err(|why| Fault::new(format!("POST {path}: {why}")))
    }

    /// Sends as a careful client does: the same key and body again, until the answer is final.
    pub(super) async fn post_until_known(&mut self, path: &str, key: &str, body: &Value) -> Result<Answer, Fault> {
        let until = Instant::now() + PATIENCE;
        loop {
            self.requests += 1;
            let answer = self.stage.api.post(path, Some(key), body).await;
            let wait = match &answer {
                Ok(answer) => match answer.status {
                    202 | 503 => true,
                    409 => answer.text("/code") == "idempotency_key_in_use",
                    _ => false,
                },
                Err(_) => true,
            };
            if !wait || Instant::now() >= until {
                return answer.map_err(|why| Fault::new(format!("POST {path}: {why}")));
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    /// Several at once: each with its key and body.
    pub(super) async fn post_together(&mut self, path: &str, requests: Vec<(String, Value)>) -> Vec<Result<Answer, String>> {
        self.requests += u32::try_from(requests.len()).unwrap_or(u32::MAX);
        let sent = requests.into_iter().map(|(key, body)| {
            let (api, path): (Client, String) = (self.stage.api.clone(), path.to_owned());
            tokio::spawn(async move { api.post(&path, Some(&key), &body).await })
        });
        let mut answers = Vec::new();
        for task in sent.collect::<Vec<_>>() {
            answers.push(task.await.unwrap_or_else(|why| Err(why.to_string())));
        }
        answers
    }

    /// The payment as the service sees it.
    pub(super) async fn payment(&self, id: &str) -> Result<Value, Fault> {
        let path = format!("/v1/payments/{id}");
        Ok(self.stage.api.get(&path).await.map_err(|why| Fault::new(format!("GET {path}: {why}")))?.json())
    }

    /// Waits until the payment has this status; a complaint if it does not come to that.
    pub(super) async fn wait_for(&mut self, id: &str, status: &str) -> Result<(), Fault> {
        let until = Instant::now() + PATIENCE;
        loop {
            let is = self.payment(id).await?["status"].as_str().unwrap_or_default().to_owned();
            if is == status {
                return Ok(());
            }
            if Instant::now() >= until {
                self.complaints.push(format!("the payment is {is}, not {status}"));
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// A control call to the sandbox.
    pub(super) async fn control(&self, path: &str, body: Value) -> Result<Answer, Fault> {
        self.stage.sandbox.post(path, None, &body).await.map_err(|why| Fault::new(format!("POST {path}: {why}")))
    }

    /// The next request of this operation meets a fault.
    pub(super) async fn fault(&mut self, operation: &str, fault: &str, delay_ms: Option<u64>) -> Result<(), Fault> {
        let mut body = json!({ "channel": self.part.channel, "operation": operation, "fault": fault, "times": 1 });
        if let Some(delay_ms) = delay_ms {
            body["delay_ms"] = json!(delay_ms);
        }
        let answer = self.control("/_sandbox/faults", body).await?;
        self.expect((200..300).contains(&answer.status), || format!("the fault {fault} was refused: {}", answer.status));
        Ok(())
    }

    /// What the buyer does. The status of the sandbox's answer.
    pub(super) async fn buyer(&mut self, channel_ref: &str, action: &str) -> Result<u16, Fault> {
        let body = json!({ "channel": self.part.channel, "channel_ref": channel_ref, "action": action });
        Ok(self.control("/_sandbox/buyer", body).await?.status)
    }

    /// The buyer opens an address of the channel and pays there.
    pub(super) async fn buyer_pays_at(&mut self, channel_ref: &str, url: &str) -> Result<(), Fault> {
        let body = json!({ "channel": self.part.channel, "channel_ref": channel_ref, "action": "pay", "url": url });
        let answer = self.control("/_sandbox/buyer", body).await?;
        self.expect(answer.status == 200, || format!("the buyer could not pay at the page: {} {}", answer.status, answer.text("/detail")));
        Ok(())
    }

    /// What the buyer does, and it has to work.
    pub(super) async fn buyer_does(&mut self, channel_ref: &str, action: &str) -> Result<(), Fault> {
        let status = self.buyer(channel_ref, action).await?;
        self.expect((200..300).contains(&status), || format!("the buyer could not {action}: {status}"));
        Ok(())
    }

    /// What happens to an order's notifications. The sandbox's report on what it sent.
    pub(super) async fn notification(&mut self, channel_ref: &str, mode: &str) -> Result<Answer, Fault> {
        let body = json!({ "channel": self.part.channel, "channel_ref": channel_ref, "mode": mode });
        let answer = self.control("/_sandbox/notifications", body).await?;
        self.expect((200..300).contains(&answer.status), || format!("the mode {mode} was refused: {}", answer.text("/detail")));
        Ok(answer)
    }

    /// How all notifications of the channel are delivered from now on.
    pub(super) async fn all_notifications(&mut self, mode: &str) -> Result<(), Fault> {
        let answer = self.control("/_sandbox/notifications", json!({ "channel": self.part.channel, "mode": mode })).await?;
        self.expect((200..300).contains(&answer.status), || format!("the mode {mode} was refused: {}", answer.text("/detail")));
        Ok(())
    }

    /// How many requests of an operation have arrived at the channel.
    pub(super) async fn arrived(&self, operation: &str) -> Result<usize, Fault> {
        let path = format!("/_sandbox/requests?channel={}", self.part.channel);
        let answer = self.stage.sandbox.get(&path).await.map_err(|why| Fault::new(format!("GET {path}: {why}")))?;
        let rows = answer.json().as_array().cloned().unwrap_or_default();
        Ok(rows.iter().filter(|row| row["operation"] == operation).count())
    }

    /// What has moved at this channel so far.
    pub(super) async fn moved(&self) -> Result<Moved, Fault> {
        let path = format!("/_sandbox/ledger?channel={}", self.part.channel);
        let answer = self.stage.sandbox.get(&path).await.map_err(|why| Fault::new(format!("GET {path}: {why}")))?;
        let rows = answer.json().as_array().cloned().ok_or_else(|| Fault::new("the sandbox's ledger is no list"))?;
        let sum = |kind: &str| rows.iter().filter(|row| row["kind"] == kind).filter_map(|row| row["executed"].as_u64()).sum();
        Ok(Moved { charges: sum("charge"), refunds: sum("refund") })
    }

    /// A complaint unless it holds.
    pub(super) fn expect(&mut self, holds: bool, complaint: impl FnOnce() -> String) {
        if !holds {
            self.complaints.push(complaint());
        }
    }

    /// A complaint unless the answer has this status.
    pub(super) fn expect_status(&mut self, what: &str, answer: &Answer, status: u16) {
        self.expect(answer.status == status, || format!("{what} was answered {} {}, not {status}", answer.status, answer.text("/code")));
    }
}

/// The reference under which the channel knows the newest attempt.
pub(super) fn reference(payment: &Answer) -> String {
    payment.text("/attempt/channel_ref")
}
