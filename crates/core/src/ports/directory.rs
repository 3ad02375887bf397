//! Tenants, their API keys, and channel accounts.

use async_trait::async_trait;

use super::StoreFault;
use crate::channel::{AccountName, ChannelName};
use crate::clock::Timestamp;
use crate::id::{ApiKeyId, TenantId};
use crate::secret::Sealed;

/// An API key as stored: its hash only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Its public handle.
    pub id: ApiKeyId,
    /// Whose.
    pub tenant: TenantId,
    /// What it is for, in the operator's words.
    pub label: String,
    /// SHA-256 of the key. The key has 256 random bits, so a fast hash is enough.
    pub hash: [u8; 32],
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// A set of credentials at a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Unique in the installation.
    pub name: AccountName,
    /// Whose.
    pub tenant: TenantId,
    /// Which channel.
    pub channel: ChannelName,
    /// The channel's settings as JSON, sealed.
    pub settings: Sealed,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Tenants, keys, accounts.
#[async_trait]
pub trait Directory: Send + Sync + 'static {
    /// Makes sure that the store answers and its schema is there.
    async fn ping(&self) -> Result<(), StoreFault>;

    /// Stores a key. Its tenant comes to be with it.
    async fn put_api_key(&self, key: &ApiKey) -> Result<(), StoreFault>;

    /// The key with this hash, revoked or not.
    async fn api_key(&self, hash: &[u8; 32]) -> Result<Option<ApiKey>, StoreFault>;

    /// A tenant's keys, or everybody's.
    async fn api_keys(&self, tenant: Option<&TenantId>) -> Result<Vec<ApiKey>, StoreFault>;

    /// Revokes a key; whether there was one to revoke.
    async fn revoke_api_key(&self, id: &ApiKeyId, at: Timestamp) -> Result<bool, StoreFault>;

    /// Stores an account. An account of the same name and tenant gets the new settings; the name of another tenant's is refused.
    async fn put_account(&self, account: &Account) -> Result<bool, StoreFault>;

    /// The account of this name.
    async fn account(&self, name: &AccountName) -> Result<Option<Account>, StoreFault>;

    /// All accounts.
    async fn accounts(&self) -> Result<Vec<Account>, StoreFault>;
}
