//! `payonce doctor`: one line for each thing that has to be right, with a hint where it is not. Changes nothing.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use payonce_core::id::TenantId;
use payonce_server::App;
use payonce_server::config::{Config, KeySource, Tenants};
use serde_json::json;

use crate::args::work::Doctor;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::site;

/// More than this between our clock and the database's is worth a look: leases follow the database's, send leases ours.
const CLOCK_MAX: Duration = Duration::from_secs(2);

/// What a check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grade {
    Good,
    /// Works, and is not fit for production.
    Warn,
    Bad,
}

#[derive(Debug)]
struct Finding {
    what: String,
    grade: Grade,
    says: String,
    hint: Option<String>,
}

impl Finding {
    fn good(what: impl Into<String>, says: impl Into<String>) -> Self {
        Self { what: what.into(), grade: Grade::Good, says: says.into(), hint: None }
    }

    fn warn(what: impl Into<String>, says: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), grade: Grade::Warn, says: says.into(), hint: Some(hint.into()) }
    }

    fn bad(what: impl Into<String>, fault: &Fault) -> Self {
        Self { what: what.into(), grade: Grade::Bad, says: fault.what.clone(), hint: fault.hint.clone() }
    }

    const fn word(&self) -> &'static str {
        match self.grade {
            Grade::Good => "good",
            Grade::Warn => "warn",
            Grade::Bad => "bad",
        }
    }
}

pub(crate) async fn run(args: Doctor) -> Result<Exit, Fault> {
    let findings = match site::config(&args.place) {
        Err(fault) => vec![Finding::bad("configuration", &fault)],
        Ok(config) => examine(config).await,
    };
    Printer::new(args.form.json).list(
        &["CHECK", "IS", "SAYS", "HINT"],
        &findings,
        |row| json!({ "check": row.what, "is": row.word(), "says": row.says, "hint": row.hint }),
        |row| vec![row.what.clone(), row.word().to_owned(), row.says.clone(), row.hint.clone().unwrap_or_default()],
    )?;
    Ok(if findings.iter().any(|row| row.grade == Grade::Bad) { Exit::No } else { Exit::Done })
}

async fn examine(config: Config) -> Vec<Finding> {
    let mut findings = vec![Finding::good("configuration", "read, and its limits fit each other")];
    findings.extend(addresses(&config));
    findings.push(key_file(&config.keys));
    if let Err(fault) = site::must_exist(config.database.as_str()) {
        findings.push(Finding::bad("database", &fault));
        return findings;
    }
    let shown = config.database.to_string();
    let tenants = config.tenants.clone();
    match App::build(config).await {
        Err(fault) => findings.push(Finding::bad("database and keys", &fault.into())),
        Ok(app) => {
            findings.push(Finding::good("database", format!("{shown} answers, and its schema is this program's")));
            findings.push(clock(&app).await);
            findings.extend(accounts(&app).await);
            findings.extend(untold(&app, &tenants).await);
        }
    }
    findings
}

fn addresses(config: &Config) -> Vec<Finding> {
    let public = match config.public_url.as_deref() {
        None => {
            Finding::warn("public address", "is not set", "set public_url to where channels reach this service: https://pay.example.com")
        }
        Some(url) if url.starts_with("https://") => Finding::good("public address", url),
        Some(url) => {
            Finding::warn("public address", format!("{url} is not https"), "channels send notifications there over the open network")
        }
    };
    let merchants = config.tenants.all().filter_map(|(tenant, merchant)| {
        let what = format!("callbacks of {tenant}");
        match (&merchant.webhook_url, &merchant.secret) {
            (None, None) => None,
            (Some(url), Some(_)) => Some(Finding::good(what, url.as_str())),
            (None, Some(_)) => Some(Finding::good(what, "signed; payments name their own notify_url")),
            (Some(url), None) => {
                Some(Finding::warn(what, format!("{url}, but there is no secret to sign with"), "set the tenant's merchant.secret"))
            }
        }
    });
    std::iter::once(public).chain(merchants).collect()
}

fn key_file(keys: &KeySource) -> Finding {
    let what = "key file";
    match keys {
        KeySource::Given(_) => Finding::good(what, "the keys come from the environment or the file payonce.toml"),
        KeySource::Fleeting => Finding::warn(what, "keys are drawn at each start", "for a database in memory only"),
        KeySource::File(path) if !path.exists() => Finding::warn(
            what,
            format!("{} is not there yet", path.display()),
            "it is made at first start; back it up apart from the database",
        ),
        KeySource::File(path) if is_open(path) => {
            Finding::warn(what, format!("others may read {}", path.display()), format!("chmod 600 {}", path.display()))
        }
        KeySource::File(path) => Finding::good(what, format!("{} is its owner's alone", path.display())),
    }
}

#[cfg(unix)]
fn is_open(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open(_path: &Path) -> bool {
    false
}

async fn clock(app: &App) -> Finding {
    let before = app.clock().now();
    match app.store().read(&[]).await {
        Err(fault) => Finding::bad("clock", &fault.into()),
        Ok((_, database)) => {
            let after = app.clock().now();
            // Where between the two the database looked at its clock is not known: only what lies outside counts.
            let apart = before.since(database).max(database.since(after));
            if apart <= CLOCK_MAX {
                Finding::good("clock", "agrees with the database's")
            } else {
                let says = format!("is {} ms away from the database's", apart.as_millis());
                Finding::warn(
                    "clock",
                    says,
                    "synchronise both machines' clocks; signatures with timestamps are refused when they are minutes off",
                )
            }
        }
    }
}

/// Tenants that work here and cannot be told: their events wait in the feed until somebody fetches them.
async fn untold(app: &App, named: &Tenants) -> Vec<Finding> {
    let keys = app.store().api_keys(None).await;
    let rows = app.store().accounts().await;
    let (Ok(keys), Ok(rows)) = (keys, rows) else { return Vec::new() };
    let working = keys.into_iter().filter(|key| key.revoked_at.is_none()).map(|key| key.tenant);
    let working: BTreeSet<TenantId> = working.chain(rows.into_iter().map(|row| row.tenant)).collect();
    let is_told = |tenant: &TenantId| named.merchant(tenant).is_some_and(|to| to.webhook_url.is_some() || to.secret.is_some());
    let untold = working.into_iter().filter(|tenant| !is_told(tenant));
    untold
        .map(|tenant| {
            let section = if tenant.as_str() == "default" { "merchant".to_owned() } else { format!("tenant.{tenant}.merchant") };
            Finding::warn(
                format!("callbacks of {tenant}"),
                "no webhook_url and no secret: events are in the feed only",
                format!("set webhook_url and secret in [{section}], or fetch GET /v1/events"),
            )
        })
        .collect()
}

async fn accounts(app: &App) -> Vec<Finding> {
    let rows = match app.store().accounts().await {
        Err(fault) => return vec![Finding::bad("accounts", &fault.into())],
        Ok(rows) => rows,
    };
    if rows.is_empty() {
        return vec![Finding::warn("accounts", "there are none", "add one with `payonce account add`")];
    }
    let mut findings = Vec::with_capacity(rows.len());
    for row in rows {
        let what = format!("account {}", row.name);
        findings.push(match app.ledger().accounts.required(&row.name).await {
            Err(why) => Finding::bad(what, &why.into()),
            Ok(_) => Finding::good(what, format!("{}: its settings and keys are usable", row.channel)),
        });
    }
    findings
}
