//! Authentication, charsets and the form of answers.

use serde_json::json;

use crate::receiver::Receiver;
use crate::world::{World, escaped, order, read_answer};

const QUERY: &str = "alipay.trade.query";

#[tokio::test]
async fn a_request_that_is_not_right_is_refused_before_anything_happens() {
    let world = World::new().await;
    let good = world.params(&world.account, "alipay.trade.precreate", &order("A1"));
    let set = |name: &str, value: &str| {
        let mut params = good.clone();
        params.retain(|(n, _)| n != name);
        if !value.is_empty() {
            params.push((name.to_owned(), value.as_bytes().to_vec()));
        }
        world.account.form(&params)
    };
    let cases = [
        (set("app_id", "2021000000000000"), "isv.invalid-app-id"),
        (set("app_id", ""), "isv.missing-app-id"),
        (set("method", "alipay.trade.nothing"), "isv.invalid-method"),
        (set("method", ""), "isv.missing-method"),
        (set("sign_type", "RSA"), "isv.invalid-signature-type"),
        (set("timestamp", "1796132736"), "isv.invalid-timestamp"),
        (set("timestamp", ""), "isv.missing-timestamp"),
        (set("charset", "latin1"), "isv.invalid-charset"),
        (set("biz_content", "[]"), "isv.invalid-parameter"),
        (format!("{}&version=1.0", world.account.form(&good)), "isv.invalid-parameter"),
        (world.account.form(&good).replace("88.80", "0.01").replace(&escaped(b"88.80"), &escaped(b"00.01")), "isv.invalid-signature"),
        (world.second().form(&good), "isv.invalid-signature"),
        (world.account.form(&good).split("&sign=").next().unwrap_or_default().to_owned(), "isv.missing-signature"),
    ];
    for (form, sub_code) in cases {
        let raw = world.post_form(form.clone()).await.expect("an answer");
        assert_eq!(raw.status, 200);
        let node = read_answer(&raw.body, &world.account.channel_key).0;
        assert_eq!(node["sub_code"], sub_code, "{form}");
    }
    assert!(world.ledger("A1").await.is_empty());
}

#[tokio::test]
async fn parameters_may_come_in_the_query_in_the_body_or_in_both() {
    let world = World::new().await;
    world.paid("A1", None).await;
    let form = world.account.form(&world.params(&world.account, QUERY, &json!({ "out_trade_no": "A1" })));
    let (first, last) = form.split_once("&biz_content").expect("two halves");
    let url = "/alipay/gateway.do";
    let typed = "application/x-www-form-urlencoded";
    for raw in [
        world.http("GET", &format!("{url}?{form}"), typed, "").await,
        world.http("POST", &format!("{url}?{form}"), typed, "").await,
        world.http("POST", &format!("{url}?{first}"), typed, format!("biz_content{last}")).await,
    ] {
        let (node, good) = read_answer(&raw.expect("an answer").body, &world.account.channel_key);
        assert_eq!((node["trade_status"].as_str(), good), (Some("TRADE_SUCCESS"), true));
    }
}

#[tokio::test]
async fn b060_gbk_goes_in_and_comes_out() {
    let mut shop = Receiver::start().await;
    let world = World::new().await;
    // 手机壳 in GBK.
    let subject = [0xca, 0xd6, 0xbb, 0xfa, 0xbf, 0xc7];
    let biz = [b"{\"out_trade_no\":\"G1\",\"total_amount\":\"1.00\",\"subject\":\"".as_slice(), &subject, b"\"}"].concat();
    let mut params = world.params(&world.account, "alipay.trade.precreate", &json!({}));
    for (name, value) in &mut params {
        match name.as_str() {
            "biz_content" => value.clone_from(&biz),
            "charset" => *value = b"GBK".to_vec(),
            _ => {}
        }
    }
    params.push(("notify_url".to_owned(), shop.url.clone().into_bytes()));
    let raw = world.post_form(world.account.form(&params)).await.expect("an answer");
    assert_eq!(read_answer(&raw.body, &world.account.channel_key).0["code"], "10000", "{}", raw.text());
    world.buyer("G1", "pay").await;
    let came = shop.next().await;
    assert!(came.is_authentic(&world.account.channel_key));
    assert!(came.params.contains(&(b"subject".to_vec(), subject.to_vec())));
    assert!(came.content_type.ends_with("charset=GBK"));

    // An answer's Chinese is in the charset of its request: a failure's message is.
    params.retain(|(name, _)| name != "notify_url");
    let raw = world.post_form(world.account.form(&params)).await.expect("an answer");
    assert!(raw.body.windows(4).any(|bytes| bytes == [0xbd, 0xbb, 0xd2, 0xd7]), "交易 in GBK");
}

#[tokio::test]
async fn answers_can_be_awkward_and_still_verify_and_can_be_made_not_to_verify() {
    let world = World::new().await;
    world.paid("A1", None).await;
    let ask = || world.try_call(QUERY, json!({ "out_trade_no": "A1" }), None);
    world.fault("query", "awkward").await;
    let raw = ask().await.expect("an answer");
    let (node, good) = read_answer(&raw.body, &world.account.channel_key);
    assert_eq!((node["trade_status"].as_str(), good), (Some("TRADE_SUCCESS"), true));
    let text = raw.text();
    let node_text = &text[..text.find("\"sign\":\"").expect("a signature")];
    assert!(!node_text.contains(&node.to_string()) && node_text.contains("\\u"), "{node_text}");
    assert_ne!(node_text.matches('{').count(), node_text.matches('}').count() + 1, "{node_text}");

    world.fault("query", "bad_signature").await;
    let raw = ask().await.expect("an answer");
    let (node, good) = read_answer(&raw.body, &world.account.channel_key);
    assert_eq!((node["trade_status"].as_str(), good), (Some("TRADE_SUCCESS"), false));
}
