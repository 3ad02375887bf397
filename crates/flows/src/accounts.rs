//! Channel accounts: stored settings opened and made into adapters, once per version of the settings.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use payonce_channels::contract::{Account, Adapter};
use payonce_channels::registry;
use payonce_core::channel::{AccountName, ChannelName};
use payonce_core::id::TenantId;
use payonce_core::ports::Store;
use payonce_core::ports::directory;
use payonce_core::secret::{Keyring, Sealed};

use crate::ledger::FlowFault;

/// An account that is ready to be used.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Its name.
    pub name: AccountName,
    /// Whose.
    pub tenant: TenantId,
    /// Which channel.
    pub channel: ChannelName,
    /// The adapter's account.
    pub account: Arc<dyn Account>,
}

/// Accounts by name. Reads the directory each time, so that a new secret counts without a restart (B063); parses keys only once.
#[derive(Clone)]
pub struct Accounts {
    store: Arc<dyn Store>,
    keyring: Arc<Keyring>,
    opened: Arc<Mutex<HashMap<AccountName, (Sealed, Opened)>>>,
}

impl std::fmt::Debug for Accounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Accounts")
    }
}

/// The place that an account's settings are sealed for.
pub fn settings_place(name: &AccountName) -> String {
    format!("account/{name}")
}

impl Accounts {
    /// Over a store.
    pub fn new(store: Arc<dyn Store>, keyring: Arc<Keyring>) -> Self {
        Self { store, keyring, opened: Arc::new(Mutex::new(HashMap::new())) }
    }

    /// The account of this name, if there is one and its settings do.
    pub async fn named(&self, name: &AccountName) -> Result<Option<Opened>, FlowFault> {
        let Some(row) = self.store.account(name).await? else { return Ok(None) };
        self.open(&row).map(Some)
    }

    /// The account of a stored attempt or refund: its absence is a fault of the installation.
    pub async fn required(&self, name: &AccountName) -> Result<Opened, FlowFault> {
        let missing = || FlowFault::Account(name.to_string(), "there is no such account any more".to_owned());
        self.named(name).await?.ok_or_else(missing)
    }

    /// A tenant's account for a channel: the named one, or the first by name.
    pub async fn for_channel(
        &self,
        tenant: &TenantId,
        channel: &ChannelName,
        name: Option<&AccountName>,
    ) -> Result<Option<Opened>, FlowFault> {
        if let Some(name) = name {
            let opened = self.named(name).await?;
            return Ok(opened.filter(|account| &account.tenant == tenant && &account.channel == channel));
        }
        let mut rows = self.store.accounts().await?;
        rows.retain(|row| &row.tenant == tenant && &row.channel == channel);
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        rows.first().map(|row| self.open(row)).transpose()
    }

    fn open(&self, row: &directory::Account) -> Result<Opened, FlowFault> {
        let known = self.opened.lock().unwrap_or_else(PoisonError::into_inner).get(&row.name).cloned();
        if let Some((settings, opened)) = known
            && settings == row.settings
        {
            return Ok(opened);
        }
        let fault = |why: String| FlowFault::Account(row.name.to_string(), why);
        let plain = self.keyring.open(&settings_place(&row.name), &row.settings)?;
        let settings = serde_json::from_slice(&plain).map_err(|_| fault("its settings are no JSON".to_owned()))?;
        let adapter: &dyn Adapter =
            registry::adapter(row.channel.as_str()).ok_or_else(|| fault(format!("there is no channel {}", row.channel)))?;
        let account = adapter.account(&settings).map_err(|why| fault(why.to_string()))?;
        let opened = Opened { name: row.name.clone(), tenant: row.tenant.clone(), channel: row.channel.clone(), account };
        let mut cache = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        cache.insert(row.name.clone(), (row.settings.clone(), opened.clone()));
        Ok(opened)
    }
}
