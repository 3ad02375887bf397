//! Puts everything together: the store, the keys, the way to the channels and to the merchants, the ledger; and, when it is to serve, the guard, the
//! workers and the socket.

mod running;
mod sandbox;
mod settings;
mod store;

use std::collections::BTreeMap;
use std::sync::Arc;

use payonce::system::{SystemClock, SystemEntropy};
use payonce_channels::registry;
use payonce_channels::transport::Transport;
use payonce_channels::transport::http::{HttpOptions, HttpTransport};
use payonce_core::clock::{Clock, Entropy, random};
use payonce_core::id::{ApiKeyId, TenantId};
use payonce_core::payment::Payment;
use payonce_core::ports::directory::{Account, ApiKey};
use payonce_core::ports::{Store, StoreFault};
use payonce_core::secret::{Keyring, OpenFault, Secret, sha256};
use payonce_core::{AccountName, ChannelName};
use payonce_flows::accounts::{Accounts, settings_place};
use payonce_flows::ledger::Wake;
use payonce_flows::merchant::{Endpoint, Merchant};
use payonce_flows::sealed_store::SealedStore;
use payonce_flows::{FlowFault, Ledger, Timing};
use serde_json::Value;

use crate::config::{Config, ConfigFault, load_keyring};
use crate::merchant::Callbacks;
use crate::merchant::address::Allowed;
use crate::observe::meter::Measured;

pub use running::{Running, shutdown_signal};
pub use store::{OpenedStore, drop_lent_schema, lend_schema, open_store};

/// Why the service does not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct StartFault {
    what: String,
    hint: Option<String>,
}

impl StartFault {
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

impl From<ConfigFault> for StartFault {
    fn from(fault: ConfigFault) -> Self {
        Self { what: fault.to_string(), hint: fault.hint().map(str::to_owned) }
    }
}

impl From<StoreFault> for StartFault {
    fn from(fault: StoreFault) -> Self {
        Self::new(fault.to_string())
    }
}

/// An installation that was opened: no port is bound and no worker runs.
pub struct App {
    config: Arc<Config>,
    store: Arc<dyn Store>,
    keyring: Arc<Keyring>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    ledger: Arc<Ledger>,
    callbacks: Arc<dyn Merchant>,
    endpoints: BTreeMap<TenantId, Endpoint>,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("config", &self.config).finish_non_exhaustive()
    }
}

