//! Metrics in Prometheus' text form, and the channels' calls measured.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use payonce_channels::transport::{Deadlines, SendFault, Transport, WireReply, WireRequest};
use tokio::time::Instant;

/// Of histograms in seconds: from a replay to a channel's deadline.
const BUCKETS_S: [f64; 14] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

/// The process's one recorder. `None` where somebody else has set one.
static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Sets the recorder up, once.
pub(crate) fn start() {
    RECORDER.get_or_init(|| {
        let builder = PrometheusBuilder::new().set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS_S).ok()?;
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).ok()?;
        describe();
        Some(handle)
    });
}

/// The page.
pub(crate) fn page() -> String {
    RECORDER.get().and_then(Option::as_ref).map(PrometheusHandle::render).unwrap_or_default()
}

fn describe() {
    use metrics::{describe_counter, describe_histogram};
    describe_counter!("payonce_http_requests_total", "Requests by method, route and status.");
    describe_histogram!("payonce_http_request_seconds", "How long requests took, by route.");
    describe_counter!("payonce_problems_total", "Refusals and faults by code.");
    describe_counter!("payonce_guard_replies_total", "What keys met: fresh runs, replays, and refusals by code.");
    describe_counter!("payonce_guard_endings_total", "What became of keys that ran: kept, released, parked, broken.");
    describe_counter!("payonce_channel_calls_total", "Calls to channels by host and result.");
    describe_histogram!("payonce_channel_call_seconds", "How long calls to channels took, by host.");
    describe_counter!("payonce_notifications_total", "Deliveries of channels by result.");
    describe_counter!("payonce_worker_rows_total", "Rows that workers dealt with, by worker and result.");
    describe_counter!("payonce_worker_failures_total", "Rounds of workers that failed.");
}

/// Measures what goes through.
#[derive(Clone)]
pub(crate) struct Measured(pub(crate) Arc<dyn Transport>);

#[async_trait]
impl Transport for Measured {
    async fn send(&self, request: WireRequest, deadlines: Deadlines) -> Result<WireReply, SendFault> {
        let host = request.url.split('/').nth(2).unwrap_or_default().to_owned();
        let began = Instant::now();
        let sent = self.0.send(request, deadlines).await;
        let result = match &sent {
            Ok(reply) if reply.status < 500 => "answered",
            Ok(_) => "failed",
            Err(SendFault::NotSent(_)) => "not_sent",
            Err(SendFault::Lost(_)) => "lost",
        };
        metrics::counter!("payonce_channel_calls_total", "host" => host.clone(), "result" => result).increment(1);
        metrics::histogram!("payonce_channel_call_seconds", "host" => host).record(began.elapsed().as_secs_f64());
        sent
    }
}
