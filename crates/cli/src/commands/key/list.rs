//! `payonce key list`


use crate::args::book::KeyList;
use crate::exit::{Exit, Fault};
use crate::site::Site;

pub(crate) async fn run(args: KeyList) -> Result<Exit, Fault> {
    let site = Site::open(&args.place).await?;
    let tenant = site.tenant(&args.whose).await?;
    let found = site.app.store().find(&tenant, None, args.limit.rows()).await?;
    super::print(args.form.json, &found, site.app.clock().now())?;
    Ok(Exit::Done)
}
