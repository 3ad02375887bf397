//! Control calls under `/_sandbox`: look at the truth, play the buyer, set faults, spoil notifications, move the clock.
//!
//! They are for whoever runs the sandbox: there is no authentication. Errors are problems that name field, rule and hint.

mod fields;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use payonce_channels::books::{BuyerAction, BuyerFault, EntryKind, SideReply, Variant};
use payonce_channels::contract::Operation;
use payonce_core::notification::RawRequest;
use serde::Serialize;
use serde_json::{Value, json};

use crate::delivery::{self, Delivered, Mode};
use crate::faults::{Fault, Kind};
use crate::problem::Problem;
use crate::wire::{self, DELAY_MAX, Shared};
use fields::Fields;

type Done = Result<(u16, Value), Problem>;

const CALLS: [(&str, &str); 12] = [
    ("GET", "/_sandbox/accounts"),
    ("GET", "/_sandbox/ledger"),
    ("GET", "/_sandbox/requests"),
    ("POST", "/_sandbox/buyer"),
    ("GET", "/_sandbox/faults"),
    ("POST", "/_sandbox/faults"),
    ("DELETE", "/_sandbox/faults"),
    ("GET", "/_sandbox/notifications"),
    ("POST", "/_sandbox/notifications"),
    ("POST", "/_sandbox/google"),
    ("POST", "/_sandbox/clock"),
    ("POST", "/_sandbox/reset"),
];

/// Answers a control call; `None` for a path that is none.
pub(crate) async fn handle(shared: &Arc<Shared>, raw: &RawRequest) -> Option<SideReply> {
    let path = raw.path_and_query.split('?').next().unwrap_or_default();
    if path != "/_sandbox" && !path.starts_with("/_sandbox/") {
        return None;
    }
    let done = match (raw.method.as_str(), path) {
        ("GET", "/_sandbox") => Ok((200, index(shared))),
        ("GET", "/_sandbox/accounts") => accounts(shared, raw),
        ("GET", "/_sandbox/ledger") => ledger(shared, raw),
        ("GET", "/_sandbox/requests") => requests(shared, raw),
        ("POST", "/_sandbox/buyer") => buyer(shared, raw).await,
        ("GET", "/_sandbox/faults") => Ok((200, json(shared.state().faults.waiting()))),
        ("POST", "/_sandbox/faults") => set_fault(shared, raw),
        ("DELETE", "/_sandbox/faults") => Ok((200, json!({ "removed": shared.state().faults.clear() }))),
        ("GET", "/_sandbox/notifications") => notifications(shared, raw),
        ("POST", "/_sandbox/notifications") => treat(shared, raw).await,
        ("POST", "/_sandbox/google") => google(shared),
        ("POST", "/_sandbox/clock") => clock(shared, raw).await,
        ("POST", "/_sandbox/reset") => {
            shared.reset();
            Ok((200, json!({ "reset": true })))
        }
        (method, path) => Err(wrong(method, path)),
    };
    Some(match done {
        Ok((status, body)) => SideReply::new(status, "application/json", format!("{body}\n")),
        Err(problem) => problem.into_reply(),
    })
}

fn wrong(method: &str, path: &str) -> Problem {
    let allowed: Vec<&str> = CALLS.iter().filter(|(_, known)| *known == path).map(|(method, _)| *method).collect();
    if allowed.is_empty() {
        let calls: Vec<String> = CALLS.iter().map(|(method, path)| format!("{method} {path}")).collect();
        return Problem::new(404, "not_found", format!("{path} is no control call"), calls.join(", "));
    }
    Problem::new(405, "method_not_allowed", format!("{method} is not for {path}"), format!("use {}", allowed.join(" or ")))
}

fn json(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

fn index(shared: &Shared) -> Value {
    let calls: Vec<String> = CALLS.iter().map(|(method, path)| format!("{method} {path}")).collect();
    json!({ "channels": shared.channels(), "calls": calls, "now": shared.clock.now().to_string(), "seed": shared.seed() })
}

fn accounts(shared: &Shared, raw: &RawRequest) -> Done {
    let mut query = Fields::of_query(raw)?;
    let channel = channel(shared, &mut query)?;
    query.end()?;
    let shown = shared.accounts().into_iter().filter(|account| channel.is_none_or(|channel| channel == account.channel));
    Ok((200, Value::Object(shown.map(|account| (account.account.clone(), json(account))).collect())))
}

/// The channel that is named, if one is.
fn channel(shared: &Shared, fields: &mut Fields) -> Result<Option<&'static str>, Problem> {
    let Some(name) = fields.optional_text("channel")? else { return Ok(None) };
    let known = shared.channels();
    match known.iter().find(|channel| **channel == name) {
        Some(channel) => Ok(Some(channel)),
        None => Err(Problem::unknown_channel(&name, &known)),
    }
}

