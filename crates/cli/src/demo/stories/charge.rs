//! Taking money while the network, the channel or the process fails. The money moves within the request, so that a repeat would be new money.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::demo::act::Act;
use crate::exit::Fault;

const PAYMENTS: &str = "/v1/payments";

/// The channel call meets a fault; the caller repeats its key until it knows.
pub(in crate::demo) async fn meets_fault(act: &mut Act<'_>, fault: &str) -> Result<(), Fault> {
    let (key, body) = (act.key(), act.at_once(1990));
    act.fault("charge", fault, None).await?;
    let first = act.post_until_known(PAYMENTS, &key, &body).await?;
    act.expect_status("the payment", &first, 201);
    let again = act.post(PAYMENTS, &key, &body).await?;
    act.expect_status("the repeat", &again, 201);
    act.expect(again.text("/id") == first.text("/id"), || "the repeat names another payment".to_owned());
    act.wait_for(&first.text("/id"), "paid").await
}

/// The process dies while the channel is working on the charge. It is started again, and the caller repeats its key.
pub(in crate::demo) async fn crash(act: &mut Act<'_>) -> Result<(), Fault> {
    let (key, body) = (act.key(), act.at_once(1990));
    act.fault("charge", "delay", Some(1500)).await?;
    die_while(act, "charge", PAYMENTS, &key, &body).await?;
    let answer = act.post_until_known(PAYMENTS, &key, &body).await?;
    act.expect_status("the repeat after the crash", &answer, 201);
    act.wait_for(&answer.text("/id"), "paid").await
}

/// Sends, waits until the request is at the channel, kills the service there and then, and starts it again.
pub(in crate::demo) async fn die_while(act: &mut Act<'_>, operation: &str, path: &str, key: &str, body: &Value) -> Result<(), Fault> {
    let before = act.arrived(operation).await?;
    act.requests += 1;
    let (api, sent_path, sent_key, sent_body) = (act.stage.api.clone(), path.to_owned(), key.to_owned(), body.clone());
    let sent = tokio::spawn(async move { api.post(&sent_path, Some(&sent_key), &sent_body).await });
    let until = Instant::now() + Duration::from_secs(5);
    while act.arrived(operation).await? == before {
        if Instant::now() >= until {
            return Err(Fault::no(format!("no {operation} arrived at the channel")));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    act.stage.kill_service().await?;
    let answer = sent.await.map_err(|why| Fault::new(why.to_string()))?;
    act.expect(answer.is_err(), || "the service answered although it was killed".to_owned());
    act.stage.restart_service().await
}

/// Twenty identical requests at once.
pub(in crate::demo) async fn double_click(act: &mut Act<'_>) -> Result<(), Fault> {
    let (key, body) = (act.key(), act.at_once(1990));
    act.fault("charge", "delay_response", Some(300)).await?;
    let answers = act.post_together(PAYMENTS, vec![(key.clone(), body.clone()); 20]).await;
    let mut fresh = 0;
    for answer in answers {
        match answer {
            Ok(answer) if answer.status == 201 && !answer.is_replayed() => fresh += 1,
            Ok(answer) if answer.status == 201 => {}
            Ok(answer) if answer.status == 409 && answer.text("/code") == "idempotency_key_in_use" => {}
            Ok(answer) => act.complaints.push(format!("a click was answered {} {}", answer.status, answer.text("/code"))),
            Err(why) => act.complaints.push(format!("a click got no answer: {why}")),
        }
    }
    act.expect(fresh == 1, || format!("{fresh} clicks ran"));
    let replay = act.post_until_known(PAYMENTS, &key, &body).await?;
    act.expect(replay.status == 201 && replay.is_replayed(), || format!("a later click was answered {}, not replayed", replay.status));
    act.wait_for(&replay.text("/id"), "paid").await
}

/// Two devices submit one order, each with a key of its own, at once.
pub(in crate::demo) async fn two_keys(act: &mut Act<'_>) -> Result<(), Fault> {
    let (one, two, body) = (act.key(), act.key(), act.at_once(1990));
    act.fault("charge", "delay_response", Some(300)).await?;
    for answer in act.post_together(PAYMENTS, vec![(one.clone(), body.clone()), (two.clone(), body.clone())]).await {
        match answer {
            Ok(answer) if (200..=202).contains(&answer.status) => {}
            Ok(answer) => act.complaints.push(format!("a device was answered {} {}", answer.status, answer.text("/code"))),
            Err(why) => act.complaints.push(format!("a device got no answer: {why}")),
        }
    }
    let first = act.post_until_known(PAYMENTS, &one, &body).await?;
    let second = act.post_until_known(PAYMENTS, &two, &body).await?;
    act.expect(first.text("/id") == second.text("/id"), || "the two devices got different payments".to_owned());
    act.wait_for(&first.text("/id"), "paid").await
}

/// A key is used again with another amount.
pub(in crate::demo) async fn changed_body(act: &mut Act<'_>) -> Result<(), Fault> {
    let (key, body) = (act.key(), act.at_once(1990));
    let first = act.post_until_known(PAYMENTS, &key, &body).await?;
    act.expect_status("the payment", &first, 201);
    let mut changed = body.clone();
    changed["amount"] = json!(1);
    let refused = act.post(PAYMENTS, &key, &changed).await?;
    act.expect_status("the changed request", &refused, 422);
    act.expect(refused.text("/code") == "idempotency_key_reused", || format!("its code is {}", refused.text("/code")));
    let replay = act.post(PAYMENTS, &key, &body).await?;
    act.expect(replay.is_replayed() && replay.body == first.body, || "the first answer did not come back byte for byte".to_owned());
    act.wait_for(&first.text("/id"), "paid").await
}
