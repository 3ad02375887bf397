//! The vector files' format.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use payonce_core::clock::Timestamp;
use payonce_core::money::{Currency, Money};
use payonce_core::notification::{Booked, RawRequest, Reason};
use serde_json::Value;

/// A file.
pub(crate) struct File {
    pub(crate) whole: Value,
    pub(crate) notifications: Vec<Case>,
    pub(crate) requests: Vec<Value>,
}

/// An inbound message and its verdict.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) now: Timestamp,
    pub(crate) raw: RawRequest,
    pub(crate) accept: bool,
    pub(crate) authentic: bool,
    pub(crate) strict: bool,
    pub(crate) reason: Option<Reason>,
    /// One label for each event.
    pub(crate) identities: Vec<String>,
    pub(crate) events: Vec<Value>,
}

fn folder() -> PathBuf {
    // The environment is the runner's way to say where the vectors are; nothing of the product reads it here.
    #[expect(clippy::disallowed_methods, reason = "a test's parameter")]
    let given = std::env::var("PAYONCE_VECTORS");
    given.map_or_else(|_| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/vectors")), PathBuf::from)
}

/// The files that are there, without their ending.
pub(crate) fn names() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).expect("the folder of vectors");
    entries.filter_map(|entry| entry.expect("an entry").file_name().to_str()?.strip_suffix(".json").map(str::to_owned)).collect()
}

pub(crate) fn base64(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().expect("a text")).expect("Base64")
}

fn listed(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(list) => list.clone(),
        one => vec![one.clone()],
    }
}

impl File {
    pub(crate) fn load(name: &str) -> Self {
        let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).expect("a vector file");
        let whole: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(whole["format"], "payment-webhook-vectors/1");
        let notifications = listed(&whole["notifications"]).iter().map(Case::read).collect();
        let requests = listed(&whole["requests"]);
        Self { whole, notifications, requests }
    }

    pub(crate) fn case(&self, id: &str) -> &Case {
        self.notifications.iter().find(|case| case.id == id).expect("a case")
    }

    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.whole.pointer(pointer).and_then(Value::as_str).expect("a text")
    }

    /// What our books say of an order.
    pub(crate) fn booked(&self, merchant_ref: Option<&str>) -> Option<Booked> {
        let orders = self.whole["own_orders"].as_array()?;
        let order = orders.iter().find(|order| order["merchant_ref"].as_str() == merchant_ref && merchant_ref.is_some())?;
        let minor = order["amount_minor"].as_str()?.parse().expect("an amount");
        let currency = Currency::parse(order["currency"].as_str()?).expect("a currency");
        Some(Booked { amount: Money::new(minor, currency) })
    }
}

impl Case {
    fn read(value: &Value) -> Self {
        let (http, expect) = (&value["http"], &value["expect"]);
        let headers = http["headers"].as_array().expect("headers").iter();
        let headers =
            headers.map(|pair| (pair[0].as_str().expect("a name").to_lowercase(), pair[1].as_str().expect("a value").as_bytes().to_vec()));
        Self {
            id: value["id"].as_str().expect("an id").to_owned(),
            now: Timestamp::from_unix(value["verify_at"].as_i64().expect("a time")),
            raw: RawRequest {
                method: http["method"].as_str().expect("a method").to_owned(),
                path_and_query: http["path"].as_str().expect("a path").to_owned(),
                headers: headers.collect(),
                body: base64(&http["body_base64"]),
            },
            accept: expect["verdict"] == "accept",
            authentic: expect["authentic"] == true,
            strict: expect["level"] == "strict",
            reason: expect.get("reason").map(|reason| serde_json::from_value(reason.clone()).expect("a known reason")),
            identities: listed(&expect["identity"]).iter().map(|label| label.as_str().expect("a label").to_owned()).collect(),
            events: listed(&expect["event"]),
        }
    }
}
