//! `payonce sweep`: removes expired answers and notifications past their retention, as the worker does.

use std::time::Duration;

use payonce_flows::sweep::Report;
use serde_json::json;

use crate::args::work::Sweep;
use crate::ending::Ending;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::progress::Progress;
use crate::site::Site;

/// Between two rounds.
const PAUSE: Duration = Duration::from_secs(60);

pub(crate) async fn run(args: Sweep) -> Result<Exit, Fault> {
    let site = Site::open(&args.place).await?;
    let retention = site.app.config().inbox.retention;
    let progress = Progress::new();
    let mut all = Report::default();
    let mut ending = Ending::listen(false)?;
    loop {
        let round = site.app.ledger().sweep_once(retention).await?;
        all.records += round.records;
        all.inbox += round.inbox;
        progress.say(&format!("{} answers and {} notifications removed", all.records, all.inbox));
        if args.once {
            break;
        }
        tokio::select! {
            () = ending.told() => break,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
    progress.clear();
    let text = format!("{} answers and {} notifications removed", all.records, all.inbox);
    Printer::new(args.form.json).either(&text, &json!({ "records": all.records, "inbox": all.inbox }))?;
    Ok(Exit::Done)
}
