//! The schema: numbered files, applied in order, once.
//!
//! In: a connected store. Out: what was applied, or why the schema does not fit this program. Each file is one transaction under the lock of one row,
//! so nodes may start at the same time. It never applies a file whose text has changed since, and never runs on a schema newer than the program.

use std::time::Duration;

use payonce_core::ports::StoreFault;
use payonce_core::secret::sha256;
use tokio_postgres::error::SqlState;

use crate::PostgresStore;
use crate::fault::{Effect, damaged, repeating};
use crate::session::{Failed, Session};
use crate::statement as sql;

/// Number, name, text. In order, from 1, without gaps.
const MIGRATIONS: &[(i64, &str, &str)] = &[(1, "0001_first", include_str!("../migrations/0001_first.sql"))];

/// A migration may rewrite a table, or wait for another node's; it has more time than other work.
const TIMEOUT: Duration = Duration::from_secs(900);

/// Applies what is missing. Returns the names of what was applied.
pub(crate) async fn migrate(store: &PostgresStore) -> Result<Vec<String>, StoreFault> {
    for make in [&sql::SCHEMA_MAKE_APPLIED, &sql::SCHEMA_MAKE_LOCK, &sql::SCHEMA_FILL_LOCK] {
        repeating(|| make_once(store, make)).await?;
    }
    let mut names = Vec::new();
    while let Some(name) = repeating(|| next(store)).await? {
        tracing::info!(%name, "migrated");
        names.push(name);
    }
    Ok(names)
}

/// Makes one of the runner's own tables. Two nodes that make it at once collide in the catalogue in spite of IF NOT EXISTS; the second try finds it there.
async fn make_once(store: &PostgresStore, make: &'static sql::Statement) -> Result<(), StoreFault> {
    let session = store.session_for(TIMEOUT).await?;
    let work = async {
        match session.run(make.text).await {
            Ok(()) => Ok(()),
            Err(Failed::Sql(error)) if collided(&error) => Err(StoreFault::Retry(error.to_string())),
            Err(failed) => Err(session.fault(failed, Effect::Commits)),
        }
    };
    session.within(Effect::Commits, work).await
}

fn collided(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        *code == SqlState::UNIQUE_VIOLATION || *code == SqlState::DUPLICATE_TABLE || *code == SqlState::DUPLICATE_OBJECT
    })
}

/// Applies the first that is missing. `None` where none is.
async fn next(store: &PostgresStore) -> Result<Option<String>, StoreFault> {
    let session = store.session_for(TIMEOUT).await?;
    let work = async {
        session.begin().await.map_err(|failed| session.fault(failed, Effect::None))?;
        match next_in_transaction(&session, store.now()).await {
            Ok(None) => {
                session.roll_back().await;
                Ok(None)
            }
            Ok(Some(name)) => session.commit().await.map(|()| Some(name)),
            Err(failed) => {
                let fault = session.fault(failed, Effect::None);
                session.roll_back().await;
                Err(fault)
            }
        }
    };
    session.within(Effect::None, work).await
}

async fn next_in_transaction(session: &Session, now: Option<i64>) -> Result<Option<String>, Failed> {
    session.rows(&sql::SCHEMA_LOCK, &[]).await?;
    let count = verified(session).await?;
    let Some((version, name, text)) = MIGRATIONS.get(count) else { return Ok(None) };
    session.run(text).await?;
    session.count(&sql::SCHEMA_NOTE_APPLIED, &[version, name, &checksum(text), &now]).await?;
    Ok(Some((*name).to_owned()))
}

/// Makes sure that the schema is the one that this program was built with.
pub(crate) async fn check(store: &PostgresStore) -> Result<(), StoreFault> {
    let session = store.session().await?;
    let work = async {
        match verified(&session).await {
            Ok(count) if count < MIGRATIONS.len() => Err(older()),
            Ok(_) => Ok(()),
            Err(Failed::Sql(error)) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Err(older()),
            Err(failed) => Err(session.fault(failed, Effect::None)),
        }
    };
    session.within(Effect::None, work).await
}

fn older() -> StoreFault {
    StoreFault::Refused("the database's schema is older than this program: run `payonce migrate`".to_owned())
}

/// How many migrations were applied, each of which must be one of ours, unchanged.
async fn verified(session: &Session) -> Result<usize, Failed> {
    let applied = session.rows(&sql::SCHEMA_APPLIED, &[]).await?;
    for (index, row) in applied.iter().enumerate() {
        let (version, found): (i64, String) = match (row.try_get(0), row.try_get(1)) {
            (Ok(version), Ok(found)) => (version, found),
            (Err(_), _) | (_, Err(_)) => return Err(damaged("migration").into()),
        };
        let refused = |why: &str| Err(Failed::Fault(StoreFault::Refused(format!("migration {version} of the database {why}"))));
        match MIGRATIONS.get(index) {
            None => return refused("is newer than this program: run a newer one"),
            Some((ours, _, _)) if *ours != version => return refused("is not where this program expects it"),
            Some((_, _, text)) if checksum(text) != found => return refused("was applied from another text than this program has"),
            Some(_) => {}
        }
    }
    Ok(applied.len())
}

fn checksum(text: &str) -> String {
    let digest = sha256(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
