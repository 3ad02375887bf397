//! Situations from the field that need whole processes: signals, a database that goes away, workers beside requests.

use std::thread;
use std::time::{Duration, Instant};

use payonce_testkit::ports::wait_until;
use serde_json::{Value, json};

use crate::process::{Installation, LEASE_S, Process, Store, events, get, order, post, retry_until_final, wait_for_status};

const RECOVERS_WITHIN: Duration = Duration::from_secs(LEASE_S + 25);

fn id(payment: &Value) -> String {
    payment["id"].as_str().unwrap_or_else(|| panic!("no id in {payment}")).to_owned()
}

/// Waits until a call of this kind has arrived at the channel.
fn wait_for_call(shop: &Installation, what: &str) {
    let came = wait_until(Duration::from_secs(10), || {
        shop.sandbox.control("GET", "/_sandbox/requests?channel=alipay", &Value::Null).to_string().contains(what)
    });
    assert!(came, "no {what} at the channel");
}

#[test]
fn b002_a_worker_and_a_second_request_meet_one_stalled_charge() {
    let shop = Installation::new(Store::sqlite());
    let server = shop.serve(&[]);
    shop.sandbox.fault("charge", "delay", 1, 3000);
    let first = post(&server, "K1", "/v1/payments", &order("T1", 50_000)).expect("an answer");
    assert!(matches!(first.status, 201 | 202), "pending or done, never failed: {}", first.json());
    // The workers of the server look for it all the time; a person presses the button as well.
    let second = post(&server, "K2", "/v1/payments", &order("T1", 50_000)).expect("an answer");
    assert!(matches!(second.status, 200 | 202), "{}", second.json());
    wait_for_status(&server, "T1", "paid", RECOVERS_WITHIN);
    assert_eq!(shop.sandbox.executed("charge").0, 1);
}

#[test]
fn b002_failed_by_hand_is_refused_while_the_charge_is_on_its_way() {
    let shop = Installation::new(Store::sqlite());
    let server = shop.serve(&[]);
    shop.sandbox.fault("charge", "delay", 1, 1500);
    thread::scope(|scope| {
        let paying = scope.spawn(|| post(&server, "K1", "/v1/payments", &order("T1", 50_000)).expect("an answer"));
        wait_for_call(&shop, "alipay.trade.pay");
        let payment = get(&server, "/v1/payments?order_id=T1")["data"][0].clone();
        let verdict = json!({ "outcome": "never_happened", "evidence": "looks stuck" });
        let by_hand = post(&server, "H1", &format!("/v1/payments/{}/resolve", id(&payment)), &verdict).expect("an answer");
        assert_eq!(by_hand.status, 409, "{}", by_hand.json());
        assert_eq!(paying.join().expect("no panic").status, 201);
    });
    wait_for_status(&server, "T1", "paid", RECOVERS_WITHIN);
}

#[test]
fn b018_a_definite_refusal_then_a_new_request_charges_under_a_new_number() {
    let shop = Installation::new(Store::sqlite());
    let server = shop.serve(&[]);
    shop.sandbox.fault("charge", "drop_response", 1, 0);
    // The first outcome was unknown for a moment: the number stayed the same.
    let kept = post(&server, "K1", "/v1/payments", &order("O1", 300)).expect("an answer").json();
    assert_eq!(kept["attempts"].as_array().map(Vec::len), Some(1));
    let special = shop.sandbox.control("GET", "/_sandbox/accounts", &Value::Null).to_string();
    assert!(special.contains("2800020000000000001234"), "the sandbox names its special payment codes: {special}");
    let mut bad = order("O2", 300);
    bad["channel_options"]["auth_code"] = json!("280002000000001234");
    let declined = post(&server, "K2", "/v1/payments", &bad).expect("an answer");
    assert_eq!(declined.status, 402, "{}", declined.json());
    let paid = post(&server, "K3", "/v1/payments", &order("O2", 300)).expect("an answer");
    assert_eq!(paid.status, 201, "{}", paid.json());
    let numbers: Vec<Value> = paid.json()["attempts"].as_array().expect("attempts").iter().map(|a| a["channel_ref"].clone()).collect();
    assert_eq!(numbers.len(), 2);
    assert_ne!(numbers[0], numbers[1]);
    assert_eq!(shop.sandbox.executed("charge").0, 2, "O1 once, O2 once");
}

