//! The buyer changes their mind, or pays what was closed.

use serde_json::json;

use crate::demo::act::{Act, reference};
use crate::exit::Fault;

const PAYMENTS: &str = "/v1/payments";

/// Another way of paying for the same order: the first one is ended at the channel before the second is offered.
pub(in crate::demo) async fn switch(act: &mut Act<'_>) -> Result<(), Fault> {
    let (key, body) = (act.key(), act.by_buyer(1990));
    let payment = act.post_until_known(PAYMENTS, &key, &body).await?;
    act.expect_status("the payment", &payment, 201);
    let (id, first) = (payment.text("/id"), reference(&payment));
    act.buyer_does(&first, "abandon").await?;

    let path = format!("{PAYMENTS}/{id}/attempts");
    let wanted = json!({ "channel": act.part.channel, "method": act.part.other });
    let key = act.key();
    let switched = act.post_until_known(&path, &key, &wanted).await?;
    act.expect_status("the switch", &switched, 201);
    let second = reference(&switched);
    act.expect(!second.is_empty() && second != first, || "the new attempt has no reference of its own".to_owned());
    let status = act.buyer(&first, "pay").await?;
    act.expect(status >= 400, || "the first way of paying still takes money".to_owned());

    let action = switched.text("/attempt/action/url");
    act.buyer_pays_at(&second, &action).await?;
    act.wait_for(&id, "paid").await?;

    let back = json!({ "channel": act.part.channel, "method": act.part.by_buyer });
    let key = act.key();
    let late = act.post(&path, &key, &back).await?;
    act.expect_status("a switch of a paid order", &late, 200);
    Ok(())
}

/// The order is closed, and the buyer's money comes all the same: it goes back, once.
pub(in crate::demo) async fn paid_after_close(act: &mut Act<'_>) -> Result<(), Fault> {
    let (key, body) = (act.key(), act.by_buyer(1990));
    let payment = act.post_until_known(PAYMENTS, &key, &body).await?;
    act.expect_status("the payment", &payment, 201);
    let (id, channel_ref) = (payment.text("/id"), reference(&payment));
    act.buyer_does(&channel_ref, "abandon").await?;
    let key = act.key();
    let closed = act.post_until_known(&format!("{PAYMENTS}/{id}/close"), &key, &json!({})).await?;
    act.expect_status("the close", &closed, 200);
    act.wait_for(&id, "closed").await?;
    act.buyer_does(&channel_ref, "pay_again").await?;
    for _ in 0..2 {
        act.notification(&channel_ref, "repeat").await?;
    }
    act.wait_for(&id, "closed").await
}
