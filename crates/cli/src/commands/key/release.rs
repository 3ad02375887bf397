//! `payonce key release KEY`: frees a parked or lapsed key. The next request with it runs anew, so the operator has to know the outcome.

use payonce_core::ports::records::Written;
use payonce_core::record::Record;
use serde_json::json;

use crate::args::book::KeyRelease;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::site::Site;

/// Scopes that one key may have been used in.
const SCOPES_MAX: usize = 100;

pub(crate) async fn run(args: KeyRelease) -> Result<Exit, Fault> {
    let key = super::parse(&args.key)?;
    let site = Site::open(&args.place).await?;
    let mut found = Vec::new();
    for tenant in site.candidates(&args.whose).await? {
        found.extend(site.app.store().find(&tenant, Some(key.as_str()), SCOPES_MAX).await?);
    }
    found.retain(|record| args.scope.as_ref().is_none_or(|scope| &record.key.scope == scope));
    let record = only(&found, key.as_str())?;
    match site.app.store().remove_stuck(&record.key).await? {
        Written::Applied => {}
        Written::Refused => {
            return Err(Fault::no("the record is neither parked nor lapsed: it holds an answer, or its request is still running")
                .hint("see `payonce key show`; a kept answer expires by itself"));
        }
    }
    let json = json!({ "key": record.key.key.as_str(), "tenant": record.key.tenant, "scope": record.key.scope, "released": true });
    Printer::new(args.form.json).either(&format!("{} is free in {}", key.as_str(), record.key.scope), &json)?;
    Ok(Exit::Done)
}

fn only<'a>(found: &'a [Record], key: &str) -> Result<&'a Record, Fault> {
    match found {
        [record] => Ok(record),
        [] => Err(Fault::no(format!("nobody has used the key {key}")).hint("see `payonce key list`")),
        several => {
            let names: Vec<String> = several.iter().map(|record| format!("{} {:?}", record.key.tenant, record.key.scope)).collect();
            Err(Fault::new("the key was used in several places").hint(format!("choose with --tenant and --scope: {}", names.join("; "))))
        }
    }
}