#[test]
fn b020_every_automatic_retry_carries_the_stored_number() {
    for fault in ["drop_response", "error_after", "malformed", "empty", "bad_signature"] {
        let shop = Installation::new(Store::sqlite());
        let server = shop.serve(&[]);
        shop.sandbox.fault("charge", fault, 2, 0);
        let answer = retry_until_final(&server, "K1", "/v1/payments", &order("O1", 1990), RECOVERS_WITHIN);
        assert_eq!(answer.json()["status"], "paid", "{fault}: {}", answer.json());
        let rows = shop.sandbox.control("GET", "/_sandbox/ledger?channel=alipay", &Value::Null);
        let refs: std::collections::HashSet<String> =
            rows.as_array().expect("a list").iter().map(|row| row["channel_ref"].to_string()).collect();
        assert_eq!((refs.len(), shop.sandbox.executed("charge").0), (1, 1), "{fault}: {rows}");
    }
}

#[test]
fn b021_a_system_error_is_retried_under_the_first_number_after_a_query() {
    let shop = Installation::new(Store::sqlite());
    let server = shop.serve(&[]);
    shop.sandbox.fault("charge", "error_after", 1, 0);
    shop.sandbox.fault("query", "error_before", 1, 0);
    let answer = retry_until_final(&server, "K1", "/v1/payments", &order("T1", 13_961), RECOVERS_WITHIN).json();
    assert_eq!((&answer["status"], answer["attempts"].as_array().map(Vec::len)), (&json!("paid"), Some(1)));
    assert_eq!(shop.sandbox.executed("charge").0, 1);
}

#[test]
fn b039_a_shutdown_in_the_middle_loses_nothing() {
    let shop = Installation::new(Store::sqlite());
    let mut server = shop.serve(&[]);
    shop.sandbox.fault("charge", "delay_response", 10, 1000);
    thread::scope(|scope| {
        let paying: Vec<_> = (0..10)
            .map(|i| {
                let server = &server;
                scope.spawn(move || post(server, &format!("K{i}"), "/v1/payments", &order(&format!("O{i}"), 100)))
            })
            .collect();
        wait_for_call(&shop, "alipay.trade.pay");
        server.signal("TERM");
        // While it shuts down, what is new is turned away with nothing claimed, or finds nobody.
        let late = post(&server, "KL", "/v1/payments", &order("OL", 100));
        assert!(late.as_ref().map_or(true, |answer| answer.status == 503 || answer.status == 201), "{late:?}");
        for one in paying {
            let answer = one.join().expect("no panic");
            assert!(answer.as_ref().is_ok_and(|answer| matches!(answer.status, 201 | 202 | 503)), "{answer:?}");
        }
    });
    assert!(server.ends_within(Duration::from_secs(20)), "it ends by itself\n{}", server.log());
    let server = shop.serve(&[]);
    for i in 0..10 {
        let answer = retry_until_final(&server, &format!("K{i}"), "/v1/payments", &order(&format!("O{i}"), 100), RECOVERS_WITHIN);
        assert_eq!(answer.json()["status"], "paid");
    }
    let late = retry_until_final(&server, "KL", "/v1/payments", &order("OL", 100), RECOVERS_WITHIN);
    assert_eq!(late.json()["status"], "paid");
    assert_eq!(shop.sandbox.executed("charge").0, 11);
}

