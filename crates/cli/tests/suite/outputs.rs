//! What each command that prints data prints: text and JSON, on a database with one payment that was paid and refunded in part.

use std::path::Path;

use serde_json::{Value, json};

use crate::binary::{Ended, Folder, Service, command, ended, run};

/// A folder with `payonce.db` in it.
struct Shop {
    folder: Folder,
    payment: String,
    refund: String,
    inbox: String,
}

fn curl(method: &str, url: &str, key: Option<(&str, &str)>, body: Option<&Value>) -> Value {
    let mut curl = std::process::Command::new("curl");
    curl.args(["-sS", "-X", method, url, "-H", "Content-Type: application/json"]);
    if let Some((bearer, key)) = key {
        curl.args(["-H", &format!("Authorization: Bearer {bearer}"), "-H", &format!("Idempotency-Key: {key}")]);
    }
    if let Some(body) = body {
        curl.args(["-d", &body.to_string()]);
    }
    let said = ended(&mut curl);
    serde_json::from_str(&said.stdout).unwrap_or_else(|why| panic!("{url}: {why}: {said:?}"))
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no {pointer} in {value}")).to_owned()
}

fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    assert!(payonce_testkit::ports::wait_until(std::time::Duration::from_secs(20), holds), "it did not come to that {what}");
}

impl Shop {
    /// Takes a payment, lets the buyer pay, gives a part back, and ends the service.
    fn open() -> Self {
        let folder = Folder::new();
        let sandbox = Service::start(folder.path(), &["sandbox", "--listen", "127.0.0.1:0"], &[]);
        let url = sandbox.fact("listening on ");
        let mut service =
            Service::start(folder.path(), &["serve", "--sandbox", "--listen", "127.0.0.1:0"], &[("PAYONCE_SANDBOX_URL", &url)]);
        let (api, key) = (service.fact("listening on "), service.fact("api key "));
        let body = json!({ "order_id": "order-1", "amount": 1990, "currency": "CNY", "channel": "alipay", "method": "qr" });
        let payment = curl("POST", &format!("{api}/v1/payments"), Some((&key, "key-1")), Some(&body));
        let (id, reference) = (text(&payment, "/id"), text(&payment, "/attempt/channel_ref"));
        curl(
            "POST",
            &format!("{url}/_sandbox/buyer"),
            None,
            Some(&json!({ "channel": "alipay", "channel_ref": reference, "action": "pay" })),
        );
        // By the channel's notification: it is settled beside us.
        wait_until("the payment is paid", || curl("GET", &format!("{api}/v1/payments/{id}"), Some((&key, "-")), None)["status"] == "paid");
        // The refund's notification may overtake its answer; without it the timeline has one order.
        let lost = json!({ "channel": "alipay", "channel_ref": reference, "mode": "drop" });
        curl("POST", &format!("{url}/_sandbox/notifications"), None, Some(&lost));
        let body = json!({ "refund_id": "r1", "amount": 500, "reason": "broken" });
        let refund = curl("POST", &format!("{api}/v1/payments/{id}/refunds"), Some((&key, "key-2")), Some(&body));
        assert_eq!(text(&refund, "/status"), "succeeded");
        wait_until("both events are published", || {
            let feed = run(folder.path(), "event list --json").json();
            feed.as_array().is_some_and(|feed| feed.len() == 2 && feed.iter().all(|event| event["delivery"] == "feed_only"))
        });
        assert_eq!(service.signal("TERM"), Some(0));
        drop(sandbox);
        let listed = run(folder.path(), "inbox list --json").json();
        Self { payment: id, refund: text(&refund, "/id"), inbox: text(&listed, "/0/id"), folder }
    }

    fn dir(&self) -> &Path {
        self.folder.path()
    }

    fn fill(&self, args: &str) -> String {
        args.replace("PAYMENT", &self.payment).replace("REFUND", &self.refund).replace("INBOX", &self.inbox)
    }
}