impl App {
    /// Opens what the configuration names, brings the schema up (unless it is told not to), and stores the accounts of the file.
    pub async fn build(config: Config) -> Result<Self, StartFault> {
        let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy::default());
        let opened = store::open_pooled(config.database.as_str(), config.database_pool).await?;
        if config.migrate {
            let applied = opened.migrate().await?;
            if !applied.is_empty() {
                tracing::info!(applied = applied.len(), "the schema was brought up");
            }
        } else {
            opened.check_schema().await?;
        }
        let keyring = load_keyring(&config.keys, entropy.as_ref())?;
        let options = HttpOptions { ca_file: config.channel.ca_file.clone(), plain_http_hosts: config.channel.plain_http_hosts.clone() };
        let transport = HttpTransport::new(&options).map_err(|why| StartFault::new(format!("channel.{why}")))?;
        Self::of(config, opened.store(), keyring, entropy, Arc::new(Measured(Arc::new(transport)))).await
    }

    async fn of(
        config: Config,
        store: Arc<dyn Store>,
        keyring: Arc<Keyring>,
        entropy: Arc<dyn Entropy>,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, StartFault> {
        // Everything behind this line sees texts, and the database sees none (I12).
        let store: Arc<dyn Store> = Arc::new(SealedStore::new(store, Arc::clone(&keyring), Arc::clone(&entropy)));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let endpoints = endpoints(&config, &keyring);
        let callbacks = Callbacks::new(endpoints.clone(), Allowed::new(config.tenants.all_allowed_hosts()))
            .map_err(|why| StartFault::new(format!("TLS: {why}")))?;
        let public_url = config.public_url.clone().unwrap_or_else(|| format!("http://{}", config.listen));
        let ledger = Ledger {
            accounts: Accounts::new(Arc::clone(&store), Arc::clone(&keyring)),
            store: Arc::clone(&store),
            transport,
            keyring: Arc::clone(&keyring),
            clock: Arc::clone(&clock),
            entropy: Arc::clone(&entropy),
            timing: timing(&config),
            surplus: config.surplus,
            public_url,
            node: node_name(entropy.as_ref()),
            wake: Arc::new(Wake::default()),
        };
        let app = Self {
            config: Arc::new(config),
            store,
            keyring,
            clock,
            entropy,
            ledger: Arc::new(ledger),
            callbacks: Arc::new(callbacks),
            endpoints,
        };
        app.check_keys().await?;
        for account in &app.config.accounts {
            app.put_account(&account.name, &account.tenant, &account.channel, &account.settings).await?;
        }
        Ok(app)
    }

    /// A key file that belongs to another database is found out now, not at the first payment.
    async fn check_keys(&self) -> Result<(), StartFault> {
        for account in self.store.accounts().await? {
            if let Err(OpenFault::UnknownKey) = self.keyring.open(&settings_place(&account.name), &account.settings) {
                return Err(StartFault::new(format!("the account {} was sealed with a key that is not in the key file", account.name))
                    .hint_that("restore the key file that belongs to this database, or name it with secrets.key_file"));
            }
        }
        Ok(())
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The store.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// What every flow works with.
    pub fn ledger(&self) -> Arc<Ledger> {
        Arc::clone(&self.ledger)
    }

    /// The way to the merchants.
    pub fn merchant(&self) -> Arc<dyn Merchant> {
        Arc::clone(&self.callbacks)
    }

    /// The installation's keys.
    pub fn keyring(&self) -> Arc<Keyring> {
        Arc::clone(&self.keyring)
    }

    /// The time.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Chance.
    pub fn entropy(&self) -> Arc<dyn Entropy> {
        Arc::clone(&self.entropy)
    }

    /// A payment in the API's form, with the buyer's action.
    pub fn payment_json(&self, payment: &Payment) -> Result<Value, FlowFault> {
        crate::api::view::payment(&self.ledger, payment)
    }

    /// Makes an API key for a tenant, which comes to be with it. The second value is the key itself: only its hash is stored.
    pub async fn create_api_key(&self, tenant: &TenantId, label: &str) -> Result<(ApiKey, Secret), StoreFault> {
        let key = Secret::new(format!("pk_{}", hex::encode(random::<32>(self.entropy.as_ref()))));
        Ok((self.put_api_key(tenant, label, &key).await?, key))
    }

    async fn put_api_key(&self, tenant: &TenantId, label: &str, key: &Secret) -> Result<ApiKey, StoreFault> {
        let row = ApiKey {
            id: ApiKeyId::new(self.clock.as_ref(), self.entropy.as_ref()),
            tenant: tenant.clone(),
            label: label.to_owned(),
            hash: sha256(key.expose().as_bytes()),
            created_at: self.clock.now(),
            revoked_at: None,
        };
        self.store.put_api_key(&row).await?;
        Ok(row)
    }

    /// Stores an account whose settings its channel takes; they are sealed. An account of this name and tenant gets the new settings.
    pub async fn put_account(
        &self,
        name: &AccountName,
        tenant: &TenantId,
        channel: &ChannelName,
        settings: &Value,
    ) -> Result<(), StartFault> {
        let Some(adapter) = registry::adapter(channel.as_str()) else {
            let known: Vec<&str> = registry::adapters().iter().map(|adapter| adapter.name()).collect();
            return Err(StartFault::new(format!("there is no channel {channel}")).hint_that(format!("there are {}", known.join(", "))));
        };
        let settings = settings::with_files_read(settings)?;
        adapter.account(&settings).map_err(|why| StartFault::new(format!("account {name}: {why}")))?;
        let plain = serde_json::to_vec(&settings).map_err(|why| StartFault::new(why.to_string()))?;
        let row = Account {
            name: name.clone(),
            tenant: tenant.clone(),
            channel: channel.clone(),
            settings: self.keyring.seal(self.entropy.as_ref(), &settings_place(name), &plain),
            created_at: self.clock.now(),
        };
        if self.store.put_account(&row).await? {
            return Ok(());
        }
        Err(StartFault::new(format!("the account {name} belongs to another tenant"))
            .hint_that("account names are unique in the whole installation; take another"))
    }

    /// The same ledger, reached by channels under another address.
    fn ledger_at(&self, public_url: String) -> Arc<Ledger> {
        let ledger = &self.ledger;
        Arc::new(Ledger {
            store: Arc::clone(&ledger.store),
            accounts: ledger.accounts.clone(),
            transport: Arc::clone(&ledger.transport),
            keyring: Arc::clone(&ledger.keyring),
            clock: Arc::clone(&ledger.clock),
            entropy: Arc::clone(&ledger.entropy),
            timing: ledger.timing,
            surplus: ledger.surplus,
            public_url,
            node: ledger.node.clone(),
            wake: Arc::clone(&ledger.wake),
        })
    }
}

/// Where tenants are told. Against the sandbox everybody has a secret, so that callbacks are signed without any set-up.
fn endpoints(config: &Config, keyring: &Keyring) -> BTreeMap<TenantId, Endpoint> {
    let mut endpoints = BTreeMap::new();
    for (tenant, merchant) in config.tenants.all() {
        if let Some(secret) = &merchant.secret {
            endpoints.insert(tenant.clone(), Endpoint { url: merchant.webhook_url.clone(), secret: secret.clone() });
        }
    }
    if config.sandbox.enabled {
        for tenant in sandbox::tenants() {
            let url = config.tenants.merchant(&tenant).and_then(|merchant| merchant.webhook_url.clone());
            endpoints.entry(tenant.clone()).or_insert_with(|| Endpoint { url, secret: sandbox::webhook_secret(keyring, &tenant) });
        }
    }
    endpoints
}

fn timing(config: &Config) -> Timing {
    Timing {
        channel_deadline: config.channel.deadline,
        answer_due: config.http.answer_due,
        resend_margin: config.channel.resend_margin,
        first_look_up: config.reconcile.first_look_up,
        look_up_max: config.reconcile.look_up_max,
        unresolved_after: config.reconcile.unresolved_after,
        unmatched_for: config.inbox.unmatched_for,
        // A worker that took something makes at most a few calls with it, one after the other.
        hold: config.channel.deadline * 6,
    }
}

/// Names this process in send leases.
fn node_name(entropy: &dyn Entropy) -> String {
    format!("{}-{}", std::process::id(), hex::encode(random::<4>(entropy)))
}