fn the_channel(shared: &Shared, fields: &mut Fields) -> Result<&'static str, Problem> {
    let known = shared.channels();
    channel(shared, fields)?.ok_or_else(|| Problem::field("channel", "is required", format!("one of: {}", known.join(", "))))
}

fn ledger(shared: &Shared, raw: &RawRequest) -> Done {
    let mut query = Fields::of_query(raw)?;
    let channel = channel(shared, &mut query)?;
    let reference = query.optional_text("channel_ref")?;
    let account = query.optional_text("account")?;
    let kind: Option<EntryKind> = query.optional_choice("kind", &["charge", "capture", "refund", "close"])?;
    query.end()?;
    let mut rows = shared.ledger();
    rows.retain(|row| {
        channel.is_none_or(|channel| row.channel == channel)
            && account.as_ref().is_none_or(|account| &row.account == account)
            && kind.is_none_or(|kind| row.kind == kind)
            // An order's reference finds what belongs to the order too.
            && reference.as_ref().is_none_or(|reference| &row.channel_ref == reference || row.order_ref.as_ref() == Some(reference))
    });
    Ok((200, json(rows)))
}

fn requests(shared: &Shared, raw: &RawRequest) -> Done {
    let mut query = Fields::of_query(raw)?;
    let channel = channel(shared, &mut query)?;
    let reference = query.optional_text("channel_ref")?;
    query.end()?;
    let state = shared.state();
    let named = |arrival: &&crate::ledger::Arrival| {
        channel.is_none_or(|channel| arrival.channel == channel)
            && (reference.is_none() || reference == arrival.channel_ref || reference == arrival.order_ref)
    };
    let arrivals: Vec<_> = state.ledger.arrivals().filter(named).collect();
    Ok((200, json(arrivals)))
}

async fn buyer(shared: &Arc<Shared>, raw: &RawRequest) -> Done {
    const ACTIONS: [&str; 6] = ["pay", "pay_again", "decline", "abandon", "refund_at_console", "dispute"];
    let mut body = Fields::of_body(raw)?;
    let channel = the_channel(shared, &mut body)?;
    let reference = body.text("channel_ref", "the attempt's channel_ref")?;
    let action: BuyerAction = body.choice("action", &ACTIONS)?;
    let amount = body.optional_integer("amount", 1, 1_000_000_000_000_000)?.and_then(|amount| i64::try_from(amount).ok());
    let account = body.optional_text("account")?;
    let url = body.optional_text("url")?;
    body.end()?;
    if let Some(url) = url {
        open(shared, channel, &url).await?;
    }
    let Some(side) = shared.side(channel) else { return Err(Problem::unknown_channel(channel, &shared.channels())) };
    let (done, notices) =
        shared.at_desk(&mut shared.state(), side, false, |desk| side.buyer(desk, account.as_deref(), &reference, action, amount));
    delivery::take_in(shared, channel, notices, false).await;
    let state = done.map_err(|fault| match fault {
        BuyerFault::Unknown(hint) => {
            Problem::new(404, "unknown_channel_ref", format!("{channel} has not heard of `{reference}`"), hint).at("channel_ref")
        }
        BuyerFault::NotNow(rule) => {
            Problem::new(409, "not_in_this_state", rule, "GET /_sandbox/ledger shows where the order stands").at("action")
        }
        BuyerFault::NotHere(rule) => Problem::new(409, "not_at_this_channel", rule, "use another action").at("action"),
    })?;
    let mut answer = json!({ "channel": channel, "channel_ref": reference, "action": json(action) });
    if let (Value::Object(answer), Value::Object(state)) = (&mut answer, state) {
        answer.extend(state);
    }
    Ok((200, answer))
}

/// Opens an address as the buyer's browser does.
async fn open(shared: &Arc<Shared>, channel: &str, url: &str) -> Result<(), Problem> {
    let hint = "give the attempt's `action.url` or code as it is";
    let uri: http::Uri = url.parse().map_err(|_| Problem::field("url", "is no address", hint))?;
    let path = uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    if !path.starts_with(&format!("/{channel}/")) {
        return Err(Problem::field(
            "url",
            format!("must be an address of {channel} at this sandbox: {}/{channel}/…", shared.base_url()),
            hint,
        ));
    }
    let request = RawRequest { method: "GET".to_owned(), path_and_query: path, headers: Vec::new(), body: Vec::new() };
    let opened = match wire::handle(shared, request).await {
        Some(wire::Answer::Reply(reply)) => reply.status < 400,
        Some(wire::Answer::Close | wire::Answer::Reset) | None => false,
    };
    if opened {
        Ok(())
    } else {
        Err(Problem::field("url", format!("{channel} did not open it"), "GET /_sandbox/requests shows what it answered"))
    }
}

