//! Tenants with their webhook endpoints, and channel accounts, as the file and the environment name them.

use std::collections::BTreeMap;

use payonce_core::channel::{AccountName, ChannelName};
use payonce_core::id::TenantId;
use payonce_core::secret::Secret;
use toml::{Table, Value};

use super::ConfigFault;
use super::source::{Source, list_of};

/// The tenant of `[merchant]`.
pub(crate) const DEFAULT_TENANT: &str = "default";

/// Where a tenant is told.
#[derive(Clone, Debug, Default)]
pub struct Merchant {
    /// The tenant's own address.
    pub webhook_url: Option<String>,
    /// `whsec_` and Base64 of 24–64 bytes.
    pub secret: Option<Secret>,
    /// Hosts (`host` or `host:port`) inside the network that callbacks may go to.
    pub allow_hosts: Vec<String>,
}

/// All tenants that the configuration names.
#[derive(Clone, Debug, Default)]
pub struct Tenants {
    by_name: BTreeMap<TenantId, Merchant>,
    everywhere: Vec<String>,
}

impl Tenants {
    /// `[merchant]` for the default tenant, `[tenant.NAME.merchant]` for the others; each also as a variable.
    pub(super) fn read(source: &mut Source<'_>) -> Result<Self, ConfigFault> {
        let mut by_name: BTreeMap<TenantId, Merchant> = BTreeMap::new();
        for (name, value) in source.take_table("tenant")? {
            let at = format!("tenant.{name} in {}", source.file_name());
            let tenant =
                TenantId::parse(&name).ok_or_else(|| ConfigFault::new(format!("{at}: a tenant's name is 1 to 64 of A-Z a-z 0-9 _ -")))?;
            by_name.insert(tenant, merchant_of(value, &at)?);
        }
        for (tenant, variable, setting) in tenant_variables(source) {
            let value = source.environment().value(&variable).unwrap_or_default().to_owned();
            source.know(&variable);
            let known = by_name.keys().find(|id| id.as_str().replace('-', "_").eq_ignore_ascii_case(&tenant)).cloned();
            let named = known.or_else(|| TenantId::parse(&tenant.to_ascii_lowercase()));
            let Some(id) = named else { return Err(ConfigFault::new(format!("{variable} names no tenant"))) };
            by_name.entry(id).or_default().set(setting, &Value::String(value), &variable)?;
        }
        let everywhere = source.list("merchant.allow_hosts")?;
        let own = Merchant {
            webhook_url: source.text("merchant.webhook_url")?,
            secret: source.secret("merchant.secret")?,
            allow_hosts: Vec::new(),
        };
        if let Some(default) = TenantId::parse(DEFAULT_TENANT) {
            let entry = by_name.entry(default).or_default();
            entry.webhook_url = own.webhook_url.or(entry.webhook_url.take());
            entry.secret = own.secret.or(entry.secret.take());
        }
        Ok(Self { by_name, everywhere })
    }

    /// Every tenant that is named.
    pub fn all(&self) -> impl Iterator<Item = (&TenantId, &Merchant)> {
        self.by_name.iter()
    }

    /// One tenant's endpoint, if it is named.
    pub fn merchant(&self, tenant: &TenantId) -> Option<&Merchant> {
        self.by_name.get(tenant)
    }

    /// The hosts inside the network that this tenant's callbacks may name: its own, and those of `[merchant]`, which hold for all.
    pub fn allow_hosts(&self, tenant: &TenantId) -> Vec<String> {
        let own = self.by_name.get(tenant).map(|merchant| merchant.allow_hosts.clone()).unwrap_or_default();
        self.everywhere.iter().cloned().chain(own).collect()
    }

    /// Every host that any tenant may name.
    pub fn all_allowed_hosts(&self) -> Vec<String> {
        let own = self.by_name.values().flat_map(|merchant| merchant.allow_hosts.iter().cloned());
        self.everywhere.iter().cloned().chain(own).collect()
    }
}

impl Merchant {
    fn set(&mut self, setting: &str, value: &Value, at: &str) -> Result<(), ConfigFault> {
        let text = || value.as_str().map(str::to_owned).ok_or_else(|| ConfigFault::new(format!("{at} must be a text")));
        match setting {
            "webhook_url" => self.webhook_url = Some(text()?),
            "secret" => self.secret = Some(Secret::new(text()?)),
            "allow_hosts" => {
                self.allow_hosts = list_of(value).ok_or_else(|| ConfigFault::new(format!("{at} must be a list of texts")))?;
            }
            unknown => {
                return Err(
                    ConfigFault::new(format!("{at}: unknown key {unknown}")).hint_that("webhook_url, secret and allow_hosts can be set")
                );
            }
        }
        Ok(())
    }
}

fn merchant_of(value: Value, at: &str) -> Result<Merchant, ConfigFault> {
    let Value::Table(tenant) = value else { return Err(ConfigFault::new(format!("{at} must be a table"))) };
    let mut merchant = Merchant::default();
    for (name, value) in tenant {
        match (name.as_str(), value) {
            ("merchant", Value::Table(settings)) => {
                for (setting, value) in settings {
                    merchant.set(&setting, &value, &format!("{at}: merchant.{setting}"))?;
                }
            }
            _ => return Err(ConfigFault::new(format!("{at}: unknown key {name}")).hint_that("a tenant has the table merchant")),
        }
    }
    Ok(merchant)
}

