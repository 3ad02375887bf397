//! Tenants, their API keys, and channel accounts.
//!
//! In: calls of the port. Out: what was stored. It never sees a key itself, only its hash, nor an account's settings in the clear.

use async_trait::async_trait;
use payonce_core::channel::AccountName;
use payonce_core::clock::Timestamp;
use payonce_core::id::{ApiKeyId, TenantId};
use payonce_core::ports::StoreFault;
use payonce_core::ports::directory::{Account, ApiKey, Directory};

use crate::statement as sql;
use crate::{PostgresStore, rows};

#[async_trait]
impl Directory for PostgresStore {
    async fn ping(&self) -> Result<(), StoreFault> {
        self.check_schema().await
    }

    async fn put_api_key(&self, key: &ApiKey) -> Result<(), StoreFault> {
        // A tenant without a key harms nobody, so the two need no transaction.
        self.count(&sql::DIRECTORY_PUT_TENANT, &[&key.tenant.as_str(), &key.created_at.0]).await?;
        let (id, tenant, label, hash) = (key.id.as_str(), key.tenant.as_str(), rows::text(&key.label), key.hash.as_slice());
        let (created, revoked) = (key.created_at.0, key.revoked_at.map(|at| at.0));
        self.count(&sql::DIRECTORY_PUT_API_KEY, &[&id, &tenant, &label, &hash, &created, &revoked]).await.map(drop)
    }

    async fn api_key(&self, hash: &[u8; 32]) -> Result<Option<ApiKey>, StoreFault> {
        self.rows(&sql::DIRECTORY_API_KEY, &[&hash.as_slice()]).await?.first().map(rows::api_key).transpose()
    }

    async fn api_keys(&self, tenant: Option<&TenantId>) -> Result<Vec<ApiKey>, StoreFault> {
        let tenant = tenant.map(TenantId::as_str);
        self.rows(&sql::DIRECTORY_API_KEYS, &[&tenant]).await?.iter().map(rows::api_key).collect()
    }

    async fn revoke_api_key(&self, id: &ApiKeyId, at: Timestamp) -> Result<bool, StoreFault> {
        Ok(self.count(&sql::DIRECTORY_REVOKE_API_KEY, &[&id.as_str(), &at.0]).await? > 0)
    }

    async fn put_account(&self, account: &Account) -> Result<bool, StoreFault> {
        let (name, tenant, channel) = (account.name.as_str(), account.tenant.as_str(), account.channel.as_str());
        let (settings, created) = (account.settings.as_bytes(), account.created_at.0);
        Ok(self.count(&sql::DIRECTORY_PUT_ACCOUNT, &[&name, &tenant, &channel, &settings, &created]).await? > 0)
    }

    async fn account(&self, name: &AccountName) -> Result<Option<Account>, StoreFault> {
        self.rows(&sql::DIRECTORY_ACCOUNT, &[&name.as_str()]).await?.first().map(rows::account).transpose()
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreFault> {
        self.rows(&sql::DIRECTORY_ACCOUNTS, &[]).await?.iter().map(rows::account).collect()
    }
}
