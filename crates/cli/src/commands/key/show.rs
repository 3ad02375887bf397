//! `payonce key show KEY`

use crate::args::book::KeyShow;
use crate::exit::{Exit, Fault};
use crate::site::Site;

/// Scopes that one key may have been used in.
const SCOPES_MAX: usize = 100;

pub(crate) async fn run(args: KeyShow) -> Result<Exit, Fault> {
    let key = super::parse(&args.key)?;
    let site = Site::open(&args.place).await?;
    let mut found = Vec::new();
    for tenant in site.candidates(&args.whose).await? {
        found.extend(site.app.store().find(&tenant, Some(key.as_str()), SCOPES_MAX).await?);
    }
    if found.is_empty() {
        return Err(Fault::no(format!("nobody has used the key {}", key.as_str())).hint("kept answers expire after `guard.ttl`"));
    }
    super::print(args.form.json, &found, site.app.clock().now())?;
    Ok(Exit::Done)
}
