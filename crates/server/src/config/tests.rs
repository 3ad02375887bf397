//! What a wrong configuration is told.

use std::path::PathBuf;

use super::*;

fn file(text: &str) -> (PathBuf, Options) {
    let name = format!("payonce-config-{}-{}.toml", std::process::id(), text.len() * 31 + text.bytes().map(usize::from).sum::<usize>());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).expect("written");
    (path.clone(), Options { config: Some(path), ..Options::default() })
}

fn load(text: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigFault> {
    let (path, options) = file(text);
    let loaded = Config::load(&options, &Environment::of(variables.iter().copied()));
    let _ = std::fs::remove_file(path);
    loaded
}

fn refused(text: &str, variables: &[(&str, &str)]) -> String {
    load(text, variables).expect_err("refused").to_string()
}

#[test]
fn flags_beat_the_environment_which_beats_the_file_which_beats_the_default() {
    let text = "listen = \"127.0.0.1:1\"\n[guard]\nlease = \"61s\"\nttl = \"25h\"\n";
    let config = load(text, &[("PAYONCE_GUARD_LEASE", "62s")]).expect("loaded");
    assert_eq!(config.listen, "127.0.0.1:1");
    assert_eq!((config.guard.lease, config.guard.ttl), (Duration::from_secs(62), Duration::from_secs(25 * 3600)));
    assert_eq!(config.channel.deadline, Duration::from_secs(20));
    let (path, mut options) = file(text);
    options.listen = Some("127.0.0.1:3".to_owned());
    let config = Config::load(&options, &Environment::of([("PAYONCE_LISTEN", "127.0.0.1:2")])).expect("loaded");
    let _ = std::fs::remove_file(path);
    assert_eq!(config.listen, "127.0.0.1:3");
}

#[test]
fn unknown_keys_and_variables_are_refused_by_name() {
    assert!(refused("[guard]\nleese = \"60s\"\n", &[]).contains("unknown key guard.leese"));
    let hint = load("[guard]\nleese = \"60s\"\n", &[]).expect_err("refused");
    assert_eq!(hint.hint(), Some("known: guard.in_flight, guard.lease, guard.max_answer, guard.max_runs, guard.ttl"));
    assert!(refused("lissen = \"x\"\n", &[]).contains("unknown key lissen"));
    assert!(refused("", &[("PAYONCE_GUARD_LEESE", "60s")]).contains("PAYONCE_GUARD_LEESE"));
    assert!(load("", &[("PAYONCE_VECTORS", "x"), ("PAYONCE_FAILPOINTS", "y")]).is_ok(), "tests have variables of their own");
    assert!(refused("[tenant.a.merchant]\nurl = \"x\"\n", &[]).contains("unknown key url"));
    assert!(refused("[account.a]\nchannel = \"alipay\"\nkey = \"x\"\n", &[]).contains("unknown key key"));
}

#[test]
fn limits_that_contradict_each_other_are_refused() {
    assert!(refused("", &[("PAYONCE_GUARD_LEASE", "0s")]).contains("guard.lease must be more than 0"));
    assert!(refused("", &[("PAYONCE_GUARD_LEASE", "20s")]).contains("guard.lease (20s) must be longer than channel.deadline (20s)"));
    assert!(refused("", &[("PAYONCE_HTTP_ANSWER_DUE", "5s")]).contains("http.answer_due (5s) must be longer than channel.deadline"));
    assert!(refused("", &[("PAYONCE_INBOX_RETENTION", "1h")]).contains("inbox.retention (1h) is shorter than the 25h"));
    assert!(refused("", &[("PAYONCE_GUARD_LEASE", "60")]).contains("is no duration"));
    assert!(refused("", &[("PAYONCE_GUARD_IN_FLIGHT", "maybe")]).contains("must be one of: refuse, wait"));
    assert!(load("", &[("PAYONCE_GUARD_LEASE", "2s"), ("PAYONCE_CHANNEL_DEADLINE", "1s"), ("PAYONCE_HTTP_ANSWER_DUE", "3s")]).is_ok());
}

#[test]
fn what_is_wrong_comes_with_what_to_do() {
    let hint = |text: &str, variables: &[(&str, &str)]| load(text, variables).expect_err("refused").hint().unwrap_or_default().to_owned();
    assert!(hint("", &[("PAYONCE_SURPLUS_POLICY", "keep")]).contains("leave surplus.policy out"));
    assert!(hint("", &[("PAYONCE_MERCHANT_SECRET", "hunter2")]).contains("whsec_$("));
    let from_env = "[account.a]\nchannel = \"alipay\"\n[account.a.settings]\nprivate_key = { env = \"NOT_SET\" }\n";
    assert!(hint(from_env, &[]).contains("set NOT_SET where payonce is started"));
    let top = hint("lissen = \"x\"\n", &[]);
    assert!(top.contains("listen") && top.contains("[guard]") && top.contains("[account.NAME.settings]"), "{top}");
    assert!(hint("[gaurd]\nlease = \"60s\"\n", &[]).starts_with("known sections: [channel]"));
    for bare in ["pay.example.com", "pay.example.com:8443", "localhost:8080"] {
        assert_eq!(hint("", &[("PAYONCE_PUBLIC_URL", bare)]), format!("did you mean https://{bare} ?"));
    }
    assert!(refused("", &[("PAYONCE_PUBLIC_URL", "https://pay.example.com/?a=b")]).contains("no query"));
}

#[test]
fn a_slash_at_the_end_of_the_public_address_is_dropped() {
    let config = load("", &[("PAYONCE_PUBLIC_URL", "https://pay.example.com/base/")]).expect("loaded");
    assert_eq!(config.public_url.as_deref(), Some("https://pay.example.com/base"));
}

#[test]
fn tenants_come_from_the_file_and_from_variables() {
    let secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    let text = format!("[tenant.shop-2.merchant]\nwebhook_url = \"https://shop.example/h\"\nsecret = \"{secret}\"\n");
    let config = load(
        &text,
        &[("PAYONCE_MERCHANT_ALLOW_HOSTS", "127.0.0.1:9, inside.example"), ("PAYONCE_TENANT_SHOP_2_MERCHANT_ALLOW_HOSTS", "10.0.0.5")],
    )
    .expect("loaded");
    let shop = payonce_core::id::TenantId::parse("shop-2").expect("a tenant");
    assert_eq!(config.tenants.allow_hosts(&shop), ["127.0.0.1:9", "inside.example", "10.0.0.5"]);
    assert_eq!(config.tenants.merchant(&shop).and_then(|m| m.webhook_url.clone()).as_deref(), Some("https://shop.example/h"));
    assert!(refused("", &[("PAYONCE_MERCHANT_WEBHOOK_URL", "https://shop.example/h")]).contains("no secret"));
    assert!(refused("", &[("PAYONCE_MERCHANT_SECRET", "hunter2")]).contains("whsec_"));
}

#[test]
fn b092_a_webhook_url_inside_the_network_needs_to_be_allowed() {
    let secret = ("PAYONCE_MERCHANT_SECRET", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
    let url = ("PAYONCE_MERCHANT_WEBHOOK_URL", "http://127.0.0.1:9/h");
    assert!(refused("", &[secret, url]).contains("webhook_url"));
    assert!(load("", &[secret, url, ("PAYONCE_MERCHANT_ALLOW_HOSTS", "127.0.0.1:9")]).is_ok());
}

#[test]
fn a_password_in_the_database_url_does_not_print() {
    let url = DatabaseUrl("postgres://me:hunter2@db/payonce".to_owned());
    assert_eq!(format!("{url:?}"), "postgres://***@db/payonce");
    assert!(
        !format!("{:?}", load("", &[("PAYONCE_DATABASE_URL", "postgres://me:hunter2@db/x"), ("PAYONCE_SANDBOX_API_KEY", "hunter3")]))
            .contains("hunter")
    );
}
