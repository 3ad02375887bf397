//! `payonce apikey list`

use payonce_core::ports::directory::ApiKey;
use serde_json::{Value, json};

use crate::args::access::ApikeyList;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::site::{Site, tenant_named};

pub(crate) async fn run(args: ApikeyList) -> Result<Exit, Fault> {
    let tenant = args.tenant.as_deref().map(tenant_named).transpose()?;
    let site = Site::open(&args.place).await?;
    let keys = site.app.store().api_keys(tenant.as_ref()).await?;
    Printer::new(args.form.json).list(&["ID", "TENANT", "LABEL", "CREATED", "REVOKED"], &keys, document, row)?;
    Ok(Exit::Done)
}

fn document(key: &ApiKey) -> Value {
    json!({
        "id": key.id, "tenant": key.tenant, "label": key.label,
        "created_at": key.created_at.to_string(), "revoked_at": key.revoked_at.map(|at| at.to_string()),
    })
}

fn row(key: &ApiKey) -> Vec<String> {
    let revoked = key.revoked_at.map_or_else(|| "-".to_owned(), |at| at.to_string());
    vec![key.id.to_string(), key.tenant.to_string(), key.label.clone(), key.created_at.to_string(), revoked]
}
