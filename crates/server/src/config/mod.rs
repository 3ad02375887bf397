//! The configuration: defaults < file < environment < flags.
//!
//! In: what the command line said, the process's environment, and `payonce.toml`. Out: one checked value. Nothing else in the server reads the
//! environment. An unknown key, a value of the wrong form, or two limits that contradict each other stop the start with a hint.

mod check;
mod environment;
mod keys;
mod parse;
mod people;
mod source;

use std::path::PathBuf;
use std::time::Duration;

use payonce_core::payment::SurplusPolicy;
use payonce_core::secret::Secret;

pub use environment::Environment;
pub use keys::{KeySource, load_keyring};
pub(crate) use people::DEFAULT_TENANT;
pub use people::{AccountSettings, Merchant, Tenants};

use source::Source;

/// What the flags of a command say. The default says nothing.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The file; else `PAYONCE_CONFIG`, else `payonce.toml` in the working directory, if it is there.
    pub config: Option<PathBuf>,
    /// Where to listen.
    pub listen: Option<String>,
    /// The database's address.
    pub database: Option<String>,
    /// Whether every channel is set up against the sandbox.
    pub sandbox: bool,
    /// Whether the schema is left as it is.
    pub no_migrate: bool,
}

/// Why there is no configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct ConfigFault {
    what: String,
    hint: Option<String>,
}

impl ConfigFault {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None }
    }

    #[must_use]
    pub(crate) fn hint_that(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// A database's address. Its password does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// An address.
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The address with its password.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl std::fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = match (self.0.split_once("://"), self.0.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, host))) => format!("{scheme}://***@{host}"),
            _ => self.0.clone(),
        };
        f.write_str(&shown)
    }
}

/// How logs look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// What is logged.
#[derive(Clone, Debug)]
pub struct Log {
    /// A filter of the form `info,payonce_flows=debug`.
    pub filter: String,
    /// How it looks.
    pub format: LogFormat,
}

/// What a repeat gets while the first request is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFlight {
    /// 409 at once.
    Refuse,
    /// It waits for the first to end.
    Wait,
}

/// `guard.…`
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    /// How long a claim holds without renewal.
    pub lease: Duration,
    /// How long an answer is kept.
    pub ttl: Duration,
    /// What a repeat gets meanwhile.
    pub in_flight: InFlight,
    /// So many guarded requests run at once.
    pub max_runs: usize,
    /// The longest answer that is kept whole.
    pub max_answer_bytes: usize,
}

/// `http.…`
#[derive(Clone, Copy, Debug)]
pub struct Http {
    /// After this a request is answered with what is known.
    pub answer_due: Duration,
    /// The longest request body.
    pub body_limit_bytes: usize,
    /// How long a connection may take over a request's head, and stay idle between two.
    pub header_timeout: Duration,
    /// How long a request's body may take.
    pub body_timeout: Duration,
    /// So many connections at once; the next waits.
    pub max_connections: usize,
    /// How long a shutdown waits for requests that run.
    pub drain: Duration,
}

/// `channel.…`
#[derive(Clone, Debug)]
pub struct Channel {
    /// How long a call to a channel may take, and how long its send lease holds.
    pub deadline: Duration,
    /// How long before the end of a key window a resend must begin.
    pub resend_margin: Duration,
    /// A PEM file of certificate authorities that are trusted beside the public ones.
    pub ca_file: Option<PathBuf>,
    /// Hosts that channels may be called at over plain `http://`. Loopback always may.
    pub plain_http_hosts: Vec<String>,
}

/// `reconcile.…`, and how often the workers look without being woken.
#[derive(Clone, Copy, Debug)]
pub struct Reconcile {
    /// When an attempt is first looked up.
    pub first_look_up: Duration,
    /// The longest interval between two look-ups.
    pub look_up_max: Duration,
    /// After this an unknown outcome makes the payment `review`.
    pub unresolved_after: Duration,
    /// How often the due list, the inbox and the outbox are looked at.
    pub interval: Duration,
}

/// `inbox.…`
#[derive(Clone, Copy, Debug)]
pub struct Inbox {
    /// How long settled notifications are remembered.
    pub retention: Duration,
    /// How long an authentic notification that matches nothing is tried again.
    pub unmatched_for: Duration,
}

/// `sandbox.…`
#[derive(Clone, Debug)]
pub struct Sandbox {
    /// Whether every channel is set up against the sandbox.
    pub enabled: bool,
    /// One that runs already; else one is started.
    pub url: Option<String>,
    /// The API key of the tenant `default`; else one is drawn.
    pub api_key: Option<Secret>,
    /// The API key of the tenant `second`, if there is to be one.
    pub api_key_2: Option<Secret>,
}

