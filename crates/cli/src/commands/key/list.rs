//! `payonce key list`

use crate::args::book::KeyList;
use crate::exit::{Exit, Fault};
use crate::site::Site;

pub(crate) async fn run(args: KeyList) -> Result<Exit, Fault> {
    let site = Site::open(&args.place).await?;
    let mut found = Vec::new();
    for tenant in site.candidates(&args.whose).await? {
        found.extend(site.app.store().find(&tenant, None, args.limit.rows()).await?);
    }
    found.sort_by_key(|record| std::cmp::Reverse(record.created_at));
    found.truncate(args.limit.rows());
    super::print(args.form.json, &found, site.app.clock().now())?;
    Ok(Exit::Done)
}
