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
        let keys = site.app.store().api_keys(None).await?;
        if let Some(at) = keys.into_iter().find(|key| key.id == id).and_then(|key| key.revoked_at) {
            return Err(Fault::no(format!("{id} is revoked already, since {at}")));
        }
        return Err(Fault::no(format!("there is no API key {id} that could be revoked")).hint("see `payonce apikey list`"));
    }
    Printer::new(args.form.json).either(&format!("{id} is revoked"), &json!({ "id": id, "revoked_at": now.to_string() }))?;
    Ok(Exit::Done)
}
