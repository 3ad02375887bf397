//! Limits that are held against each other, so that no two settings contradict.

use std::time::Duration;

use payonce_channels::registry;

use super::{Config, ConfigFault};
use crate::merchant::address::{self, Allowed};

/// How to come by a webhook secret.
const MAKE_A_SECRET: &str = "make one: echo \"whsec_$(head -c 32 /dev/urandom | base64)\"";

pub(super) fn relations(config: &Config) -> Result<(), ConfigFault> {
    let positive = [
        ("guard.lease", config.guard.lease),
        ("guard.ttl", config.guard.ttl),
        ("http.answer_due", config.http.answer_due),
        ("http.header_timeout", config.http.header_timeout),
        ("http.body_timeout", config.http.body_timeout),
        ("channel.deadline", config.channel.deadline),
        ("reconcile.first_look_up", config.reconcile.first_look_up),
        ("reconcile.look_up_max", config.reconcile.look_up_max),
        ("reconcile.unresolved_after", config.reconcile.unresolved_after),
        ("reconcile.interval", config.reconcile.interval),
    ];
    if let Some((name, _)) = positive.iter().find(|(_, span)| span.is_zero()) {
        return Err(ConfigFault::new(format!("{name} must be more than 0")).hint_that("leave it out for the default"));
    }
    longer("guard.lease", config.guard.lease, "channel.deadline", config.channel.deadline, "a claim must outlive a call to a channel")?;
    longer(
        "http.answer_due",
        config.http.answer_due,
        "channel.deadline",
        config.channel.deadline,
        "a request must be able to wait for its channel",
    )?;
    longer("guard.ttl", config.guard.ttl, "guard.lease", config.guard.lease, "an answer must be kept for longer than its run may take")?;
    longer(
        "reconcile.unresolved_after",
        config.reconcile.unresolved_after,
        "reconcile.first_look_up",
        config.reconcile.first_look_up,
        "an outcome is looked up before a person is asked",
    )?;
    if config.reconcile.look_up_max < config.reconcile.first_look_up {
        return Err(ConfigFault::new("reconcile.look_up_max is shorter than reconcile.first_look_up")
            .hint_that("the schedule grows from the one to the other"));
    }
    for adapter in registry::adapters() {
        let horizon = adapter.capability().redelivery_horizon;
        if config.inbox.retention < horizon {
            return Err(ConfigFault::new(format!(
                "inbox.retention ({}) is shorter than the {} for which {} repeats a notification",
                shown(config.inbox.retention),
                shown(horizon),
                adapter.name()
            ))
            .hint_that("a repeat that came after the row was swept would be taken for a new one; the default is 45d"));
        }
    }
    if !(1024..=16 * 1024 * 1024).contains(&config.http.body_limit_bytes) {
        return Err(ConfigFault::new("http.body_limit must be 1KiB to 16MiB"));
    }
    if config.guard.max_runs == 0 || config.http.max_connections == 0 || config.database_pool == 0 {
        return Err(ConfigFault::new("guard.max_runs, http.max_connections and database.pool must be at least 1"));
    }
    if config.guard.max_answer_bytes < 4096 {
        return Err(ConfigFault::new("guard.max_answer must be at least 4KiB"));
    }
    urls(config)
}

fn urls(config: &Config) -> Result<(), ConfigFault> {
    let bad = |name: &str, why: String| ConfigFault::new(format!("{name}: {why}"));
    if let Some(url) = &config.public_url {
        // `host:8080` parses, with the host as its scheme.
        let parsed = url::Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.host_str().is_some());
        let Some(parsed) = parsed else {
            let hint =
                if url.contains("://") { "such as https://pay.example.com".to_owned() } else { format!("did you mean https://{url} ?") };
            return Err(bad("public_url", format!("{url} is no address: it must be http:// or https:// and a host")).hint_that(hint));
        };
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(bad("public_url", "must have no query and no fragment".to_owned())
                .hint_that("paths are put behind it: https://pay.example.com, or https://example.com/pay"));
        }
    }
    for (tenant, merchant) in config.tenants.all() {
        let allowed = Allowed::new(config.tenants.allow_hosts(tenant));
        if let Some(url) = &merchant.webhook_url {
            address::check(url, &allowed).map_err(|why| {
                bad(&format!("the webhook_url of tenant {tenant}"), why.to_string())
                    .hint_that("list the host in allow_hosts if it is meant to be inside your network")
            })?;
            if merchant.secret.is_none() && !config.sandbox.enabled {
                return Err(
                    bad(&format!("tenant {tenant}"), "has a webhook_url and no secret to sign with".to_owned()).hint_that(MAKE_A_SECRET)
                );
            }
        }
        if let Some(secret) = &merchant.secret
            && payonce_flows::merchant::sign(secret, "probe", 0, b"").is_none()
        {
            return Err(bad(&format!("the webhook secret of tenant {tenant}"), "must be whsec_ and Base64 of 24 to 64 bytes".to_owned())
                .hint_that(MAKE_A_SECRET));
        }
    }
    Ok(())
}

fn longer(long: &str, is: Duration, short: &str, than: Duration, why: &str) -> Result<(), ConfigFault> {
    if is > than {
        return Ok(());
    }
    Err(ConfigFault::new(format!("{long} ({}) must be longer than {short} ({})", shown(is), shown(than))).hint_that(why))
}

fn shown(span: Duration) -> String {
    let ms = span.as_millis();
    match ms {
        0..1000 => format!("{ms}ms"),
        _ if ms.is_multiple_of(86_400_000) => format!("{}d", ms / 86_400_000),
        _ if ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms.is_multiple_of(1000) => format!("{}s", ms / 1000),
        _ => format!("{ms}ms"),
    }
}
