//! What passes as it is: the guard's records, the inbox and the directory. Those who write them seal what is secret there.

use std::time::Duration;

use async_trait::async_trait;
use payonce_core::channel::{AccountName, ChannelName};
use payonce_core::clock::Timestamp;
use payonce_core::id::{ApiKeyId, InboxId, TenantId};
use payonce_core::notification::Verified;
use payonce_core::ports::StoreFault;
use payonce_core::ports::directory::{Account, ApiKey, Directory};
use payonce_core::ports::inbox::{Inbox, InboxRow, InboxStatus, InboxVerdict};
use payonce_core::ports::records::{NewClaim, Records, Seen, TakeOver, Write, Written};
use payonce_core::record::{ClaimId, Fence, Record, RecordKey};
use payonce_core::secret::Sealed;

use super::SealedStore;

#[async_trait]
impl Records for SealedStore {
    async fn claim(&self, rows: &[NewClaim]) -> Result<Vec<Seen>, StoreFault> {
        self.inner.claim(rows).await
    }

    async fn take_over(&self, row: &TakeOver) -> Result<Option<Fence>, StoreFault> {
        self.inner.take_over(row).await
    }

    async fn park_lapsed(&self, key: &RecordKey, seen_claim: ClaimId, seen_fence: Fence) -> Result<Written, StoreFault> {
        self.inner.park_lapsed(key, seen_claim, seen_fence).await
    }

    async fn write(&self, rows: &[Write]) -> Result<Vec<Written>, StoreFault> {
        self.inner.write(rows).await
    }

    async fn read(&self, keys: &[RecordKey]) -> Result<(Vec<Option<Record>>, Timestamp), StoreFault> {
        self.inner.read(keys).await
    }

    async fn find(&self, tenant: &TenantId, key: Option<&str>, limit: usize) -> Result<Vec<Record>, StoreFault> {
        self.inner.find(tenant, key, limit).await
    }

    async fn remove_stuck(&self, key: &RecordKey) -> Result<Written, StoreFault> {
        self.inner.remove_stuck(key).await
    }

    async fn sweep_records(&self, limit: usize) -> Result<usize, StoreFault> {
        self.inner.sweep_records(limit).await
    }
}

#[async_trait]
impl Inbox for SealedStore {
    async fn receive(
        &self,
        tenant: &TenantId,
        channel: &ChannelName,
        account: &AccountName,
        verified: &Verified,
        raw: &Sealed,
        ids: &[InboxId],
        now: Timestamp,
    ) -> Result<Vec<InboxId>, StoreFault> {
        self.inner.receive(tenant, channel, account, verified, raw, ids, now).await
    }

    async fn take_waiting(&self, now: Timestamp, hold: Duration, limit: usize) -> Result<Vec<InboxRow>, StoreFault> {
        self.inner.take_waiting(now, hold, limit).await
    }

    async fn judge(&self, tenant: &TenantId, id: &InboxId, verdict: &InboxVerdict) -> Result<(), StoreFault> {
        self.inner.judge(tenant, id, verdict).await
    }

    async fn inbox_row(&self, tenant: &TenantId, id: &InboxId) -> Result<Option<InboxRow>, StoreFault> {
        self.inner.inbox_row(tenant, id).await
    }

    async fn inbox_list(&self, tenant: &TenantId, status: Option<InboxStatus>, limit: usize) -> Result<Vec<InboxRow>, StoreFault> {
        self.inner.inbox_list(tenant, status, limit).await
    }

    async fn sweep_inbox(&self, before: Timestamp, limit: usize) -> Result<usize, StoreFault> {
        self.inner.sweep_inbox(before, limit).await
    }
}

#[async_trait]
impl Directory for SealedStore {
    async fn ping(&self) -> Result<(), StoreFault> {
        self.inner.ping().await
    }

    async fn put_api_key(&self, key: &ApiKey) -> Result<(), StoreFault> {
        self.inner.put_api_key(key).await
    }

    async fn api_key(&self, hash: &[u8; 32]) -> Result<Option<ApiKey>, StoreFault> {
        self.inner.api_key(hash).await
    }

    async fn api_keys(&self, tenant: Option<&TenantId>) -> Result<Vec<ApiKey>, StoreFault> {
        self.inner.api_keys(tenant).await
    }

    async fn revoke_api_key(&self, id: &ApiKeyId, at: Timestamp) -> Result<bool, StoreFault> {
        self.inner.revoke_api_key(id, at).await
    }

    async fn put_account(&self, account: &Account) -> Result<bool, StoreFault> {
        self.inner.put_account(account).await
    }

    async fn account(&self, name: &AccountName) -> Result<Option<Account>, StoreFault> {
        self.inner.account(name).await
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreFault> {
        self.inner.accounts().await
    }
}
