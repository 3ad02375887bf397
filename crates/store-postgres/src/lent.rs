//! A schema of one's own in a database that holds something else: for demonstrations, which leave nothing behind.
//!
//! In: a name. Out: an empty schema, or its end with everything in it. It never touches a schema whose name does not begin with `payonce_demo_`.

use payonce_core::ports::StoreFault;

use crate::PostgresStore;
use crate::fault::Effect;

/// What the name of a lent schema begins with.
const PREFIX: &str = "payonce_demo_";

impl PostgresStore {
    /// Makes the schema. Reach it with `options=-c search_path=NAME` in the address.
    pub async fn lend_schema(&self, name: &str) -> Result<(), StoreFault> {
        self.on_schema("CREATE SCHEMA", name, "").await
    }

    /// Drops the schema and all that is in it.
    pub async fn drop_lent_schema(&self, name: &str) -> Result<(), StoreFault> {
        self.on_schema("DROP SCHEMA", name, " CASCADE").await
    }

    async fn on_schema(&self, verb: &str, name: &str, end: &str) -> Result<(), StoreFault> {
        // An identifier cannot be a parameter: it is checked instead.
        let rest = name.strip_prefix(PREFIX).unwrap_or_default();
        if rest.is_empty() || name.len() > 60 || !rest.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) {
            return Err(StoreFault::Refused(format!("{name:?} is no name of a lent schema")));
        }
        let session = self.session().await?;
        let statement = format!("{verb} {name}{end}");
        let work = async { session.run(&statement).await.map_err(|failed| session.fault(failed, Effect::Commits)) };
        session.within(Effect::Commits, work).await
    }
}
