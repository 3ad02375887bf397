//! The database that the stories play on. A PostgreSQL database lends us a schema of our own, so that the demo can be played on one that holds
//! something else, again and again; it is dropped after a run that went well.

use std::path::Path;

use crate::exit::Fault;

/// A place to play.
#[derive(Debug)]
pub(super) struct Ground {
    /// The address for the service.
    pub(super) url: String,
    /// Where the service's key lies; beside a file that was named, its own.
    pub(super) key_file: Option<String>,
    lent: Option<Lent>,
}

#[derive(Debug)]
struct Lent {
    database: String,
    schema: String,
}

impl Ground {
    /// Makes ready what `--database` names; a temporary file without it.
    pub(super) async fn lay(database: Option<&str>, dir: &Path, run: &str) -> Result<Self, Fault> {
        let own_key = Some(dir.join("demo.key").display().to_string());
        match database {
            None => Ok(Self { url: format!("sqlite://{}", dir.join("demo.db").display()), key_file: own_key, lent: None }),
            Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                let lent = Lent { database: url.to_owned(), schema: format!("payonce_demo_{run}") };
                let url = payonce_server::lend_schema(&lent.database, &lent.schema).await?;
                Ok(Self { url, key_file: own_key, lent: Some(lent) })
            }
            Some(url) => Ok(Self { url: absolute(url)?, key_file: None, lent: None }),
        }
    }

    /// What is left behind, in words, if it is not cleared.
    pub(super) fn kept(&self) -> Option<String> {
        self.lent.as_ref().map(|lent| format!("the schema {}", lent.schema))
    }

    /// Takes away what was made.
    pub(super) async fn clear(self) -> Result<(), Fault> {
        match &self.lent {
            None => Ok(()),
            Some(lent) => Ok(payonce_server::drop_lent_schema(&lent.database, &lent.schema).await?),
        }
    }
}

/// The service runs in a folder of its own, so a relative path has to be said in full.
fn absolute(url: &str) -> Result<String, Fault> {
    let Some(file) = url.strip_prefix("sqlite://").filter(|file| Path::new(file).is_relative()) else { return Ok(url.to_owned()) };
    let full = std::path::absolute(file).map_err(|why| Fault::new(format!("{file}: {why}")))?;
    Ok(format!("sqlite://{}", full.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_file_is_named_in_full_and_others_stay() {
        let here = std::env::current_dir().expect("a folder");
        assert_eq!(absolute("sqlite://a.db").ok(), Some(format!("sqlite://{}", here.join("a.db").display())));
        assert_eq!(absolute("sqlite:///x/a.db").ok().as_deref(), Some("sqlite:///x/a.db"));
        assert_eq!(absolute("mysql://x").ok().as_deref(), Some("mysql://x"));
    }
}
