//! The dashboard: read-only, of one tenant, in two languages, and nothing in it runs.

use http::Method;
use serde_json::json;

use crate::place::{CODE_PAYS, KEY, KEY_2, Place, barcode};

#[tokio::test(flavor = "multi_thread")]
async fn it_shows_a_tenants_payments_to_whoever_has_its_key() {
    let place = Place::start().await;
    let mut body = barcode("<O1>", 1990, CODE_PAYS);
    body["description"] = json!("\"><script>alert(1)</script>");
    let paid = place.post("/v1/payments", "K1", &body).await.expect(201).json();
    let url = |path: &str| format!("{}/dashboard{path}", place.base);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let closed = place.client.send(Method::GET, &url(""), &[], "").await.expect(401).text();
    assert!(closed.contains("Sign in") && !closed.contains("O1"));
    place.client.send(Method::POST, &url("/login"), &form, "api_key=wrong").await.expect(401);
    let entered = place.client.send(Method::POST, &url("/login?lang=en"), &form, format!("api_key={KEY}")).await.expect(303);
    let cookie = entered.header("set-cookie").expect("a cookie").to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && !cookie.contains(KEY));
    let cookie = cookie.split(';').next().expect("a value").to_owned();
    let with = [("cookie", cookie.as_str())];
    let list = place.client.send(Method::GET, &url("?lang=en"), &with, "").await.expect(200);
    assert!(list.header("content-security-policy").is_some_and(|policy| policy.starts_with("default-src 'none'")));
    let text = list.text();
    assert!(text.contains("&lt;O1&gt;") && text.contains("19.90 CNY") && !text.contains("<O1>") && !text.contains("://"));
    let path = format!("/payments/{}?lang=zh", paid["id"].as_str().expect("an id"));
    let one = place.client.send(Method::GET, &url(&path), &with, "").await.expect(200).text();
    assert!(one.contains("已支付") && one.contains("payment.paid") && !one.contains("<script"));
    place.client.send(Method::GET, &url("/inbox"), &with, "").await.expect(200);
    // Another tenant does not see it, and a changed cookie is none.
    let other = place.client.send(Method::POST, &url("/login"), &form, format!("api_key={KEY_2}")).await.expect(303);
    let other = other.header("set-cookie").and_then(|cookie| cookie.split(';').next()).expect("a value").to_owned();
    place.client.send(Method::GET, &url(&path), &[("cookie", other.as_str())], "").await.expect(404);
    let changed = format!("{}A", &cookie[..cookie.len() - 1]);
    place.client.send(Method::GET, &url(""), &[("cookie", changed.as_str())], "").await.expect(401);
    place.stop().await;
}
