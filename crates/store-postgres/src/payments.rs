//! Payments: loading, finding, applying changes, and handing out what is due.
//!
//! In: calls of the port. Out: whole aggregates, each from one statement and so from one snapshot of the primary.

use std::time::Duration;

use async_trait::async_trait;
use payonce_core::channel::AccountName;
use payonce_core::clock::Timestamp;
use payonce_core::id::{MerchantRef, PaymentId, RefundId, TenantId};
use payonce_core::payment::Payment;
use payonce_core::payment::change::{AuditEntry, Change};
use payonce_core::ports::StoreFault;
use payonce_core::ports::payments::{Applied, Filter, Payments};
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::apply::apply_once;
use crate::fault::repeating;
use crate::rows::{self, Aggregate, at, bound, doc};
use crate::statement as sql;

#[async_trait]
impl Payments for PostgresStore {
    async fn load(&self, tenant: &TenantId, id: &PaymentId) -> Result<Option<Payment>, StoreFault> {
        aggregate(&self.rows(&sql::PAYMENTS_LOAD, &[&tenant.as_str(), &id.as_str()]).await?)
    }

    async fn load_order(&self, tenant: &TenantId, order: &MerchantRef) -> Result<Option<Payment>, StoreFault> {
        aggregate(&self.rows(&sql::PAYMENTS_LOAD_ORDER, &[&tenant.as_str(), &order.as_str()]).await?)
    }

    async fn find_attempt(&self, tenant: &TenantId, account: &AccountName, channel_ref: &str) -> Result<Option<PaymentId>, StoreFault> {
        if channel_ref.contains('\0') {
            // No reference of ours has one, and PostgreSQL's text cannot hold it.
            return Ok(None);
        }
        owner(&self.rows(&sql::PAYMENTS_FIND_ATTEMPT, &[&tenant.as_str(), &account.as_str(), &channel_ref]).await?)
    }

    async fn find_refund(&self, tenant: &TenantId, id: &RefundId) -> Result<Option<PaymentId>, StoreFault> {
        owner(&self.rows(&sql::PAYMENTS_FIND_REFUND, &[&tenant.as_str(), &id.as_str()]).await?)
    }

    async fn list(&self, tenant: &TenantId, filter: &Filter) -> Result<Vec<Payment>, StoreFault> {
        let order = filter.order_id.as_ref().map(|order| order.as_str());
        let status = filter.status.map(|status| status.as_str());
        let channel = filter.channel.as_ref().map(|channel| channel.as_str());
        let after = filter.after.as_ref().map(|after| after.as_str());
        let limit = bound(filter.limit.clamp(1, 100));
        let found = self.rows(&sql::PAYMENTS_LIST, &[&tenant.as_str(), &order, &status, &channel, &after, &limit]).await?;
        let mut payments = Vec::new();
        let mut current = Aggregate::default();
        for row in &found {
            let kind = at(row, 1)?;
            if kind == 0 {
                payments.extend(std::mem::take(&mut current).finish());
            }
            current.take(kind, row, 3)?;
        }
        payments.extend(current.finish());
        Ok(payments)
    }

    async fn apply(&self, change: &Change) -> Result<Applied, StoreFault> {
        repeating(|| apply_once(self, change)).await
    }

    async fn take_due(&self, now: Timestamp, hold: Duration, limit: usize) -> Result<Vec<(TenantId, PaymentId)>, StoreFault> {
        let taken = self.change(&sql::PAYMENTS_TAKE_DUE, &[&now.0, &now.plus(hold).0, &bound(limit)]).await?;
        let mut taken: Vec<(i64, TenantId, PaymentId)> = taken
            .iter()
            .map(|row| Ok((at(row, 2)?, rows::tenant(at(row, 0)?)?, rows::payment_id(at(row, 1)?)?)))
            .collect::<Result<_, StoreFault>>()?;
        // RETURNING gives no order.
        taken.sort();
        Ok(taken.into_iter().map(|(_, tenant, id)| (tenant, id)).collect())
    }

    async fn let_go(&self, tenant: &TenantId, id: &PaymentId) -> Result<(), StoreFault> {
        self.count(&sql::PAYMENTS_LET_GO, &[&tenant.as_str(), &id.as_str()]).await.map(drop)
    }

    async fn timeline(&self, tenant: &TenantId, id: &PaymentId) -> Result<Vec<AuditEntry>, StoreFault> {
        let found = self.rows(&sql::PAYMENTS_TIMELINE, &[&tenant.as_str(), &id.as_str()]).await?;
        found.iter().map(|row| doc(row, 0)).collect()
    }
}

fn aggregate(found: &[Row]) -> Result<Option<Payment>, StoreFault> {
    let mut aggregate = Aggregate::default();
    for row in found {
        aggregate.take(at(row, 0)?, row, 2)?;
    }
    Ok(aggregate.finish())
}

fn owner(found: &[Row]) -> Result<Option<PaymentId>, StoreFault> {
    found.first().map(|row| rows::payment_id(at(row, 0)?)).transpose()
}
