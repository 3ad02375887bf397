//! `payonce bench`: sends payments to a running service as fast as it answers, and measures from the outside.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use payonce::system::SystemEntropy;
use payonce_core::clock::random;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::args::trial::Bench;
use crate::client::Client;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::progress::Progress;

#[derive(Debug, Default)]
struct Sample {
    took: Vec<Duration>,
    statuses: BTreeMap<String, u32>,
}

pub(crate) async fn run(args: Bench) -> Result<Exit, Fault> {
    let client = Client::new(&args.url, Some(&args.api_key));
    let ready = client.get("/readyz").await.map_err(|why| {
        Fault::new(format!("{} does not answer: {why}", args.url))
            .hint("start one with `payonce serve --sandbox` and give its address with --url")
    })?;
    if ready.status != 200 {
        return Err(Fault::new(format!("{} is not ready ({})", args.url, ready.status)));
    }
    let run = u64::from_le_bytes(random(&SystemEntropy::default()));
    if args.replay {
        // What is replayed has to be there first.
        let (key, body) = plan(&args, run).request(0);
        client.post("/v1/payments", Some(&key), &body).await.map_err(Fault::new)?;
    }
    let next = Arc::new(AtomicU32::new(0));
    let started = Instant::now();
    let workers: Vec<_> =
        (0..args.concurrency).map(|_| tokio::spawn(work(client.clone(), next.clone(), args.requests, plan(&args, run)))).collect();
    let progress = Progress::new();
    let watch = async {
        loop {
            progress.say(&format!("{}/{}", next.load(Ordering::Relaxed).min(args.requests), args.requests));
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let all = async {
        let mut all = Sample::default();
        for worker in workers {
            let sample = worker.await.map_err(|why| Fault::new(why.to_string()))?;
            all.took.extend(sample.took);
            sample.statuses.into_iter().for_each(|(status, count)| *all.statuses.entry(status).or_default() += count);
        }
        Ok::<Sample, Fault>(all)
    };
    let mut all = tokio::select! {
        all = all => all?,
        () = watch => return Err(Fault::new("interrupted")),
    };
    let elapsed = started.elapsed();
    progress.clear();
    all.took.sort_unstable();
    let report = report(&args, &all, elapsed);
    Printer::new(args.form.json).one(&report)?;
    let failed = all.statuses.iter().any(|(status, _)| !status.starts_with('2'));
    Ok(if failed { Exit::No } else { Exit::Done })
}

/// What is sent as number `n`.
#[derive(Clone, Debug)]
struct Plan {
    run: u64,
    replay: bool,
    channel: String,
    method: Option<String>,
}

fn plan(args: &Bench, run: u64) -> Plan {
    Plan { run, replay: args.replay, channel: args.channel.clone(), method: args.method.clone() }
}

impl Plan {
    fn request(&self, n: u32) -> (String, Value) {
        let n = if self.replay { 0 } else { n };
        let name = format!("bench-{:016x}-{n}", self.run);
        let mut body = json!({ "order_id": name, "amount": 1990, "currency": "CNY", "channel": self.channel });
        if let Some(method) = &self.method {
            body["method"] = json!(method);
        }
        (name, body)
    }
}

async fn work(client: Client, next: Arc<AtomicU32>, requests: u32, plan: Plan) -> Sample {
    let mut sample = Sample::default();
    loop {
        let n = next.fetch_add(1, Ordering::Relaxed);
        if n >= requests {
            return sample;
        }
        let (key, body) = plan.request(n);
        let sent = Instant::now();
        let status = match client.post("/v1/payments", Some(&key), &body).await {
            Ok(answer) => answer.status.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        sample.took.push(sent.elapsed());
        *sample.statuses.entry(status).or_default() += 1;
    }
}

fn report(args: &Bench, all: &Sample, elapsed: Duration) -> Value {
    let per_second = f64::from(args.requests) / elapsed.as_secs_f64().max(f64::EPSILON);
    json!({
        "requests": args.requests,
        "concurrency": args.concurrency,
        "replay": args.replay,
        "elapsed_ms": milliseconds(elapsed),
        "per_second": (per_second * 10.0).round() / 10.0,
        "p50_ms": milliseconds(quantile(&all.took, 50)),
        "p99_ms": milliseconds(quantile(&all.took, 99)),
        "max_ms": milliseconds(all.took.last().copied().unwrap_or_default()),
        "answers": all.statuses,
    })
}

/// The smallest time that `percent` of the sorted times do not exceed.
fn quantile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

fn milliseconds(span: Duration) -> f64 {
    (span.as_secs_f64() * 100_000.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_ranks_of_what_was_measured() {
        let times: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!((quantile(&times, 50), quantile(&times, 99)), (Duration::from_millis(100), Duration::from_millis(198)));
        assert_eq!((quantile(&times[..1], 99), quantile(&[], 50)), (Duration::from_millis(1), Duration::ZERO));
    }

    #[test]
    fn a_replay_sends_one_request_over_and_over() {
        let plan = |replay| Plan { run: 7, replay, channel: "alipay".to_owned(), method: None };
        assert_eq!(plan(true).request(1), plan(true).request(2));
        assert_ne!(plan(false).request(1), plan(false).request(2));
    }
}
