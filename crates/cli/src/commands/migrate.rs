//! `payonce migrate`: the schema up.

use payonce_server::open_store;
use serde_json::json;

use crate::args::work::Migrate;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::site;

pub(crate) async fn run(args: Migrate) -> Result<Exit, Fault> {
    let config = site::config(&args.place)?;
    let applied = open_store(config.database.as_str()).await?.migrate().await?;
    let text = match applied.as_slice() {
        [] => "the schema is up to date".to_owned(),
        names => format!("applied {}", names.join(", ")),
    };
    Printer::new(args.form.json).either(&text, &json!({ "applied": applied }))?;
    Ok(Exit::Done)
}
