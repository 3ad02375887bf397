//! Payments: loading, finding, applying changes, and handing out what is due.
//!
//! In: calls of the port. Out: whole aggregates, each from one statement and so from one snapshot.

use std::time::Duration;

use async_trait::async_trait;
use payonce_core::channel::AccountName;
use payonce_core::clock::Timestamp;
use payonce_core::id::{MerchantRef, PaymentId, RefundId, TenantId};
use payonce_core::payment::Payment;
use payonce_core::payment::change::{AuditEntry, Change};
use payonce_core::ports::StoreFault;
use payonce_core::ports::payments::{Applied, Filter, Payments};
use rusqlite::{Connection, OptionalExtension, Params, params};

use crate::SqliteStore;
use crate::fault::Fault;
use crate::records::bound;
use crate::rows::{self, Aggregate};
use crate::statements as sql;

#[async_trait]
impl Payments for SqliteStore {
    async fn load(&self, tenant: &TenantId, id: &PaymentId) -> Result<Option<Payment>, StoreFault> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.read(move |connection| aggregate(connection, sql::PAYMENTS_LOAD, [tenant.as_str(), id.as_str()])).await
    }

    async fn load_order(&self, tenant: &TenantId, order: &MerchantRef) -> Result<Option<Payment>, StoreFault> {
        let (tenant, order) = (tenant.clone(), order.clone());
        self.read(move |connection| aggregate(connection, sql::PAYMENTS_LOAD_ORDER, [tenant.as_str(), order.as_str()])).await
    }

    async fn find_attempt(&self, tenant: &TenantId, account: &AccountName, channel_ref: &str) -> Result<Option<PaymentId>, StoreFault> {
        let (tenant, account, channel_ref) = (tenant.clone(), account.clone(), channel_ref.to_owned());
        self.read(move |connection| owner(connection, sql::PAYMENTS_FIND_ATTEMPT, [tenant.as_str(), account.as_str(), &channel_ref])).await
    }

    async fn find_refund(&self, tenant: &TenantId, id: &RefundId) -> Result<Option<PaymentId>, StoreFault> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.read(move |connection| owner(connection, sql::PAYMENTS_FIND_REFUND, [tenant.as_str(), id.as_str()])).await
    }

    async fn list(&self, tenant: &TenantId, filter: &Filter) -> Result<Vec<Payment>, StoreFault> {
        let (tenant, filter) = (tenant.clone(), filter.clone());
        self.read(move |connection| page(connection, &tenant, &filter)).await
    }

    async fn apply(&self, change: &Change) -> Result<Applied, StoreFault> {
        let change = change.clone();
        self.write(move |connection| crate::apply::apply(connection, &change)).await
    }

    async fn take_due(&self, now: Timestamp, hold: Duration, limit: usize) -> Result<Vec<(TenantId, PaymentId)>, StoreFault> {
        self.write(move |connection| {
            let mut statement = connection.prepare_cached(sql::PAYMENTS_TAKE_DUE)?;
            let taken = statement.query_map(params![now.0, now.plus(hold).0, bound(limit)], |row| {
                Ok((row.get::<_, i64>(2)?, row.get::<_, String>(0)?, row.get::<_, String>(1)?))
            })?;
            let mut taken = taken.collect::<Result<Vec<_>, _>>()?;
            // RETURNING gives no order.
            taken.sort_unstable();
            let parsed: Result<Vec<_>, Fault> = taken.iter().map(|(_, t, id)| Ok((rows::tenant(t)?, rows::payment_id(id)?))).collect();
            Ok(parsed?)
        })
        .await
    }

    async fn let_go(&self, tenant: &TenantId, id: &PaymentId) -> Result<(), StoreFault> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.write(move |connection| {
            connection.prepare_cached(sql::PAYMENTS_LET_GO)?.execute([tenant.as_str(), id.as_str()])?;
            Ok(())
        })
        .await
    }

    async fn timeline(&self, tenant: &TenantId, id: &PaymentId) -> Result<Vec<AuditEntry>, StoreFault> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(sql::PAYMENTS_TIMELINE)?;
            let entries = statement.query_and_then([tenant.as_str(), id.as_str()], |row| {
                Ok(serde_json::from_str(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?)
            })?;
            entries.collect()
        })
        .await
    }
}

fn aggregate(connection: &Connection, statement: &str, params: impl Params) -> Result<Option<Payment>, Fault> {
    let mut statement = connection.prepare_cached(statement)?;
    let mut found = statement.query(params)?;
    let mut aggregate = Aggregate::default();
    while let Some(row) = found.next()? {
        aggregate.take(row.get(0)?, row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?)?;
    }
    Ok(aggregate.finish())
}

fn owner(connection: &Connection, statement: &str, params: impl Params) -> Result<Option<PaymentId>, Fault> {
    let found: Option<String> = connection.prepare_cached(statement)?.query_row(params, |row| row.get(0)).optional()?;
    found.map(|id| rows::payment_id(&id)).transpose()
}

fn page(connection: &Connection, tenant: &TenantId, filter: &Filter) -> Result<Vec<Payment>, Fault> {
    let mut statement = connection.prepare_cached(sql::PAYMENTS_LIST)?;
    let mut found = statement.query(params![
        tenant.as_str(),
        filter.order_id.as_ref().map(|order| order.as_str()),
        filter.status.map(|status| status.as_str()),
        filter.channel.as_ref().map(|channel| channel.as_str()),
        filter.after.as_ref().map(|after| after.as_str()),
        bound(filter.limit.clamp(1, 100)),
    ])?;
    let mut payments = Vec::new();
    let mut current = Aggregate::default();
    while let Some(row) = found.next()? {
        let kind = row.get(1)?;
        if kind == 0 {
            payments.extend(std::mem::take(&mut current).finish());
        }
        current.take(kind, row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)?)?;
    }
    payments.extend(current.finish());
    Ok(payments)
}