/// The same text with everything that is drawn or timed replaced, and the columns pushed together.
fn steady(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let words: Vec<String> = line.split_whitespace().map(steady_word).collect();
        let indent: String = line.chars().take_while(|c| *c == ' ').collect();
        out.push_str(&format!("{indent}{}\n", words.join(" ")));
    }
    out
}

fn steady_word(word: &str) -> String {
    let drawn = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | ':' | '.');
    let mut out = String::new();
    let mut rest = word;
    while !rest.is_empty() {
        let end = rest.find(drawn).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        out.push_str(steady_piece(piece));
        let next = after.find(|c| !drawn(c)).unwrap_or(after.len());
        out.push_str(&after[..next]);
        rest = &after[next..];
    }
    out
}

fn steady_piece(piece: &str) -> &str {
    const IDS: [&str; 8] = ["pay_", "att_", "rfd_", "evt_", "inb_", "key_", "sur_", "cap_"];
    if let Some(prefix) = IDS.iter().find(|prefix| piece.strip_prefix(**prefix).is_some_and(|hex| hex.len() == 32)) {
        return prefix;
    }
    let is_milliseconds = piece.len() == 13 && piece.bytes().all(|b| b.is_ascii_digit());
    let is_time = is_milliseconds || piece.len() >= 20 && piece.contains('T') && piece.starts_with("20");
    let is_number = piece.len() >= 20 && piece.bytes().all(|b| b.is_ascii_hexdigit());
    // Which process sends: its id and a number drawn at start, then the run.
    let is_process = piece.split_once('-').is_some_and(|(pid, drawn)| {
        !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()) && drawn.len() == 8 && drawn.bytes().all(|b| b.is_ascii_hexdigit())
    });
    let is_run = piece.len() == 12 && piece.bytes().all(|b| b.is_ascii_hexdigit());
    if is_process {
        "PROCESS"
    } else if is_run {
        "RUN"
    } else if is_time {
        "TIME"
    } else if is_number {
        "NUMBER"
    } else {
        piece
    }
}

fn snap(name: &str, ended: &Ended) {
    insta::assert_snapshot!(name.replace([' ', '-', '/'], "_"), steady(&ended.whole()));
}

#[test]
fn every_command_that_looks_prints_text_and_json() {
    let shop = Shop::open();
    for args in [
        "payment list",
        "payment list --status paid --channel alipay --order-id order-1",
        "payment list --status failed",
        "payment show PAYMENT",
        "refund show REFUND",
        "key list",
        "key show key-1",
        "inbox list",
        "inbox show INBOX",
        "event list",
        "apikey list",
        "account list",
        "account list --channels",
        "account check --offline",
        "migrate",
        "doctor",
        "sweep --once",
    ] {
        let typed = shop.fill(args);
        let plain = run(shop.dir(), &typed);
        assert_eq!(plain.code, 0, "{args}: {plain:?}");
        snap(&format!("text {args}"), &plain);
        let json = run(shop.dir(), &format!("{typed} --json"));
        assert_eq!((json.code, json.stderr.as_str()), (0, if json.stdout == "[]\n" { json.stderr.as_str() } else { "" }), "{args}");
        json.json();
        snap(&format!("json {args}"), &json);
    }
}

#[test]
fn the_answer_no_is_exit_1() {
    let shop = Shop::open();
    for args in [
        "payment show pay_00000000000000000000000000000000",
        "payment show nothing",
        "payment show PAYMENT --tenant second",
        "refund show rfd_00000000000000000000000000000000",
        "key show never-used",
        "key release never-used",
        "key release key-1",
        "inbox show inb_00000000000000000000000000000000",
        "event list --after evt_00000000000000000000000000000000",
        "apikey revoke key_00000000000000000000000000000000",
        "account check nobody",
        "payment resolve PAYMENT --outcome never_happened --evidence ticket-1",
    ] {
        let ended = run(shop.dir(), &shop.fill(args));
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{args}: {ended:?}");
        snap(&format!("no {args}"), &ended);
    }
}

/// Paying won: there is nothing to close, and the command says so.
#[test]
fn closing_a_paid_payment_is_exit_1_and_prints_it() {
    let shop = Shop::open();
    let ended = run(shop.dir(), &shop.fill("payment close PAYMENT"));
    assert_eq!(ended.code, 1);
    assert!(ended.stdout.contains("paid") && ended.stderr.contains("paying won"), "{ended:?}");
}

