//! Tenants, keys and accounts in memory.

use async_trait::async_trait;
use payonce_core::channel::AccountName;
use payonce_core::clock::Timestamp;
use payonce_core::id::{ApiKeyId, TenantId};
use payonce_core::ports::StoreFault;
use payonce_core::ports::directory::{Account, ApiKey, Directory};

use super::MemoryStore;

#[async_trait]
impl Directory for MemoryStore {
    async fn ping(&self) -> Result<(), StoreFault> {
        Ok(())
    }

    async fn put_api_key(&self, key: &ApiKey) -> Result<(), StoreFault> {
        let mut tables = self.tables();
        if tables.api_keys.iter().any(|known| known.id == key.id || known.hash == key.hash) {
            return Err(StoreFault::Refused(format!("the key {} exists", key.id)));
        }
        tables.api_keys.push(key.clone());
        Ok(())
    }

    async fn api_key(&self, hash: &[u8; 32]) -> Result<Option<ApiKey>, StoreFault> {
        Ok(self.tables().api_keys.iter().find(|key| key.hash == *hash).cloned())
    }

    async fn api_keys(&self, tenant: Option<&TenantId>) -> Result<Vec<ApiKey>, StoreFault> {
        Ok(self.tables().api_keys.iter().filter(|key| tenant.is_none_or(|tenant| key.tenant == *tenant)).cloned().collect())
    }

    async fn revoke_api_key(&self, id: &ApiKeyId, at: Timestamp) -> Result<bool, StoreFault> {
        let mut tables = self.tables();
        let open = tables.api_keys.iter_mut().find(|key| key.id == *id && key.revoked_at.is_none());
        Ok(open.map(|key| key.revoked_at = Some(at)).is_some())
    }

    async fn put_account(&self, account: &Account) -> Result<bool, StoreFault> {
        let mut tables = self.tables();
        match tables.accounts.get_mut(&account.name) {
            Some(known) if known.tenant != account.tenant => Ok(false),
            Some(known) => {
                // The account keeps its age.
                *known = Account { created_at: known.created_at, ..account.clone() };
                Ok(true)
            }
            None => {
                tables.accounts.insert(account.name.clone(), account.clone());
                Ok(true)
            }
        }
    }

    async fn account(&self, name: &AccountName) -> Result<Option<Account>, StoreFault> {
        Ok(self.tables().accounts.get(name).cloned())
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreFault> {
        Ok(self.tables().accounts.values().cloned().collect())
    }
}