fn set_fault(shared: &Shared, raw: &RawRequest) -> Done {
    const KINDS: [&str; 14] = [
        "refuse_connection",
        "drop_request",
        "drop_response",
        "delay",
        "delay_response",
        "error_before",
        "error_after",
        "malformed",
        "empty",
        "rate_limited",
        "bad_signature",
        "in_progress",
        "awkward",
        "declined",
    ];
    const OPERATIONS: [&str; 9] = ["charge", "query", "close", "capture", "void", "refund", "refund_query", "token", "certificates"];
    const TIMES_MAX: u64 = 1_000_000;
    let mut body = Fields::of_body(raw)?;
    let channel = the_channel(shared, &mut body)?;
    let operation: Operation = body.choice("operation", &OPERATIONS)?;
    let kind: Kind = body.choice("fault", &KINDS)?;
    let times = body.optional_integer("times", 1, TIMES_MAX)?.unwrap_or(1);
    let most = u64::try_from(DELAY_MAX.as_millis()).unwrap_or(u64::MAX);
    let delay_ms = body.optional_integer("delay_ms", 0, most)?;
    let channel_ref = body.optional_text("channel_ref")?;
    body.end()?;
    if kind.waits() && delay_ms.is_none() {
        return Err(Problem::field("delay_ms", "is required for delay and delay_response", format!("milliseconds, at most {most}")));
    }
    if kind == Kind::BadSignature && shared.side(channel).is_some_and(|side| !side.signs_answers()) {
        return Err(Problem::field("fault", format!("{channel} does not sign its answers"), "use malformed"));
    }
    let fault = Fault { id: 0, channel, operation, fault: kind, times, delay_ms: delay_ms.filter(|_| kind.waits()), channel_ref };
    Ok((201, json(shared.state().faults.set(fault))))
}

fn notifications(shared: &Shared, raw: &RawRequest) -> Done {
    let mut query = Fields::of_query(raw)?;
    let channel = channel(shared, &mut query)?;
    let reference = query.optional_text("channel_ref")?;
    query.end()?;
    let outbox = shared.delivery.outbox();
    let items = outbox.items().iter();
    let items = items.filter(|item| channel.is_none_or(|c| c == item.channel) && reference.as_ref().is_none_or(|r| *r == item.channel_ref));
    let modes: Vec<_> = outbox
        .modes()
        .map(|(channel, channel_ref, mode)| json!({ "channel": channel, "channel_ref": channel_ref, "mode": mode }))
        .collect();
    Ok((200, json!({ "modes": modes, "notifications": items.map(json).collect::<Vec<_>>() })))
}

async fn treat(shared: &Arc<Shared>, raw: &RawRequest) -> Done {
    const MODES: [&str; 10] = ["deliver", "repeat", "hold", "release", "drop", "forge", "tamper", "stale", "reorder", "early"];
    const TIMES_MAX: u64 = 1000;
    let mut body = Fields::of_body(raw)?;
    let channel = the_channel(shared, &mut body)?;
    let reference = body.optional_text("channel_ref")?;
    let mode: String = body.choice("mode", &MODES)?;
    let times = body.optional_integer("times", 1, TIMES_MAX)?.unwrap_or(1);
    let account = body.optional_text("account")?;
    let kind = body.optional_text("kind")?;
    body.end()?;
    let reference = reference.as_deref();
    if matches!(mode.as_str(), "deliver" | "release" | "repeat" | "stale" | "reorder") {
        // What is on its way is not sent a second time.
        shared.delivery.calm().await;
    }
    let set = |mode| shared.delivery.outbox().set_mode(channel, reference, mode);
    let sent = match mode.as_str() {
        "deliver" => {
            set(Mode::Deliver);
            let open = shared.delivery.outbox().outstanding(channel, reference);
            delivery::send_all(shared.clone(), open).await
        }
        "release" => {
            set(Mode::Deliver);
            let held = shared.delivery.outbox().held(channel, reference);
            delivery::send_all(shared.clone(), held).await
        }
        "hold" | "drop" => {
            let (mode, standing) =
                if mode == "hold" { (Mode::Hold, delivery::Standing::Held) } else { (Mode::Drop, delivery::Standing::Dropped) };
            set(mode);
            let mut outbox = shared.delivery.outbox();
            for number in outbox.outstanding(channel, reference) {
                outbox.stand(number, standing);
            }
            Vec::new()
        }
        "early" => {
            set(Mode::Early);
            Vec::new()
        }
        "reorder" => reorder(shared, channel, reference).await,
        "repeat" | "stale" => {
            let variant = if mode == "repeat" { Variant::Genuine } else { Variant::Stale };
            let number = latest(shared, channel, reference, kind.as_deref())?;
            let copies = (0..times).map(|_| delivery::send(shared, number, variant));
            join_all(copies).await.into_iter().flatten().collect()
        }
        _ => {
            spoilt(shared, channel, reference, account.as_deref(), if mode == "forge" { Variant::Forged } else { Variant::Tampered }, times)
                .await?
        }
    };
    Ok((200, json!({ "channel": channel, "channel_ref": reference, "mode": mode, "sent": sent })))
}

