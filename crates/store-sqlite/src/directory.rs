//! Tenants, their API keys, and channel accounts.
//!
//! In: calls of the port. Out: what was stored. It never sees a key itself, only its hash, nor an account's settings in the clear.

use async_trait::async_trait;
use payonce_core::channel::AccountName;
use payonce_core::clock::Timestamp;
use payonce_core::id::{ApiKeyId, TenantId};
use payonce_core::ports::StoreFault;
use payonce_core::ports::directory::{Account, ApiKey, Directory};
use rusqlite::params;

use crate::statements as sql;
use crate::{SqliteStore, rows};

#[async_trait]
impl Directory for SqliteStore {
    async fn ping(&self) -> Result<(), StoreFault> {
        self.check_schema().await
    }

    async fn put_api_key(&self, key: &ApiKey) -> Result<(), StoreFault> {
        let key = key.clone();
        self.write(move |connection| {
            let (id, tenant, created, revoked) = (key.id.as_str(), key.tenant.as_str(), key.created_at.0, key.revoked_at.map(|at| at.0));
            connection.prepare_cached(sql::DIRECTORY_PUT_TENANT)?.execute(params![tenant, created])?;
            let params = params![id, tenant, key.label, key.hash, created, revoked];
            connection.prepare_cached(sql::DIRECTORY_PUT_API_KEY)?.execute(params)?;
            Ok(())
        })
        .await
    }

    async fn api_key(&self, hash: &[u8; 32]) -> Result<Option<ApiKey>, StoreFault> {
        let hash = *hash;
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(sql::DIRECTORY_API_KEY)?;
            let mut found = statement.query_and_then([hash], rows::api_key)?;
            found.next().transpose()
        })
        .await
    }

    async fn api_keys(&self, tenant: Option<&TenantId>) -> Result<Vec<ApiKey>, StoreFault> {
        let tenant = tenant.cloned();
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(sql::DIRECTORY_API_KEYS)?;
            let found = statement.query_and_then([tenant.as_ref().map(|tenant| tenant.as_str())], rows::api_key)?;
            found.collect()
        })
        .await
    }

    async fn revoke_api_key(&self, id: &ApiKeyId, at: Timestamp) -> Result<bool, StoreFault> {
        let id = id.clone();
        self.write(move |connection| Ok(connection.prepare_cached(sql::DIRECTORY_REVOKE_API_KEY)?.execute(params![id.as_str(), at.0])? > 0))
            .await
    }

    async fn put_account(&self, account: &Account) -> Result<bool, StoreFault> {
        let account = account.clone();
        self.write(move |connection| {
            let (name, tenant, channel) = (account.name.as_str(), account.tenant.as_str(), account.channel.as_str());
            let params = params![name, tenant, channel, account.settings.as_bytes(), account.created_at.0];
            Ok(connection.prepare_cached(sql::DIRECTORY_PUT_ACCOUNT)?.execute(params)? > 0)
        })
        .await
    }

    async fn account(&self, name: &AccountName) -> Result<Option<Account>, StoreFault> {
        let name = name.clone();
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(sql::DIRECTORY_ACCOUNT)?;
            let mut found = statement.query_and_then([name.as_str()], rows::account)?;
            found.next().transpose()
        })
        .await
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreFault> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(sql::DIRECTORY_ACCOUNTS)?;
            statement.query_and_then([], rows::account)?.collect()
        })
        .await
    }
}