/// `PAYONCE_TENANT_SECOND_MERCHANT_WEBHOOK_URL` and the like: tenant, variable, setting.
fn tenant_variables(source: &Source<'_>) -> Vec<(String, String, &'static str)> {
    const SETTINGS: [(&str, &str); 3] =
        [("_MERCHANT_WEBHOOK_URL", "webhook_url"), ("_MERCHANT_SECRET", "secret"), ("_MERCHANT_ALLOW_HOSTS", "allow_hosts")];
    let found = source.environment().names("PAYONCE_TENANT_").filter_map(|variable| {
        let rest = variable.strip_prefix("PAYONCE_TENANT_")?;
        SETTINGS.iter().find_map(|(end, setting)| Some((rest.strip_suffix(end)?.to_owned(), variable.to_owned(), *setting)))
    });
    found.collect()
}

/// An account of the file: stored, sealed, at start.
#[derive(Clone)]
pub struct AccountSettings {
    /// Unique in the installation.
    pub name: AccountName,
    /// Which channel.
    pub channel: ChannelName,
    /// Whose.
    pub tenant: TenantId,
    /// What the channel's adapter is given.
    pub settings: serde_json::Value,
}

impl std::fmt::Debug for AccountSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AccountSettings({} {} {})", self.name, self.channel, self.tenant)
    }
}

/// `[account.NAME]`: `channel`, `tenant`, and the table `settings`, whose values are texts, or `{ file = "…" }` or `{ env = "…" }`.
pub(super) fn accounts(source: &mut Source<'_>) -> Result<Vec<AccountSettings>, ConfigFault> {
    let mut accounts = Vec::new();
    for (name, value) in source.take_table("account")? {
        let at = format!("account.{name} in {}", source.file_name());
        let fault = |what: String| ConfigFault::new(format!("{at}: {what}"));
        let Value::Table(mut table) = value else { return Err(fault("must be a table".to_owned())) };
        let text = |table: &mut Table, key: &str| table.remove(key).and_then(|value| value.as_str().map(str::to_owned));
        let channel = text(&mut table, "channel").and_then(|channel| ChannelName::parse(&channel));
        let channel = channel.ok_or_else(|| fault("channel must name a channel".to_owned()))?;
        let tenant = text(&mut table, "tenant").unwrap_or_else(|| DEFAULT_TENANT.to_owned());
        let tenant = TenantId::parse(&tenant).ok_or_else(|| fault("tenant must be 1 to 64 of A-Z a-z 0-9 _ -".to_owned()))?;
        let settings = match table.remove("settings") {
            None => Value::Table(Table::new()),
            Some(settings @ Value::Table(_)) => settings,
            Some(_) => return Err(fault("settings must be a table".to_owned())),
        };
        if let Some(unknown) = table.keys().next() {
            return Err(fault(format!("unknown key {unknown}")).hint_that("an account has channel, tenant and the table settings"));
        }
        let name = AccountName::parse(&name).ok_or_else(|| fault("its name must be 1 to 64 of A-Z a-z 0-9 _ -".to_owned()))?;
        let settings = resolved(&settings, source, &at)?;
        accounts.push(AccountSettings { name, channel, tenant, settings });
    }
    Ok(accounts)
}

fn missing_variable(at: &str, variable: &str) -> ConfigFault {
    ConfigFault::new(format!("{at}: the environment variable {variable} is not set"))
        .hint_that(format!("set {variable} where payonce is started (empty counts as not set), or write {{ file = \"…\" }} instead"))
}

/// References followed: what stands in files and variables is put in their place.
fn resolved(value: &Value, source: &Source<'_>, at: &str) -> Result<serde_json::Value, ConfigFault> {
    use serde_json::Value as Json;
    Ok(match value {
        Value::String(text) => Json::String(text.clone()),
        Value::Integer(number) => Json::from(*number),
        Value::Boolean(flag) => Json::Bool(*flag),
        Value::Array(items) => Json::Array(items.iter().map(|item| resolved(item, source, at)).collect::<Result<_, _>>()?),
        Value::Table(table) => {
            let only = |key: &str| (table.len() == 1).then(|| table.get(key)?.as_str()).flatten();
            if let Some(path) = only("file") {
                let text = std::fs::read_to_string(path).map_err(|why| ConfigFault::new(format!("{at}: {path} cannot be read: {why}")))?;
                return Ok(Json::String(text.trim_end().to_owned()));
            }
            if let Some(variable) = only("env") {
                let text = source.environment().value(variable);
                let text = text.ok_or_else(|| missing_variable(at, variable))?;
                return Ok(Json::String(text.to_owned()));
            }
            let members = table.iter().map(|(name, value)| Ok((name.clone(), resolved(value, source, at)?)));
            Json::Object(members.collect::<Result<_, ConfigFault>>()?)
        }
        Value::Float(_) | Value::Datetime(_) => {
            return Err(ConfigFault::new(format!("{at}: a setting is a text, a whole number or true/false")));
        }
    })
}