/// What is outstanding goes out the other way round; with less than two of them, so will the next ones; with none, all known ones do.
async fn reorder(shared: &Arc<Shared>, channel: &'static str, reference: Option<&str>) -> Vec<Delivered> {
    let turned: Vec<u64> = {
        let mut outbox = shared.delivery.outbox();
        let open = outbox.outstanding(channel, reference);
        let all: Vec<u64> = outbox.about(channel, reference).iter().map(|item| item.number).collect();
        let chosen = if open.len() >= 2 || all.len() < 2 { open } else { all };
        if chosen.len() < 2 {
            outbox.set_mode(channel, reference, Mode::Reorder);
            for number in chosen {
                outbox.stand(number, delivery::Standing::Held);
            }
            return Vec::new();
        }
        outbox.set_mode(channel, reference, Mode::Deliver);
        chosen.into_iter().rev().collect()
    };
    delivery::send_all(shared.clone(), turned).await
}

/// The newest notification of a reference.
fn latest(shared: &Shared, channel: &'static str, reference: Option<&str>, kind: Option<&str>) -> Result<u64, Problem> {
    let outbox = shared.delivery.outbox();
    let about = outbox.about(channel, reference);
    let fits = about.into_iter().rfind(|item| kind.is_none_or(|kind| item.kind == kind));
    fits.map(|item| item.number).ok_or_else(|| {
        Problem::new(409, "no_notification", "there is no notification to send again", "let the buyer pay first, or use forge")
            .at("channel_ref")
    })
}

/// Sends notifications that must not be believed: of what is true or, for an order that is not paid, of what is not.
async fn spoilt(
    shared: &Arc<Shared>,
    channel: &'static str,
    reference: Option<&str>,
    account: Option<&str>,
    variant: Variant,
    times: u64,
) -> Result<Vec<Delivered>, Problem> {
    let Some(reference) = reference else {
        return Err(Problem::field("channel_ref", "is required for forge and tamper", "the attempt's channel_ref"));
    };
    let Some(side) = shared.side(channel) else { return Err(Problem::unknown_channel(channel, &shared.channels())) };
    let (notice, _) = shared.at_desk(&mut shared.state(), side, false, |desk| side.pretend_paid(desk, account, reference));
    let Some(notice) = notice else {
        let rule = format!("{channel} has not heard of `{reference}`, or it gave no address for notifications");
        return Err(Problem::new(
            404,
            "unknown_channel_ref",
            rule,
            "create the order first; a page order is known once its address is opened",
        )
        .at("channel_ref"));
    };
    let copies = (0..times).map(|_| delivery::send_notice(shared, channel, &notice, variant));
    Ok(join_all(copies).await)
}

fn google(shared: &Shared) -> Done {
    let rule = "this sandbox does not play Google yet";
    Err(Problem::new(501, "not_built", rule, format!("channels that are built: {}", shared.channels().join(", "))))
}

async fn clock(shared: &Arc<Shared>, raw: &RawRequest) -> Done {
    const TEN_YEARS_SECONDS: u64 = 10 * 365 * 24 * 3600;
    let mut body = Fields::of_body(raw)?;
    let by = body.optional_integer("advance_s", 0, TEN_YEARS_SECONDS)?;
    body.end()?;
    let by = by.ok_or_else(|| Problem::field("advance_s", "is required", "whole seconds to move the channels' clock on by"))?;
    let sent = delivery::advance(shared, Duration::from_secs(by)).await;
    Ok((200, json!({ "now": shared.clock.now().to_string(), "advanced_s": by, "sent": sent })))
}
