//! Renewing and ending claims, in batches.
//!
//! In: the guard's writes. Out: whether each met its row. One transaction; where the batch is of one kind it is one statement that commits by itself.
//! Rows are guarded by claim and fence, so two processes never write the same row, and key order keeps the rest from waiting in a circle.

use std::collections::HashSet;

use futures_util::future::{BoxFuture, join_all};
use payonce_core::ports::StoreFault;
use payonce_core::ports::records::{Verb, Write, Written};
use payonce_core::record::RecordState;
use tokio_postgres::Row;
use uuid::Uuid;

use super::{Keys, millis};
use crate::PostgresStore;
use crate::fault::Effect;
use crate::rows::{at, state_number};
use crate::session::{Failed, Sends, Session};
use crate::statement as sql;

pub(super) async fn write_once(store: &PostgresStore, rows: &[Write]) -> Result<Vec<Written>, StoreFault> {
    let steps = steps(rows);
    let now = store.now();
    let session = store.session().await?;
    let work = async {
        let met = if let [only] = steps.as_slice() {
            let applied = only.apply(&session, now).await.map_err(|failed| session.fault(failed, Effect::Commits))?;
            vec![(only, applied)]
        } else {
            in_transaction(&session, &steps, now).await?
        };
        let mut written = vec![Written::Refused; rows.len()];
        for (step, applied) in met {
            for row in &applied {
                // Rows are numbered from 1 within their step.
                let n = usize::try_from(at::<i64>(row, 0)?).unwrap_or(0);
                let place = n.checked_sub(1).and_then(|n| step.places.get(n));
                if let Some(slot) = place.and_then(|place| written.get_mut(*place)) {
                    *slot = Written::Applied;
                }
            }
        }
        Ok(written)
    };
    session.within(Effect::Commits, work).await
}

/// One write on its own, in whatever transaction there is.
pub(crate) async fn write_one(on: &impl Sends, row: &Write, now: Option<i64>) -> Result<Written, Failed> {
    let step = Step { releases: matches!(row.verb, Verb::Release), rows: vec![row], places: vec![0] };
    let met = step.apply(on, now).await?;
    Ok(if met.is_empty() { Written::Refused } else { Written::Applied })
}

/// BEGIN, the steps and COMMIT, all under way at once: one round trip. If one fails, the rest is refused and the COMMIT rolls back.
async fn in_transaction<'a>(
    session: &Session,
    steps: &'a [Step<'a>],
    now: Option<i64>,
) -> Result<Vec<(&'a Step<'a>, Vec<Row>)>, StoreFault> {
    let begin: BoxFuture<'_, Result<Vec<Row>, Failed>> = Box::pin(async { session.begin().await.map(|()| Vec::new()) });
    let applied = steps.iter().map(|step| -> BoxFuture<'_, Result<Vec<Row>, Failed>> { Box::pin(step.apply(session, now)) });
    let commit: BoxFuture<'_, Result<Vec<Row>, Failed>> = Box::pin(async { session.run("COMMIT").await.map(|()| Vec::new()) });
    let all = std::iter::once(begin).chain(applied).chain(std::iter::once(commit)).collect::<Vec<_>>();
    let done = join_all(all).await.into_iter().collect::<Result<Vec<_>, _>>();
    let done = done.map_err(|failed| session.fault(failed, Effect::Commits))?;
    Ok(steps.iter().zip(done.into_iter().skip(1)).collect())
}

/// Writes that one statement can do: of one kind, and no two on the same row.
struct Step<'a> {
    releases: bool,
    rows: Vec<&'a Write>,
    /// Where the rows stand in the batch.
    places: Vec<usize>,
}

/// Cuts a batch into steps. Writes to the same row stay in their order, in different steps.
fn steps(rows: &[Write]) -> Vec<Step<'_>> {
    let mut waves: Vec<(HashSet<&payonce_core::record::RecordKey>, [Step<'_>; 2])> = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        // Behind every wave that names the row.
        let behind = waves.iter().rposition(|(keys, _)| keys.contains(&row.key)).map_or(0, |last| last + 1);
        if behind == waves.len() {
            waves.push((HashSet::new(), [false, true].map(|releases| Step { releases, rows: Vec::new(), places: Vec::new() })));
        }
        let Some((keys, [finishes, releases])) = waves.get_mut(behind) else { continue };
        keys.insert(&row.key);
        let step = if matches!(row.verb, Verb::Release) { releases } else { finishes };
        step.rows.push(row);
        step.places.push(place);
    }
    waves.into_iter().flat_map(|(_, steps)| steps).filter(|step| !step.rows.is_empty()).collect()
}

impl Step<'_> {
    async fn apply(&self, on: &impl Sends, now: Option<i64>) -> Result<Vec<Row>, Failed> {
        let keys = Keys::of(self.rows.iter().map(|row| &row.key));
        let claims: Vec<Uuid> = self.rows.iter().map(|row| row.claim_id.0).collect();
        let fences: Vec<i64> = self.rows.iter().map(|row| row.fence.0).collect();
        if self.releases {
            return on.rows(&sql::RECORDS_RELEASE, &[&keys.tenants, &keys.keys, &keys.scopes, &claims, &fences]).await;
        }
        let (mut states, mut leases, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        for row in &self.rows {
            let (state, lease, answer) = match &row.verb {
                Verb::Renew(lease) => (RecordState::Running, millis(*lease), None),
                Verb::Keep(answer) => (RecordState::Answered, 0, Some(answer.as_bytes())),
                Verb::Park(answer) => (RecordState::Parked, 0, answer.as_ref().map(|answer| answer.as_bytes())),
                Verb::Release => continue,
            };
            states.push(state_number(state));
            leases.push(lease);
            answers.push(answer);
        }
        let columns: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
            &[&keys.tenants, &keys.keys, &keys.scopes, &claims, &fences, &states, &leases, &answers, &now];
        on.rows(&sql::RECORDS_FINISH, columns).await
    }
}
