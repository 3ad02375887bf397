//! `payonce apikey create`: the key is shown this once; only its hash is stored.

use serde_json::json;

use crate::args::access::ApikeyCreate;
use crate::exit::{Exit, Fault};
use crate::printer::{Printer, talk};
use crate::site::{Site, tenant_named};

pub(crate) async fn run(args: ApikeyCreate) -> Result<Exit, Fault> {
    let tenant = tenant_named(&args.tenant)?;
    let site = Site::open_migrated(&args.place).await?;
    let (row, secret) = site.app.create_api_key(&tenant, &args.label).await?;
    let json =
        json!({ "id": row.id, "tenant": row.tenant, "label": row.label, "key": secret.expose(), "created_at": row.created_at.to_string() });
    Printer::new(args.form.json).either(secret.expose(), &json)?;
    if !args.form.json {
        talk(format!("{} for {}; it is not shown again", row.id, row.tenant));
    }
    Ok(Exit::Done)
}