#[test]
fn b032_the_database_dies_between_the_charge_and_its_result() {
    let cluster = payonce_testkit::postgres::Cluster::private(payonce_testkit::postgres::Options { fsync: true, ..Default::default() });
    let shop = Installation::new(Store::Postgres(cluster.fresh_database()));
    let server = shop.serve(&[]);
    shop.sandbox.fault("charge", "delay_response", 1, 1200);
    let lost = thread::scope(|scope| {
        let paying = scope.spawn(|| post(&server, "K1", "/v1/payments", &order("O1", 1990)));
        wait_for_call(&shop, "alipay.trade.pay");
        cluster.kill_9();
        // B040: while the store is down nothing is charged and the caller is told when to come back.
        let down = post(&server, "K2", "/v1/payments", &order("O2", 100)).expect("an answer");
        assert_eq!(down.status, 503, "{}", down.json());
        assert!(down.header("retry-after").is_some());
        thread::park_timeout(Duration::from_millis(1500));
        cluster.restart();
        paying.join().expect("no panic")
    });
    assert!(lost.as_ref().map_or(true, |answer| answer.status != 402), "never told failed: {lost:?}");
    let answer = retry_until_final(&server, "K1", "/v1/payments", &order("O1", 1990), RECOVERS_WITHIN);
    assert_eq!(answer.json()["status"], "paid", "{}", answer.json());
    assert_eq!(shop.sandbox.executed("charge").0, 1, "O2 was never sent");
    let other = retry_until_final(&server, "K2", "/v1/payments", &order("O2", 100), RECOVERS_WITHIN);
    assert_eq!(other.json()["status"], "paid");
    assert_eq!(shop.sandbox.executed("charge").0, 2);
}

fn qr(server: &Process, key: &str, order_id: &str) -> Value {
    let body = json!({ "order_id": order_id, "amount": 500, "currency": "CNY", "channel": "alipay", "method": "qr" });
    let answer = post(server, key, "/v1/payments", &body).expect("an answer");
    assert_eq!(answer.status, 201, "{}", answer.json());
    answer.json()
}

fn buyer(shop: &Installation, payment: &Value, action: &str) {
    let body = json!({ "channel": "alipay", "channel_ref": payment["attempt"]["channel_ref"], "action": action });
    shop.sandbox.control("POST", "/_sandbox/buyer", &body);
}

#[test]
fn b045_return_page_and_notification_complete_the_order_once() {
    let shop = Installation::new(Store::sqlite());
    let server = shop.serve(&[]);
    for round in 0..20 {
        let order_id = format!("O{round}");
        let payment = qr(&server, &format!("K{round}"), &order_id);
        thread::scope(|scope| {
            // The notification goes out while the buyer's browser makes the merchant ask.
            scope.spawn(|| buyer(&shop, &payment, "pay"));
            for copy in 0..3 {
                let (server, payment) = (&server, &payment);
                scope.spawn(move || post(server, &format!("S{round}-{copy}"), &format!("/v1/payments/{}/sync", id(payment)), &json!({})));
            }
        });
        wait_for_status(&server, &order_id, "paid", RECOVERS_WITHIN);
    }
    let told = wait_until(RECOVERS_WITHIN, || events(&server, "payment.paid") >= 20);
    assert!(told && events(&server, "payment.paid") == 20, "{}", events(&server, "payment.paid"));
    assert_eq!(shop.sandbox.executed("charge").0, 20);
}

#[test]
fn b049_a_notification_in_the_middle_of_a_look_up_is_not_lost() {
    let shop = Installation::new(Store::sqlite());
    let server = shop.serve(&[("PAYONCE_RECONCILE_FIRST_LOOK_UP", "600s")]);
    let payment = qr(&server, "K1", "O1");
    shop.sandbox.fault("query", "delay_response", 1, 1500);
    thread::scope(|scope| {
        // The look-up saw the order unpaid and comes back late; the one notification comes meanwhile.
        let asking = scope.spawn(|| post(&server, "S1", &format!("/v1/payments/{}/sync", id(&payment)), &json!({})));
        wait_for_call(&shop, "alipay.trade.query");
        buyer(&shop, &payment, "pay");
        let answer = asking.join().expect("no panic").expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.json());
    });
    wait_for_status(&server, "O1", "paid", Duration::from_secs(5));
    let told = wait_until(RECOVERS_WITHIN, || events(&server, "payment.paid") >= 1);
    assert!(told && events(&server, "payment.paid") == 1);
}