/// What the buyer had to do holds tokens, and a kept answer is the caller's: neither is shown (I12).
#[test]
fn no_command_prints_a_secret() {
    let shop = Shop::open();
    for args in
        ["payment show PAYMENT --json", "key show key-1 --json", "inbox show INBOX --json", "account list --json", "apikey list --json"]
    {
        let said = run(shop.dir(), &shop.fill(args)).whole();
        for secret in ["code_url", "PRIVATE KEY", "private_key", "\"hash\"", "fingerprint\"", "\"sign\"", "\"raw\""] {
            assert!(!said.contains(secret), "{args} prints {secret}");
        }
    }
}

#[test]
fn an_api_key_is_shown_once_and_can_be_revoked() {
    let folder = Folder::new();
    let made = run(folder.path(), "apikey create --tenant shop --label backend --json");
    assert_eq!(made.code, 0, "{made:?}");
    let (id, key) = (text(&made.json(), "/id"), text(&made.json(), "/key"));
    let listed = run(folder.path(), "apikey list --json");
    assert_eq!((text(&listed.json(), "/0/id"), text(&listed.json(), "/0/label")), (id.clone(), "backend".to_owned()));
    assert!(!listed.stdout.contains(&key));
    // On its own the key is all that stdout holds, so that a script can take it.
    let plain = run(folder.path(), "apikey create --tenant shop");
    assert_eq!((plain.stdout.lines().count(), plain.stdout.contains(' ')), (1, false), "{plain:?}");
    assert_eq!(run(folder.path(), &format!("apikey revoke {id}")).code, 0);
    assert_ne!(run(folder.path(), "apikey list --json").json().pointer("/0/revoked_at"), Some(&Value::Null));
    let again = run(folder.path(), &format!("apikey revoke {id}"));
    assert!(again.code == 1 && again.stderr.contains("is revoked already, since 20"), "{again:?}");
}

#[test]
fn an_account_is_checked_before_it_is_stored() {
    let folder = Folder::new();
    let sandbox = Service::start(folder.path(), &["sandbox", "--listen", "127.0.0.1:0"], &[]);
    let url = sandbox.fact("listening on ");
    let settings = curl("GET", &format!("{url}/_sandbox/accounts"), None, None)["alipay"]["settings"].clone();
    let add = |settings: &Value| {
        std::fs::write(folder.path().join("settings.json"), settings.to_string()).expect("written");
        run(folder.path(), "account add main --tenant shop --channel alipay --settings settings.json")
    };
    let mut without_key = settings.clone();
    without_key.as_object_mut().expect("an object").retain(|name, _| !name.starts_with("private_key"));
    let refused = add(&without_key);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{refused:?}");
    assert!(refused.stderr.contains("private_key"), "{refused:?}");
    assert_eq!(add(&settings).code, 0);
    let checked = run(folder.path(), "account check main --json");
    assert_eq!((checked.code, &checked.json()[0]["good"]), (0, &Value::Bool(true)), "{checked:?}");
    drop(sandbox);
    let gone = run(folder.path(), "account check main");
    assert_eq!(gone.code, 1, "{gone:?}");
    // The name belongs to its tenant.
    let taken = run(folder.path(), "account add main --tenant other --channel alipay --settings settings.json");
    assert_ne!(taken.code, 0, "{taken:?}");
}

#[test]
fn a_closed_pipe_is_no_fault() {
    let shop = Shop::open();
    let mut shell = std::process::Command::new("bash");
    let payonce = command(shop.dir()).get_program().to_string_lossy().into_owned();
    shell
        .args(["-c", &format!("'{payonce}' payment show {} --json | true; echo ${{PIPESTATUS[0]}}", shop.payment)])
        .current_dir(shop.dir());
    let said = ended(&mut shell);
    assert_eq!((said.stdout.trim(), said.stderr.as_str()), ("0", ""), "{said:?}");
}
