//! `payonce refund …`

pub(crate) mod show;

use payonce_core::id::{RefundId, TenantId};
use payonce_core::payment::Payment;

use crate::args::shared::Whose;
use crate::exit::Fault;
use crate::site::Site;

/// The payment that a refund belongs to.
pub(crate) async fn find(site: &Site, whose: &Whose, id: &str) -> Result<(TenantId, Payment), Fault> {
    let missing = || Fault::no(format!("there is no refund {id}"));
    let parsed =
        RefundId::parse(id).ok_or_else(|| missing().hint("a refund's id begins with rfd_; `payonce payment show ID` lists them"))?;
    let store = site.app.store();
    for tenant in site.candidates(whose).await? {
        let Some(payment) = store.find_refund(&tenant, &parsed).await? else { continue };
        if let Some(payment) = store.load(&tenant, &payment).await? {
            return Ok((tenant, payment));
        }
    }
    Err(missing())
}