#[test]
fn b077_switching_ends_the_first_session_before_the_second_is_offered() {
    let shop = Installation::new(Store::sqlite());
    let server = shop.serve(&[]);
    let barcode = json!({ "channel": "alipay", "method": "barcode", "channel_options": { "auth_code": "280000000000000000" } });

    // The buyer has scanned: the channel knows the order, so it can be closed.
    let scanned = qr(&server, "K1", "O1");
    buyer(&shop, &scanned, "abandon");
    let path = format!("/v1/payments/{}/attempts", id(&scanned));
    // The channel's own word on the close comes before its answer to us.
    shop.sandbox.fault("close", "delay_response", 1, 700);
    let switched = post(&server, "A1", &path, &barcode).expect("an answer");
    assert_eq!(switched.status, 201, "{}", switched.json());
    let after = get(&server, &format!("/v1/payments/{}", id(&scanned)));
    let attempts = after["attempts"].as_array().expect("attempts").clone();
    assert_eq!((attempts.len(), &attempts[0]["status"], &attempts[1]["status"]), (2, &json!("closed"), &json!("succeeded")), "{after}");
    assert_ne!(attempts[0]["channel_ref"], attempts[1]["channel_ref"]);
    // The payment went on elsewhere: it was never closed, and nobody was told so.
    let told = wait_until(RECOVERS_WITHIN, || events(&server, "payment.paid") == 1);
    assert!(told && events(&server, "payment.closed") == 0);

    // The buyer has paid meanwhile: the switch finds that out and offers nothing.
    let paid = qr(&server, "K2", "O2");
    let hold = json!({ "channel": "alipay", "channel_ref": paid["attempt"]["channel_ref"], "mode": "drop" });
    shop.sandbox.control("POST", "/_sandbox/notifications", &hold);
    buyer(&shop, &paid, "pay");
    let refused = post(&server, "A2", &format!("/v1/payments/{}/attempts", id(&paid)), &barcode).expect("an answer");
    assert_eq!((refused.status, &refused.json()["status"]), (200, &json!("paid")), "{}", refused.json());

    // The buyer has not scanned: the code may still be paid, and nothing of ours can stop that, so nothing new is offered.
    let open = qr(&server, "K3", "O3");
    let unresolved = post(&server, "A3", &format!("/v1/payments/{}/attempts", id(&open)), &barcode).expect("an answer");
    assert_eq!((unresolved.status, &unresolved.json()["code"]), (409, &json!("attempt_unresolved")), "{}", unresolved.json());
    assert_eq!(shop.sandbox.executed("charge").0, 2, "O1 and O2, each once");

    // At the merchant's risk: if the first is paid after all, it is surplus and goes back, once.
    let mut forced = barcode;
    forced["force_surplus"] = json!(true);
    let second = post(&server, "A4", &format!("/v1/payments/{}/attempts", id(&open)), &forced).expect("an answer");
    assert_eq!(second.status, 201, "{}", second.json());
    buyer(&shop, &open, "pay");
    let returned = wait_until(RECOVERS_WITHIN, || shop.sandbox.executed("refund").0 == 1);
    let seen = get(&server, &format!("/v1/payments/{}", id(&open)));
    assert!(returned, "{seen}\n{}", server.log());
    assert_eq!((&seen["status"], seen["surpluses"].as_array().map(Vec::len)), (&json!("paid"), Some(1)), "{seen}");
    assert_eq!(shop.sandbox.executed("charge").0, 4);
}

