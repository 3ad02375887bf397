//! The schema: numbered files, applied in order, once.
//!
//! In: the writer's transaction. Out: what was applied, or why the schema does not fit this program. Nodes may do it at the same time: the
//! transaction locks the file. It never applies a file whose text has changed since, and never runs on a schema newer than the program.

use payonce_core::clock::Timestamp;
use payonce_core::ports::StoreFault;
use payonce_core::secret::sha256;
use rusqlite::{Connection, params};

use crate::fault::Fault;
use crate::statements as sql;

/// Number, name, text. In order, from 1, without gaps.
pub(crate) const MIGRATIONS: &[(i64, &str, &str)] = &[(1, "0001_first", include_str!("../migrations/0001_first.sql"))];

/// Applies what is missing. Returns the names of what was applied.
pub(crate) fn migrate(connection: &Connection, now: Timestamp) -> Result<Vec<String>, Fault> {
    for make in [sql::SCHEMA_MAKE_APPLIED, sql::SCHEMA_MAKE_LOCK, sql::SCHEMA_FILL_LOCK] {
        connection.execute(make, [])?;
    }
    connection.query_row(sql::SCHEMA_LOCK, [], |_| Ok(()))?;
    let count = verified(connection)?;
    let mut names = Vec::new();
    for (version, name, text) in MIGRATIONS.iter().skip(count) {
        connection.execute_batch(text)?;
        connection.execute(sql::SCHEMA_NOTE_APPLIED, params![version, name, checksum(text), now.0])?;
        names.push((*name).to_owned());
    }
    Ok(names)
}

/// Makes sure that the schema is the one that this program was built with.
pub(crate) fn check(connection: &Connection) -> Result<(), Fault> {
    let made: bool =
        connection.query_row("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'payonce_migrations')", [], |row| row.get(0))?;
    let count = if made { verified(connection)? } else { 0 };
    if count < MIGRATIONS.len() {
        return Err(Fault(StoreFault::Refused("the database's schema is older than this program: run `payonce migrate`".to_owned())));
    }
    Ok(())
}

/// How many migrations were applied, each of which must be one of ours, unchanged.
fn verified(connection: &Connection) -> Result<usize, Fault> {
    let mut statement = connection.prepare_cached(sql::SCHEMA_APPLIED)?;
    let applied: Vec<(i64, String)> = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    for (index, (version, found)) in applied.iter().enumerate() {
        let refused = |why: &str| Err(Fault(StoreFault::Refused(format!("migration {version} of the database {why}"))));
        match MIGRATIONS.get(index) {
            None => return refused("is newer than this program: run a newer one"),
            Some((ours, _, _)) if ours != version => return refused("is not where this program expects it"),
            Some((_, _, text)) if &checksum(text) != found => return refused("was applied from another text than this program has"),
            Some(_) => {}
        }
    }
    Ok(applied.len())
}

fn checksum(text: &str) -> String {
    let digest = sha256(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
