//! `--sandbox`: every channel set up against the simulated channels, for two tenants, with API keys that are ready.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use payonce_channels::transport::{Deadlines, WireRequest};
use payonce_core::clock::random;
use payonce_core::id::TenantId;
use payonce_core::secret::{Keyring, Secret};
use payonce_core::{AccountName, ChannelName};
use payonce_sandbox::{Options, Sandbox};
use serde_json::Value;
use tokio::time::Instant;

use super::{App, StartFault};
use crate::config::DEFAULT_TENANT;

/// The tenant of the second API key.
const SECOND_TENANT: &str = "second";
/// How long a sandbox that runs elsewhere may take to name its accounts.
const ASK_WITHIN: Duration = Duration::from_secs(10);

/// The sandbox's two tenants.
pub(super) fn tenants() -> impl Iterator<Item = TenantId> {
    [DEFAULT_TENANT, SECOND_TENANT].into_iter().filter_map(TenantId::parse)
}

/// A tenant's webhook secret against the sandbox, if none is configured: it follows from the installation's key.
pub(super) fn webhook_secret(keyring: &Keyring, tenant: &TenantId) -> Secret {
    let digest = keyring.digest(format!("sandbox webhook secret/{tenant}").as_bytes()).digest;
    Secret::new(format!("whsec_{}", BASE64.encode(digest)))
}

/// What came of setting the sandbox up.
pub(super) struct SetUp {
    pub(super) url: String,
    pub(super) api_keys: Vec<(TenantId, Secret)>,
    /// The one that was started for this.
    pub(super) own: Option<payonce_sandbox::Running>,
}

impl App {
    /// Starts a sandbox, or uses the one that is named, and sets the tenants up against it.
    pub(super) async fn set_up_sandbox(&self) -> Result<SetUp, StartFault> {
        let (own, url) = match &self.config.sandbox.url {
            Some(url) => (None, url.clone()),
            None => {
                let listen = std::net::SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 0));
                let started = Sandbox::start(Options { listen, clock: Arc::clone(&self.clock), ..Options::default() }).await;
                let started = started.map_err(|why| StartFault::new(format!("the sandbox does not start: {why}")))?;
                let url = started.base_url().to_owned();
                (Some(started), url)
            }
        };
        let accounts = self.sandbox_accounts(&url).await?;
        let mut set_up = 0;
        for account in accounts.as_object().map(|accounts| accounts.values()).into_iter().flatten() {
            set_up += usize::from(self.set_up_account(account).await?);
        }
        if set_up == 0 {
            return Err(StartFault::new(format!("the sandbox at {url} names no accounts that this program can use")));
        }
        Ok(SetUp { url, api_keys: self.sandbox_keys().await?, own })
    }

    async fn sandbox_accounts(&self, url: &str) -> Result<Value, StartFault> {
        let fault = |why: String| {
            StartFault::new(format!("the sandbox at {url} does not name its accounts: {why}"))
                .hint_that("check PAYONCE_SANDBOX_URL, or leave it out to start one")
        };
        let request = WireRequest { method: "GET", url: format!("{url}/_sandbox/accounts"), headers: Vec::new(), body: Vec::new() };
        let by = Instant::now() + ASK_WITHIN;
        let reply =
            self.ledger.transport.send(request, Deadlines { write_by: by, answer_by: by }).await.map_err(|why| fault(why.to_string()))?;
        serde_json::from_slice(&reply.body).map_err(|why| fault(why.to_string()))
    }

    /// One account; false for a channel that this program does not have.
    async fn set_up_account(&self, account: &Value) -> Result<bool, StartFault> {
        let text = |member: &str| account.get(member).and_then(Value::as_str).unwrap_or_default();
        let tenant = if account.get("tenant").and_then(Value::as_u64) == Some(2) { SECOND_TENANT } else { DEFAULT_TENANT };
        let (Some(channel), Some(name), Some(tenant)) =
            (ChannelName::parse(text("channel")), AccountName::parse(text("account")), TenantId::parse(tenant))
        else {
            return Err(StartFault::new("the sandbox names an account that is none"));
        };
        if payonce_channels::registry::adapter(channel.as_str()).is_none() {
            return Ok(false);
        }
        self.put_account(&name, &tenant, &channel, account.get("settings").unwrap_or(&Value::Null)).await?;
        Ok(true)
    }

    async fn sandbox_keys(&self) -> Result<Vec<(TenantId, Secret)>, StartFault> {
        let drawn = || Secret::new(format!("pk_sandbox_{}", hex::encode(random::<24>(self.entropy.as_ref()))));
        let first = self.config.sandbox.api_key.clone().unwrap_or_else(drawn);
        let wanted = [Some(first), self.config.sandbox.api_key_2.clone()];
        let mut keys = Vec::new();
        for (tenant, key) in tenants().zip(wanted) {
            let Some(key) = key else { continue };
            let known = self.store.api_key(&payonce_core::secret::sha256(key.expose().as_bytes())).await?;
            match known {
                None => drop(self.put_api_key(&tenant, "sandbox", &key).await?),
                Some(row) if row.tenant == tenant && row.revoked_at.is_none() => {}
                Some(_) => {
                    return Err(StartFault::new("a sandbox API key is known already, and of another tenant or revoked")
                        .hint_that("take another key, or another database"));
                }
            }
            keys.push((tenant, key));
        }
        Ok(keys)
    }
}