#[test]
fn b077_a_switch_that_dies_half_way_is_gone_on_with_or_told_as_the_end() {
    let shop = Installation::new(Store::sqlite());
    let barcode = json!({ "channel": "alipay", "method": "barcode", "channel_options": { "auth_code": "280000000000000000" } });
    let server = shop.serve(&[]);
    let payments = [qr(&server, "K1", "O1"), qr(&server, "K2", "O2")];
    for payment in &payments {
        buyer(&shop, payment, "abandon");
    }
    let path = |payment: &Value| format!("/v1/payments/{}/attempts", id(payment));
    shop.sandbox.fault("close", "delay_response", 2, 1500);
    let mut server = server;
    thread::scope(|scope| {
        let (server, barcode) = (&server, &barcode);
        for (n, payment) in payments.iter().enumerate() {
            let path = path(payment);
            scope.spawn(move || post(server, &format!("A{n}"), &path, barcode));
        }
        wait_for_call(&shop, "alipay.trade.close");
        thread::park_timeout(Duration::from_millis(700));
        server.signal("KILL");
    });
    assert!(server.ends_within(Duration::from_secs(5)));
    let server = shop.serve(&[]);
    // The merchant of the first asks again and gets its new attempt; the other never comes back, and is told that the order is closed.
    let again = retry_until_final(&server, "A0", &path(&payments[0]), &barcode, RECOVERS_WITHIN).json();
    assert!(again.to_string().contains("succeeded") || again["status"] == "paid", "{again}");
    wait_for_status(&server, "O1", "paid", RECOVERS_WITHIN);
    wait_for_status(&server, "O2", "closed", RECOVERS_WITHIN);
    let told = wait_until(RECOVERS_WITHIN, || events(&server, "payment.paid") == 1 && events(&server, "payment.closed") == 1);
    assert!(told, "{} paid, {} closed", events(&server, "payment.paid"), events(&server, "payment.closed"));
    assert_eq!(shop.sandbox.executed("charge").0, 1);
}

/// Kills the server at moments that nobody chose, while merchants go on asking; in the end everything is equal.
fn killed_at_random(store: Store, seed: u64) {
    let shop = Installation::new(store);
    let (orders, mut state) = (40u64, seed);
    let mut chance = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let faults = ["drop_request", "drop_response", "error_before", "error_after", "malformed", "delay_response"];
    for _ in 0..8 {
        let mut server = shop.serve(&[]);
        let fault = faults[usize::try_from(chance(6)).expect("small")];
        shop.sandbox.fault(if chance(2) == 0 { "charge" } else { "refund" }, fault, 2, 300);
        let until = Instant::now() + Duration::from_millis(400 + chance(900));
        thread::scope(|scope| {
            for caller in 0..4 {
                let (server, first) = (&server, chance(orders));
                scope.spawn(move || {
                    for i in (first..first + orders).map(|i| i % orders) {
                        if Instant::now() >= until {
                            return;
                        }
                        let paid = post(server, &format!("K{i}"), "/v1/payments", &order(&format!("O{i}"), 1000));
                        let Some(payment) = paid.ok().filter(|answer| answer.status == 201).map(|answer| answer.json()) else { continue };
                        if caller % 2 == 0 {
                            let refund = json!({ "refund_id": "r1", "amount": 400 });
                            let _ = post(server, &format!("R{i}"), &format!("/v1/payments/{}/refunds", id(&payment)), &refund);
                        }
                    }
                });
            }
            while Instant::now() < until {
                thread::park_timeout(Duration::from_millis(20));
            }
            // SAFETY of the story, not of memory: callers are in the middle of their requests now.
            let killed = std::process::Command::new("kill").args(["-9", &server.pid().to_string()]).status();
            assert!(killed.is_ok_and(|status| status.success()));
        });
        assert!(server.ends_within(Duration::from_secs(10)));
    }
    shop.sandbox.clear_faults();
    let server = shop.serve(&[]);
    for i in 0..orders {
        let payment = retry_until_final(&server, &format!("K{i}"), "/v1/payments", &order(&format!("O{i}"), 1000), RECOVERS_WITHIN).json();
        assert_eq!(payment["status"], "paid", "seed {seed}: {payment}");
        let refund = json!({ "refund_id": "r1", "amount": 400 });
        let path = format!("/v1/payments/{}/refunds", id(&payment));
        let refund = retry_until_final(&server, &format!("R{i}"), &path, &refund, RECOVERS_WITHIN).json();
        assert_eq!(refund["amount"], 400, "seed {seed}: {refund}");
    }
    let settled = wait_until(RECOVERS_WITHIN, || shop.sandbox.executed("refund").0 == orders && events(&server, "refund.succeeded") == 40);
    let (charges, refunds) = (shop.sandbox.executed("charge").0, shop.sandbox.executed("refund").0);
    println!("seed {seed}: {orders} orders, {charges} charges, {refunds} refunds, {} paid events", events(&server, "payment.paid"));
    assert!(settled && (charges, refunds) == (orders, orders), "seed {seed}: {charges} charges, {refunds} refunds");
    assert_eq!(events(&server, "payment.paid"), 40, "seed {seed}");
}

