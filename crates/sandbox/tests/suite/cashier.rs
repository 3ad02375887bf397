//! Pages that buyers open.

use serde_json::{Value, json};

use crate::receiver::{Came, Receiver, decoded};
use crate::world::World;

fn page_url(world: &World, number: &str, notify_url: &str) -> String {
    let biz =
        json!({ "out_trade_no": number, "total_amount": "12.30", "subject": "<b>双十一</b>", "product_code": "FAST_INSTANT_TRADE_PAY" });
    let mut params = world.params(&world.account, "alipay.trade.page.pay", &biz);
    params.push(("notify_url".to_owned(), notify_url.as_bytes().to_vec()));
    params.push(("return_url".to_owned(), b"http://127.0.0.1:1/back?x=1".to_vec()));
    format!("/alipay/gateway.do?{}", world.account.form(&params))
}

fn action(page: &str) -> String {
    let from = page.find("action=\"").expect("a form") + 8;
    page[from..].split('"').next().expect("an address").to_owned()
}

#[tokio::test]
async fn a_page_makes_the_trade_when_it_is_opened_and_pays_by_its_button() {
    let mut shop = Receiver::start().await;
    let world = World::new().await;
    let url = page_url(&world, "P1", &shop.url);
    let query = || world.call("alipay.trade.query", json!({ "out_trade_no": "P1" }));
    assert_eq!(query().await["sub_code"], "ACQ.TRADE_NOT_EXIST");
    let page = world.get(&url).await;
    let text = page.text();
    assert!(page.status == 200 && text.contains("Pay</button>") && text.contains("确认付款") && text.contains("¥12.30"), "{text}");
    assert!(text.contains("&lt;b&gt;双十一") && !text.contains("<b>双十一"), "{text}");
    assert_eq!(query().await["trade_status"], "WAIT_BUYER_PAY");

    let back = world.http("POST", &action(&text), "application/x-www-form-urlencoded", "act=pay").await.expect("an answer");
    assert_eq!(back.status, 302);
    let location = back.headers["location"].to_str().expect("text").to_owned();
    let returned = location.strip_prefix("http://127.0.0.1:1/back?x=1&").expect("the shop's page");
    let returned = Came { params: decoded(returned.as_bytes()), content_type: String::new(), body: Vec::new() };
    assert!(returned.is_authentic(&world.account.channel_key));
    assert_eq!((returned.text("out_trade_no"), returned.text("total_amount")), ("P1".to_owned(), "12.30".to_owned()));
    let came = shop.next().await;
    assert!(came.is_authentic(&world.account.channel_key) && came.text("trade_status") == "TRADE_SUCCESS");

    // Opened again, and paid by the other window's button: nothing new.
    assert!(world.get(&url).await.text().contains("ACQ.TRADE_HAS_SUCCESS"));
    world.http("POST", &action(&text), "application/x-www-form-urlencoded", "act=pay").await.expect("an answer");
    assert_eq!(world.booked("P1", "charge").await, (1, 2, Some(1230)));
}

#[tokio::test]
async fn a_qr_code_opens_the_cashier_too_and_looking_pays_nothing() {
    let world = World::new().await;
    let code_url = world.precreate("P2", None).await;
    assert!(code_url.starts_with(&format!("{}/alipay/qr/", world.base)));
    let text = world.get(&code_url).await.text();
    assert!(text.contains("Pay</button>"), "{text}");
    assert_eq!(world.booked("P2", "charge").await.0, 0);
    let paid = world.http("POST", &action(&text), "application/x-www-form-urlencoded", "act=pay").await.expect("an answer");
    assert!(paid.status == 200 && paid.text().contains("Paid"));
    assert_eq!(world.booked("P2", "charge").await.0, 1);
    assert_eq!(world.get("/alipay/qr/bax0").await.status, 404);
}

#[tokio::test]
async fn the_control_call_can_open_the_page_for_the_buyer() {
    let shop = Receiver::start().await;
    let world = World::new().await;
    let url = format!("{}{}", world.base, page_url(&world, "P3", &shop.url));
    let unknown = json!({ "channel": "alipay", "channel_ref": "P3", "action": "pay" }).to_string();
    let raw = world.http("POST", "/_sandbox/buyer", "application/json", unknown).await.expect("an answer");
    assert_eq!(raw.status, 404);
    assert!(raw.json()["hint"].as_str().is_some_and(|hint| hint.contains("url")));
    let done = world.control("buyer", json!({ "channel": "alipay", "channel_ref": "P3", "action": "pay", "url": url })).await;
    assert_eq!(done["status"], "TRADE_SUCCESS");
}

#[tokio::test]
async fn with_auto_pay_buyers_pay_as_soon_as_they_can() {
    let world = World::with(|options| options.auto_pay = true).await;
    world.precreate("P4", None).await;
    world.get(&page_url(&world, "P5", "http://127.0.0.1:1/")).await;
    for number in ["P4", "P5"] {
        assert_eq!(world.call("alipay.trade.query", json!({ "out_trade_no": number })).await["trade_status"], Value::from("TRADE_SUCCESS"));
        assert_eq!(world.booked(number, "charge").await.0, 1);
    }
}
