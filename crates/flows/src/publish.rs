//! Publish: outbox rows become signed callbacks, one after the other for each payment, until acknowledged or dead-lettered.
//!
//! In: a tick. Out: a report. Never: blocking settling; skipping an event of a payment.

use std::time::Duration;

use payonce_core::clock::Timestamp;
use payonce_core::event::Event;
use payonce_core::ports::outbox::{Delivered, Delivery};
use payonce_failpoint as failpoint;
use serde_json::json;

use crate::ledger::{FlowFault, Ledger};
use crate::merchant::{self, Merchant};

/// Events of one round.
const BATCH: usize = 64;
/// Pauses between tries; their sum is 75 h 35 min and 5 s.
const PAUSES_S: [u64; 9] = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];

/// What one round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Acknowledged by the merchant.
    pub acknowledged: usize,
    /// To be tried again.
    pub again: usize,
    /// Given up.
    pub dead: usize,
    /// In the feed only.
    pub feed_only: usize,
    /// Events that got their position in the feed.
    pub positioned: usize,
}

impl Report {
    /// Whether a full batch was taken, so that more may wait.
    pub const fn is_full(&self) -> bool {
        self.acknowledged + self.again + self.dead + self.feed_only >= BATCH
    }
}

impl Ledger {
    /// One round: positions in the feed, then deliveries side by side (at most one of each payment).
    pub async fn publish_once(&self, merchant: &dyn Merchant) -> Result<Report, FlowFault> {
        let mut report = Report { positioned: self.store.position_events(1024).await?, ..Report::default() };
        let taken = self.store.take_events(self.now(), self.timing.hold, BATCH).await?;
        let sent = futures_util::future::join_all(taken.iter().map(|delivery| self.deliver(merchant, delivery))).await;
        for (delivery, how) in taken.iter().zip(sent) {
            self.store.delivered(&delivery.event.tenant, &delivery.event.id, &how).await?;
            let event = &delivery.event;
            match how {
                Delivered::Acknowledged => report.acknowledged += 1,
                Delivered::Again(at) => {
                    report.again += 1;
                    tracing::warn!(event = %event.id, payment = %event.payment_id, tries = delivery.tries + 1, next = %at, "a callback was not acknowledged");
                }
                Delivered::Dead(why) => {
                    report.dead += 1;
                    tracing::error!(event = %event.id, payment = %event.payment_id, tries = delivery.tries + 1, why, "a callback is given up");
                }
                Delivered::FeedOnly => report.feed_only += 1,
            }
        }
        // The next event of a payment waits for the one that was just acknowledged.
        if report.acknowledged + report.feed_only + report.dead > 0 {
            self.wake.publish.notify_one();
        }
        Ok(report)
    }

    async fn deliver(&self, merchant: &dyn Merchant, delivery: &Delivery) -> Delivered {
        let event = &delivery.event;
        let Some(endpoint) = merchant.endpoint(&event.tenant) else { return Delivered::FeedOnly };
        let Some(url) = delivery.notify_url.clone().or(endpoint.url) else { return Delivered::FeedOnly };
        let now = self.now();
        let body = body(event);
        let Some(signature) = merchant::sign(&endpoint.secret, event.id.as_str(), now.unix(), &body) else {
            tracing::error!(tenant = %event.tenant, "the webhook secret is not whsec_ and Base64 of 24 to 64 bytes: nothing is sent");
            return again(delivery.tries, now, None, "the webhook secret is not usable");
        };
        let headers = [
            ("content-type", "application/json".to_owned()),
            ("webhook-id", event.id.to_string()),
            ("webhook-timestamp", now.unix().to_string()),
            ("webhook-signature", signature),
        ];
        let answer = merchant.post(&url, &headers, body).await;
        failpoint::hit("publish.sent").await;
        match answer {
            Ok(answer) if (200..300).contains(&answer.status) => Delivered::Acknowledged,
            Ok(answer) if answer.status == 410 => Delivered::Dead("the endpoint answered 410: gone".to_owned()),
            Ok(answer) => again(delivery.tries, now, answer.retry_after, &format!("the endpoint answered {}", answer.status)),
            Err(why) => again(delivery.tries, now, None, &why),
        }
    }
}

/// The callback's body: the same bytes on every try.
pub fn body(event: &Event) -> Vec<u8> {
    json!({ "id": event.id, "type": event.kind, "created_at": event.created_at.to_string(), "data": event.data }).to_string().into_bytes()
}

fn again(tries: u32, now: Timestamp, retry_after_s: Option<u64>, why: &str) -> Delivered {
    let Some(pause) = PAUSES_S.get(tries as usize) else {
        return Delivered::Dead(format!("given up after {} tries: {why}", tries + 1));
    };
    Delivered::Again(now.plus(Duration::from_secs((*pause).max(retry_after_s.unwrap_or(0).min(86_400)))))
}