#[test]
fn b031_killed_at_random_under_load_on_sqlite() {
    killed_at_random(Store::sqlite(), 20_261_201);
}

#[test]
fn b031_killed_at_random_under_load_on_postgres() {
    killed_at_random(Store::postgres(), 20_261_202);
}

/// What the first caller of a refund on its way is told is never kept as the last word on it.
#[test]
fn b037_a_refund_on_its_way_is_202_and_its_key_tells_the_end() {
    let shop = Installation::new(Store::sqlite());
    let server = shop.serve(&[]);
    let paid = post(&server, "K1", "/v1/payments", &order("O1", 1000)).expect("an answer").json();
    let path = format!("/v1/payments/{}/refunds", id(&paid));
    let refund = json!({ "refund_id": "r1", "amount": 400 });
    shop.sandbox.fault("refund", "delay_response", 1, 1000);
    thread::scope(|scope| {
        let first = scope.spawn(|| post(&server, "R1", &path, &refund).expect("an answer"));
        wait_for_call(&shop, "alipay.trade.refund");
        let other = post(&server, "R2", &path, &refund).expect("an answer");
        assert_eq!(other.status, 202, "{}", other.json());
        assert_eq!(first.join().expect("no panic").status, 201);
    });
    for key in ["R1", "R2"] {
        let end = retry_until_final(&server, key, &path, &refund, RECOVERS_WITHIN);
        assert_eq!(end.json()["status"], "succeeded", "{key}: {}", end.json());
    }
    assert_eq!(shop.sandbox.executed("refund").0, 1);
}

#[test]
fn sync_of_a_paid_order_sees_what_was_done_at_the_console() {
    let shop = Installation::new(Store::sqlite());
    let server = shop.serve(&[]);
    let paid = post(&server, "K1", "/v1/payments", &order("O1", 1000)).expect("an answer").json();
    let channel_ref = paid["attempt"]["channel_ref"].clone();
    shop.sandbox.control("POST", "/_sandbox/notifications", &json!({ "channel": "alipay", "channel_ref": channel_ref, "mode": "drop" }));
    shop.sandbox.control(
        "POST",
        "/_sandbox/buyer",
        &json!({ "channel": "alipay", "channel_ref": channel_ref, "action": "refund_at_console" }),
    );
    let synced = post(&server, "S1", &format!("/v1/payments/{}/sync", id(&paid)), &json!({})).expect("an answer").json();
    assert_eq!((&synced["status"], &synced["review"]["code"]), (&json!("review"), &json!("closed_after_paid")), "{synced}");
}

#[test]
fn asking_again_and_again_does_not_put_the_answer_off() {
    let shop = Installation::new(Store::sqlite());
    let server = shop.serve(&[]);
    let open = qr(&server, "K1", "O1");
    let until: Vec<Value> = (0..4)
        .map(|n| {
            let answer = post(&server, &format!("C{n}"), &format!("/v1/payments/{}/close", id(&open)), &json!({})).expect("an answer");
            assert_eq!(answer.status, 409, "{}", answer.json());
            answer.json()["retry_at"].clone()
        })
        .collect();
    assert!(until.iter().all(|at| at == &until[0]), "{until:?}");
    let timeline = get(&server, &format!("/v1/payments/{}/timeline", id(&open))).to_string();
    for kind in ["attempt_created", "sending", "answered", "looked_up", "close_answered"] {
        assert!(timeline.contains(kind), "{kind}: {timeline}");
    }
}