/// Everything that can be set.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen, `host:port`; port 0 takes a free one.
    pub listen: String,
    /// Where channels and browsers reach us, without a slash at the end.
    pub public_url: Option<String>,
    /// The database's address.
    pub database: DatabaseUrl,
    /// How many connections a pool has (PostgreSQL).
    pub database_pool: usize,
    /// Whether the schema is brought up at start.
    pub migrate: bool,
    /// What is logged.
    pub log: Log,
    /// The guard.
    pub guard: Guard,
    /// The HTTP side.
    pub http: Http,
    /// Calls to channels.
    pub channel: Channel,
    /// Look-ups.
    pub reconcile: Reconcile,
    /// Notifications.
    pub inbox: Inbox,
    /// What happens with a surplus.
    pub surplus: SurplusPolicy,
    /// Where the installation's keys are.
    pub keys: KeySource,
    /// Where merchants are told.
    pub tenants: Tenants,
    /// Accounts of the file.
    pub accounts: Vec<AccountSettings>,
    /// The sandbox.
    pub sandbox: Sandbox,
}

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// The file that is read if nobody names one.
const DEFAULT_FILE: &str = "payonce.toml";

impl Config {
    /// Reads and checks everything.
    pub fn load(options: &Options, environment: &Environment) -> Result<Self, ConfigFault> {
        let mut source = Source::open(options, environment)?;
        let config = Self::read(&mut source, options)?;
        source.finish()?;
        check::relations(&config)?;
        Ok(config)
    }

    fn read(source: &mut Source<'_>, options: &Options) -> Result<Self, ConfigFault> {
        let database = DatabaseUrl(source.text("database.url")?.unwrap_or_else(|| "sqlite://payonce.db".to_owned()));
        let sandbox = Sandbox {
            enabled: options.sandbox,
            url: source.text("sandbox.url")?.map(|url| url.trim_end_matches('/').to_owned()),
            api_key: source.secret("sandbox.api_key")?,
            api_key_2: source.secret("sandbox.api_key_2")?,
        };
        Ok(Self {
            listen: source.text("listen")?.unwrap_or_else(|| "127.0.0.1:8080".to_owned()),
            public_url: source.text("public_url")?.map(|url| url.trim_end_matches('/').to_owned()),
            database_pool: source.count("database.pool", 16)?,
            migrate: !options.no_migrate,
            log: Log {
                filter: source.text("log.filter")?.unwrap_or_else(|| "info".to_owned()),
                format: source.choice("log.format", LogFormat::Text, &[("text", LogFormat::Text), ("json", LogFormat::Json)])?,
            },
            guard: Guard {
                lease: source.span("guard.lease", 60 * SECOND)?,
                ttl: source.span("guard.ttl", DAY)?,
                in_flight: source.choice("guard.in_flight", InFlight::Refuse, &[("refuse", InFlight::Refuse), ("wait", InFlight::Wait)])?,
                max_runs: source.count("guard.max_runs", 10_000)?,
                max_answer_bytes: source.size("guard.max_answer", 1024 * 1024)?,
            },
            http: Http {
                answer_due: source.span("http.answer_due", 30 * SECOND)?,
                body_limit_bytes: source.size("http.body_limit", 64 * 1024)?,
                header_timeout: source.span("http.header_timeout", 60 * SECOND)?,
                body_timeout: source.span("http.body_timeout", 30 * SECOND)?,
                max_connections: source.count("http.max_connections", 10_000)?,
                drain: source.span("http.drain", 25 * SECOND)?,
            },
            channel: Channel {
                deadline: source.span("channel.deadline", 20 * SECOND)?,
                resend_margin: source.span("channel.resend_margin", 600 * SECOND)?,
                ca_file: source.text("channel.ca_file")?.map(PathBuf::from),
                plain_http_hosts: source.list("channel.plain_http_hosts")?,
            },
            reconcile: Reconcile {
                first_look_up: source.span("reconcile.first_look_up", 5 * SECOND)?,
                look_up_max: source.span("reconcile.look_up_max", HOUR)?,
                unresolved_after: source.span("reconcile.unresolved_after", DAY)?,
                interval: source.span("reconcile.interval", SECOND)?,
            },
            inbox: Inbox { retention: source.span("inbox.retention", 45 * DAY)?, unmatched_for: source.span("inbox.unmatched_for", DAY)? },
            surplus: source.choice(
                "surplus.policy",
                SurplusPolicy::Refund,
                &[("refund", SurplusPolicy::Refund), ("hold", SurplusPolicy::Hold)],
            )?,
            keys: KeySource::read(source, database.as_str())?,
            tenants: Tenants::read(source)?,
            accounts: people::accounts(source)?,
            database,
            sandbox,
        })
    }
}

#[cfg(test)]
mod tests;
