//! Notifications that repeat, lie, hurry or never come.

use crate::client::Answer;
use crate::demo::act::{Act, reference};
use crate::exit::Fault;

const PAYMENTS: &str = "/v1/payments";

async fn waiting_order(act: &mut Act<'_>) -> Result<Answer, Fault> {
    let (key, body) = (act.key(), act.by_buyer(1990));
    let payment = act.post_until_known(PAYMENTS, &key, &body).await?;
    act.expect_status("the payment", &payment, 201);
    act.expect(payment.text("/status") == "pending", || format!("it is {}, not pending", payment.text("/status")));
    Ok(payment)
}

/// The channel tells five times.
pub(in crate::demo) async fn repeated(act: &mut Act<'_>) -> Result<(), Fault> {
    let payment = waiting_order(act).await?;
    let channel_ref = reference(&payment);
    act.buyer_does(&channel_ref, "pay").await?;
    act.wait_for(&payment.text("/id"), "paid").await?;
    for _ in 0..4 {
        let sent = act.notification(&channel_ref, "repeat").await?;
        act.expect(is_acknowledged(&sent), || "a repeat was not acknowledged".to_owned());
    }
    act.wait_for(&payment.text("/id"), "paid").await
}

/// Somebody else tells us that an order is paid: it must not count. Then the buyer really pays.
pub(in crate::demo) async fn false_one(act: &mut Act<'_>, mode: &str) -> Result<(), Fault> {
    let payment = waiting_order(act).await?;
    let channel_ref = reference(&payment);
    let sent = act.notification(&channel_ref, mode).await?;
    act.expect(!is_acknowledged(&sent), || "a false notification was acknowledged".to_owned());
    let seen = act.payment(&payment.text("/id")).await?;
    act.expect(seen["status"] == "pending", || format!("after a false notification the payment is {}", seen["status"]));
    act.buyer_does(&channel_ref, "pay").await?;
    act.wait_for(&payment.text("/id"), "paid").await
}

/// The notification overtakes the answer to our own request.
pub(in crate::demo) async fn early(act: &mut Act<'_>) -> Result<(), Fault> {
    let (key, body) = (act.key(), act.at_once(1990));
    act.all_notifications("early").await?;
    let payment = act.post_until_known(PAYMENTS, &key, &body).await?;
    act.all_notifications("deliver").await?;
    act.expect_status("the payment", &payment, 201);
    act.wait_for(&payment.text("/id"), "paid").await
}

/// The notification is lost; a look-up finds the money.
pub(in crate::demo) async fn lost(act: &mut Act<'_>) -> Result<(), Fault> {
    let payment = waiting_order(act).await?;
    let channel_ref = reference(&payment);
    act.notification(&channel_ref, "drop").await?;
    act.buyer_does(&channel_ref, "pay").await?;
    act.wait_for(&payment.text("/id"), "paid").await
}

/// Whether the merchant's side said "received" to what the sandbox has just sent.
fn is_acknowledged(report: &Answer) -> bool {
    report.json()["sent"].as_array().is_some_and(|sent| sent.iter().any(|delivery| delivery["acknowledged"] == true))
}
