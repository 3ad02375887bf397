//! The guard's table: handed on to [`crate::memory_records::MemoryRecords`].

use async_trait::async_trait;
use payonce_core::clock::Timestamp;
use payonce_core::id::TenantId;
use payonce_core::ports::StoreFault;
use payonce_core::ports::records::{NewClaim, Records, Seen, TakeOver, Write, Written};
use payonce_core::record::{ClaimId, Fence, Record, RecordKey};

use super::MemoryStore;

#[async_trait]
impl Records for MemoryStore {
    async fn claim(&self, rows: &[NewClaim]) -> Result<Vec<Seen>, StoreFault> {
        self.records.claim(rows).await
    }

    async fn take_over(&self, row: &TakeOver) -> Result<Option<Fence>, StoreFault> {
        self.records.take_over(row).await
    }

    async fn park_lapsed(&self, key: &RecordKey, seen_claim: ClaimId, seen_fence: Fence) -> Result<Written, StoreFault> {
        self.records.park_lapsed(key, seen_claim, seen_fence).await
    }

    async fn write(&self, rows: &[Write]) -> Result<Vec<Written>, StoreFault> {
        self.records.write(rows).await
    }

    async fn read(&self, keys: &[RecordKey]) -> Result<(Vec<Option<Record>>, Timestamp), StoreFault> {
        self.records.read(keys).await
    }

    async fn find(&self, tenant: &TenantId, key: Option<&str>, limit: usize) -> Result<Vec<Record>, StoreFault> {
        self.records.find(tenant, key, limit).await
    }

    async fn remove_stuck(&self, key: &RecordKey) -> Result<Written, StoreFault> {
        self.records.remove_stuck(key).await
    }

    async fn sweep_records(&self, limit: usize) -> Result<usize, StoreFault> {
        self.records.sweep_records(limit).await
    }
}
