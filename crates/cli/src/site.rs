//! The installation that a command works on: its database, keys and accounts, opened from flags, environment and file.
//!
//! In: shared arguments. Out: the server's `App`, and whose things are asked for. Never: a port bound, a worker started.

use std::collections::BTreeSet;
use std::path::Path;

use payonce_core::id::{PaymentId, TenantId};
use payonce_core::payment::Payment;
use payonce_server::App;
use payonce_server::config::{Config, ConfigFault, Environment, Log, Options};

use crate::args::shared::{Place, Whose};
use crate::exit::Fault;

/// An opened installation.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) app: App,
}

impl From<ConfigFault> for Fault {
    fn from(fault: ConfigFault) -> Self {
        let hint = fault.hint().map(str::to_owned);
        Self { hint, ..Self::new(fault.to_string()) }
    }
}

impl From<payonce_server::StartFault> for Fault {
    fn from(fault: payonce_server::StartFault) -> Self {
        let hint = fault.hint().map(str::to_owned);
        Self { hint, ..Self::new(fault.to_string()) }
    }
}

/// The configuration as flags, environment and file give it.
pub(crate) fn config(place: &Place) -> Result<Config, Fault> {
    let options = Options { config: place.config.clone(), database: place.database.clone(), no_migrate: true, ..Options::default() };
    Ok(Config::load(&options, &Environment::of_process())?)
}

impl Site {
    /// Opens what is there. A missing or older schema is a fault.
    pub(crate) async fn open(place: &Place) -> Result<Self, Fault> {
        let config = config(place)?;
        must_exist(config.database.as_str())?;
        log(&config.log);
        Ok(Self { app: App::build(config).await? })
    }

    /// Opens, and brings the schema up first: for the commands that a new installation begins with.
    pub(crate) async fn open_migrated(place: &Place) -> Result<Self, Fault> {
        let mut config = config(place)?;
        config.migrate = true;
        log(&config.log);
        Ok(Self { app: App::build(config).await? })
    }

    /// Everybody who has a key or an account.
    pub(crate) async fn tenants(&self) -> Result<Vec<TenantId>, Fault> {
        let store = self.app.store();
        let keys = store.api_keys(None).await?.into_iter().map(|key| key.tenant);
        let accounts = store.accounts().await?.into_iter().map(|account| account.tenant);
        let all: BTreeSet<TenantId> = keys.chain(accounts).collect();
        Ok(all.into_iter().collect())
    }

    /// The tenants that a command is about: the one that was named, or all.
    pub(crate) async fn candidates(&self, whose: &Whose) -> Result<Vec<TenantId>, Fault> {
        match &whose.tenant {
            Some(name) => Ok(vec![tenant_named(name)?]),
            None => self.tenants().await,
        }
    }

    /// The payment of this id.
    pub(crate) async fn payment(&self, whose: &Whose, id: &str) -> Result<Payment, Fault> {
        let missing = || Fault::no(format!("there is no payment {id}"));
        let parsed = PaymentId::parse(id)
            .ok_or_else(|| missing().hint("a payment's id begins with pay_; search with `payonce payment list --order-id ORDER`"))?;
        for tenant in self.candidates(whose).await? {
            if let Some(payment) = self.app.store().load(&tenant, &parsed).await? {
                return Ok(payment);
            }
        }
        Err(missing())
    }
}

/// What goes wrong is told; that all goes well is what the command itself prints. Another filter than the default counts as it is.
fn log(log: &Log) {
    let filter = if log.filter == "info" { "warn".to_owned() } else { log.filter.clone() };
    payonce_server::observe::init_logs(&Log { filter, format: log.format });
}

/// Parses a tenant's name.
pub(crate) fn tenant_named(name: &str) -> Result<TenantId, Fault> {
    TenantId::parse(name).ok_or_else(|| Fault::new(format!("{name:?} is no tenant's name")).hint("1 to 64 letters, digits, `_` and `-`"))
}

/// Opening would make an empty file; for a command that only looks, that hides a mistyped path.
pub(crate) fn must_exist(database: &str) -> Result<(), Fault> {
    let Some(file) = database.strip_prefix("sqlite://") else { return Ok(()) };
    if file.starts_with(':') || Path::new(file.split('?').next().unwrap_or(file)).exists() {
        return Ok(());
    }
    Err(Fault::new(format!("there is no database file {file}"))
        .hint("name it with --database or PAYONCE_DATABASE_URL; `payonce migrate` or `payonce serve` makes one"))
}
