//! `payonce reconcile`: asks the channels about everything that is due, as the worker does.

use std::time::Duration;

use payonce_flows::reconcile::Report;
use serde_json::json;

use crate::args::work::Reconcile;
use crate::ending::Ending;
use crate::exit::{Exit, Fault};
use crate::printer::Printer;
use crate::progress::Progress;
use crate::site::Site;

/// Between two rounds that found nothing.
const PAUSE: Duration = Duration::from_secs(5);

pub(crate) async fn run(args: Reconcile) -> Result<Exit, Fault> {
    let site = Site::open(&args.place).await?;
    let progress = Progress::new();
    let mut all = Report::default();
    let mut ending = Ending::listen(false)?;
    loop {
        let round = site.app.ledger().reconcile_once().await?;
        all.looked += round.looked;
        all.moved += round.moved;
        all.failed += round.failed;
        progress.say(&format!("{} looked at, {} moved", all.looked, all.moved));
        if round.is_full() {
            continue;
        }
        if args.once {
            break;
        }
        tokio::select! {
            () = ending.told() => break,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
    progress.clear();
    let text = format!("{} looked at, {} moved, {} could not be looked at", all.looked, all.moved, all.failed);
    Printer::new(args.form.json).either(&text, &json!({ "looked": all.looked, "moved": all.moved, "failed": all.failed }))?;
    Ok(if all.failed == 0 { Exit::Done } else { Exit::No })
}
