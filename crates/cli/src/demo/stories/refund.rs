//! Giving money back, in parts, and while something fails.

use serde_json::{Value, json};

use super::charge::die_while;
use crate::demo::act::Act;
use crate::exit::Fault;

const PAYMENTS: &str = "/v1/payments";

/// A payment over 1000 that is paid. The path of its refunds.
async fn paid(act: &mut Act<'_>) -> Result<String, Fault> {
    let (key, body) = (act.key(), act.at_once(1000));
    let payment = act.post_until_known(PAYMENTS, &key, &body).await?;
    act.expect_status("the payment", &payment, 201);
    act.wait_for(&payment.text("/id"), "paid").await?;
    Ok(format!("{PAYMENTS}/{}/refunds", payment.text("/id")))
}

fn refund(number: &str, amount: i64) -> Value {
    json!({ "refund_id": number, "amount": amount, "reason": "payonce demo" })
}

/// Two parts go back, the third is more than is left; a number that is used again makes no new money.
pub(in crate::demo) async fn partial(act: &mut Act<'_>) -> Result<(), Fault> {
    let path = paid(act).await?;
    for number in ["r1", "r2"] {
        let key = act.key();
        let answer = act.post_until_known(&path, &key, &refund(number, 300)).await?;
        act.expect_status(&format!("refund {number}"), &answer, 201);
    }
    let key = act.key();
    let known = act.post_until_known(&path, &key, &refund("r2", 300)).await?;
    act.expect_status("refund r2 under another key", &known, 200);
    let key = act.key();
    let conflict = act.post(&path, &key, &refund("r2", 301)).await?;
    act.expect_status("refund r2 over another amount", &conflict, 409);
    let key = act.key();
    let over = act.post(&path, &key, &refund("r3", 401)).await?;
    act.expect_status("a refund over the rest", &over, 422);
    Ok(())
}

/// The channel gives the money back and its answer is lost.
pub(in crate::demo) async fn lost_answer(act: &mut Act<'_>) -> Result<(), Fault> {
    let path = paid(act).await?;
    act.fault("refund", "drop_response", None).await?;
    let key = act.key();
    let answer = act.post_until_known(&path, &key, &refund("r1", 400)).await?;
    act.expect_status("the refund", &answer, 201);
    let again = act.post(&path, &key, &refund("r1", 400)).await?;
    act.expect_status("the repeat", &again, 201);
    Ok(())
}

/// The process dies while the channel is working on the refund.
pub(in crate::demo) async fn crash(act: &mut Act<'_>) -> Result<(), Fault> {
    let path = paid(act).await?;
    act.fault("refund", "delay", Some(1500)).await?;
    let (key, body) = (act.key(), refund("r1", 400));
    die_while(act, "refund", &path, &key, &body).await?;
    let answer = act.post_until_known(&path, &key, &body).await?;
    act.expect_status("the repeat after the crash", &answer, 201);
    Ok(())
}
