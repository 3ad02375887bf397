//! `payonce apikey revoke ID`

use payonce_core::id::ApiKeyId;
use serde_json::json;

use crate::args::access::ApikeyRevoke;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::site::Site;

pub(crate) async fn run(args: ApikeyRevoke) -> Result<Exit, Fault> {
    let Some(id) = ApiKeyId::parse(&args.id) else {
        return Err(
            Fault::no(format!("there is no API key {}", args.id)).hint("give the handle (`key_…`) that `payonce apikey list` shows")
        );
    };
    let site = Site::open(&args.place).await?;
    let now = site.app.clock().now();
    if !site.app.store().revoke_api_key(&id, now).await? {
        return Err(Fault::no(format!("there is no API key {id} that could be revoked")).hint("see `payonce apikey list`"));
    }
    Printer::new(args.form.json).either(&format!("{id} is revoked"), &json!({ "id": id, "revoked_at": now.to_string() }))?;
    Ok(Exit::Done)
}
