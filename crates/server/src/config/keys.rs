//! The installation's keys: from the environment, or from a file that only its owner reads and that is made at first start.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use payonce_core::clock::{Entropy, random};
use payonce_core::secret::{KEY_BYTES, Keyring, Secret};

use super::ConfigFault;
use super::source::Source;

/// Where the keys are.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// Given: 64 hex digits each, separated by commas or white space. The first seals, all open.
    Given(Secret),
    /// In this file, which is made if it is not there.
    File(PathBuf),
    /// Drawn anew at each start, for a database that lives in memory.
    Fleeting,
}

impl KeySource {
    pub(super) fn read(source: &mut Source<'_>, database: &str) -> Result<Self, ConfigFault> {
        let file = source.text("secrets.key_file")?;
        if let Some(given) = source.secret("secrets.key")? {
            return Ok(Self::Given(given));
        }
        Ok(match (file, database.split_once("://")) {
            (Some(file), _) => Self::File(file.into()),
            (None, _) if database == "sqlite::memory:" => Self::Fleeting,
            // Beside the database, so that the two are moved together.
            (None, Some(("sqlite", path))) => Self::File(PathBuf::from(format!("{}.key", path.split('?').next().unwrap_or(path)))),
            (None, _) => Self::File("payonce.key".into()),
        })
    }
}

/// Reads the keys, making the file at first start.
pub fn load_keyring(source: &KeySource, entropy: &dyn Entropy) -> Result<Arc<Keyring>, ConfigFault> {
    let keys = match source {
        KeySource::Given(text) => parse(text.expose(), "secrets.key")?,
        KeySource::Fleeting => vec![random(entropy)],
        KeySource::File(path) => {
            make(path, entropy)?;
            let text = std::fs::read_to_string(path).map_err(|why| unreadable(path, &why))?;
            warn_if_open(path);
            parse(&text, &path.display().to_string())?
        }
    };
    Keyring::new(&keys).map(Arc::new).ok_or_else(|| ConfigFault::new("there is no key"))
}

fn parse(text: &str, from: &str) -> Result<Vec<[u8; KEY_BYTES]>, ConfigFault> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let words = lines.flat_map(|line| line.split([',', ' ', '\t'])).filter(|word| !word.is_empty());
    let keys: Option<Vec<[u8; KEY_BYTES]>> = words.map(|word| hex::decode(word).ok()?.try_into().ok()).collect();
    match keys {
        Some(keys) if !keys.is_empty() => Ok(keys),
        Some(_) | None => Err(ConfigFault::new(format!("{from} must hold keys of {} hex digits", KEY_BYTES * 2))
            .hint_that("one a line; the first seals, the others only open what was sealed before")),
    }
}

/// Made whole or not at all: written beside its place and linked into it, so that two nodes that start at once agree on one key.
fn make(path: &Path, entropy: &dyn Entropy) -> Result<(), ConfigFault> {
    if path.exists() {
        return Ok(());
    }
    let draft = path.with_extension(format!("{}.new", hex::encode(random::<4>(entropy))));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&draft).and_then(|mut file| {
        writeln!(file, "{}", hex::encode(random::<KEY_BYTES>(entropy)))?;
        file.sync_all()
    });
    let linked = written.and_then(|()| std::fs::hard_link(&draft, path));
    let _ = std::fs::remove_file(&draft);
    match linked {
        Ok(()) => {
            tracing::info!(file = %path.display(), "made the key that seals what is stored; back this file up, apart from the database: without it the database is of no use");
            Ok(())
        }
        Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(why) => Err(unreadable(path, &why)),
    }
}

fn unreadable(path: &Path, why: &std::io::Error) -> ConfigFault {
    ConfigFault::new(format!("the key file {} cannot be read or made: {why}", path.display()))
        .hint_that("name another with secrets.key_file, or give the key in PAYONCE_SECRETS_KEY")
}

#[cfg(unix)]
fn warn_if_open(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let open = std::fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0);
    if open {
        tracing::warn!(file = %path.display(), "the key file can be read by others; chmod 600 it");
    }
}

#[cfg(not(unix))]
fn warn_if_open(_path: &Path) {}
