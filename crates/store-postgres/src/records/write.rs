//! Renewing and ending claims, in batches.
//!
//! In: the guard's writes. Out: whether each met its row. One transaction; where the batch is of one kind it is one statement that commits by itself.
//! Rows are guarded by claim and fence, so two processes never write the same row, and key order keeps the rest from waiting in a circle.

use std::collections::HashSet;

use futures_util::future::{BoxFuture, join_all};
use payonce_core::ports::StoreFault;
use payonce_core::ports::records::{Verb, Write, Written};
use payonce_core::record::RecordState;
use uuid::Uuid;

use super::{Keys, millis};
use crate::PostgresStore;
use crate::fault::{Effect, damaged};
use crate::rows::{at, state_number};
use crate::session::{Failed, Params, Sends, Session};
use crate::statement as sql;

pub(super) async fn write_once(store: &PostgresStore, rows: &[Write]) -> Result<Vec<Written>, StoreFault> {
    let steps = steps(rows);
    let now = store.now();
    let session = store.session().await?;
    let work = async {
        session.ready(&[&sql::RECORDS_FINISH, &sql::RECORDS_RELEASE]).await?;
        let met = match steps.as_slice() {
            [only] => vec![only.apply(&session, now).await.map_err(|failed| session.fault(failed, Effect::Commits))?],
            several => in_transaction(&session, several, now).await?,
        };
        let mut written = vec![Written::Refused; rows.len()];
        for place in met.into_iter().flatten() {
            if let Some(slot) = written.get_mut(place) {
                *slot = Written::Applied;
            }
        }
        Ok(written)
    };
    session.within(Effect::Commits, work).await
}

/// BEGIN, the steps and COMMIT, all under way at once: one round trip. If one fails, the rest is refused and the COMMIT rolls back.
async fn in_transaction(session: &Session, steps: &[Step<'_>], now: Option<i64>) -> Result<Vec<Vec<usize>>, StoreFault> {
    type Sent<'a> = BoxFuture<'a, Result<Vec<usize>, Failed>>;
    let begin: Sent<'_> = Box::pin(async { session.begin().await.map(|()| Vec::new()) });
    let applied = steps.iter().map(|step| -> Sent<'_> { Box::pin(step.apply(session, now)) });
    let commit: Sent<'_> = Box::pin(async { session.run("COMMIT").await.map(|()| Vec::new()) });
    let all: Vec<Sent<'_>> = std::iter::once(begin).chain(applied).chain(std::iter::once(commit)).collect();
    let done: Result<Vec<_>, Failed> = join_all(all).await.into_iter().collect();
    done.map_err(|failed| session.fault(failed, Effect::Commits))
}

/// One write on its own, in whatever transaction there is.
pub(crate) async fn write_one(on: &impl Sends, row: &Write, now: Option<i64>) -> Result<Written, Failed> {
    let (tenant, key, scope, claim, fence) =
        (row.key.tenant.as_str(), row.key.key.as_str(), row.key.scope.as_str(), row.claim_id.0, row.fence.0);
    let count = match Finish::of(&row.verb) {
        None => on.count(&sql::RECORDS_RELEASE, &[&tenant, &key, &scope, &claim, &fence]).await?,
        Some(Finish { state, lease, answer }) => {
            let columns: Params<'_> = &[&tenant, &key, &scope, &claim, &fence, &state, &now, &lease, &answer];
            on.count(&sql::RECORDS_FINISH, columns).await?
        }
    };
    Ok(super::written(count))
}

/// What a write that is no release makes of its row.
struct Finish<'a> {
    state: i16,
    lease: i64,
    answer: Option<&'a [u8]>,
}

impl<'a> Finish<'a> {
    fn of(verb: &'a Verb) -> Option<Self> {
        let (state, lease, answer) = match verb {
            Verb::Renew(lease) => (RecordState::Running, millis(*lease), None),
            Verb::Keep(answer) => (RecordState::Answered, 0, Some(answer.as_bytes())),
            Verb::Park(answer) => (RecordState::Parked, 0, answer.as_ref().map(|answer| answer.as_bytes())),
            Verb::Release => return None,
        };
        Some(Self { state: state_number(state), lease, answer })
    }
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
    /// The places of those that met their row.
    async fn apply(&self, on: &impl Sends, now: Option<i64>) -> Result<Vec<usize>, Failed> {
        if let [only] = self.rows.as_slice() {
            return Ok(match write_one(on, only, now).await? {
                Written::Applied => self.places.clone(),
                Written::Refused => Vec::new(),
            });
        }
        let keys = Keys::of(self.rows.iter().map(|row| &row.key));
        let claims: Vec<Uuid> = self.rows.iter().map(|row| row.claim_id.0).collect();
        let fences: Vec<i64> = self.rows.iter().map(|row| row.fence.0).collect();
        let met = if self.releases {
            on.rows(&sql::BATCH_RELEASE, &[&keys.tenants, &keys.keys, &keys.scopes, &claims, &fences]).await?
        } else {
            let finishes: Vec<Finish<'_>> = self.rows.iter().filter_map(|row| Finish::of(&row.verb)).collect();
            let states: Vec<i16> = finishes.iter().map(|one| one.state).collect();
            let leases: Vec<i64> = finishes.iter().map(|one| one.lease).collect();
            let answers: Vec<Option<&[u8]>> = finishes.iter().map(|one| one.answer).collect();
            let columns: Params<'_> = &[&keys.tenants, &keys.keys, &keys.scopes, &claims, &fences, &states, &leases, &answers, &now];
            on.rows(&sql::BATCH_FINISH, columns).await?
        };
        let places = met.iter().map(|row| {
            // Rows are numbered from 1 within their step.
            let n = usize::try_from(at::<i64>(row, 0)?).unwrap_or(0);
            n.checked_sub(1).and_then(|n| self.places.get(n)).copied().ok_or_else(|| damaged("record"))
        });
        Ok(places.collect::<Result<_, StoreFault>>()?)
    }
}
