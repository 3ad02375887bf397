//! Where a setting comes from: a flag, else the environment, else the file. What nobody asked for is unknown, and refused.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use payonce_core::secret::Secret;
use toml::{Table, Value};

use super::{ConfigFault, DEFAULT_FILE, Environment, Options, parse};

/// Variables with names of their own, beside those that follow from the setting's path.
const NAMED: &[(&str, &str)] = &[("log.filter", "PAYONCE_LOG")];
/// Variables of these sections must be settings; others that begin with `PAYONCE_` belong to tests and tools.
const SECTIONS: &[&str] =
    &["GUARD", "HTTP", "CHANNEL", "RECONCILE", "INBOX", "SURPLUS", "MERCHANT", "SECRETS", "DATABASE", "TENANT", "ACCOUNT"];

pub(super) struct Source<'a> {
    flags: BTreeMap<&'static str, String>,
    environment: &'a Environment,
    file: Table,
    file_name: String,
    /// The variables and the paths of all settings that were asked for.
    asked: BTreeSet<String>,
    paths: BTreeSet<String>,
}

/// A value and where it stands, for messages.
pub(super) struct Given {
    pub(super) value: Value,
    pub(super) from: String,
}

impl<'a> Source<'a> {
    pub(super) fn open(options: &Options, environment: &'a Environment) -> Result<Self, ConfigFault> {
        let named = options.config.clone().or_else(|| environment.value("PAYONCE_CONFIG").map(Into::into));
        let path = named.clone().unwrap_or_else(|| DEFAULT_FILE.into());
        let file_name = path.display().to_string();
        let file = match std::fs::read_to_string(&path) {
            Ok(text) => text.parse::<Table>().map_err(|why| ConfigFault::new(format!("{file_name}: {why}")))?,
            Err(why) if why.kind() == std::io::ErrorKind::NotFound && named.is_none() => Table::new(),
            Err(why) => return Err(ConfigFault::new(format!("the configuration {file_name} cannot be read: {why}"))),
        };
        let mut flags = BTreeMap::new();
        flags.extend(options.listen.clone().map(|listen| ("listen", listen)));
        flags.extend(options.database.clone().map(|url| ("database.url", url)));
        Ok(Self { flags, environment, file, file_name, asked: BTreeSet::new(), paths: BTreeSet::new() })
    }

    pub(super) const fn environment(&self) -> &'a Environment {
        self.environment
    }

    /// The setting as it stands wherever it counts most. Takes it out of the file, so that what is left there is unknown.
    pub(super) fn take(&mut self, path: &str) -> Option<Given> {
        let variable = variable_of(path);
        let in_file = take_path(&mut self.file, path);
        self.asked.insert(variable.clone());
        self.paths.insert(path.to_owned());
        if let Some(flag) = self.flags.get(path) {
            return Some(Given { value: Value::String(flag.clone()), from: format!("--{}", path.split('.').next().unwrap_or(path)) });
        }
        if let Some(text) = self.environment.value(&variable) {
            return Some(Given { value: Value::String(text.to_owned()), from: variable });
        }
        in_file.map(|value| Given { value, from: format!("{} in {}", path, self.file_name) })
    }

    /// A whole table of the file.
    pub(super) fn take_table(&mut self, name: &str) -> Result<Table, ConfigFault> {
        match self.file.remove(name) {
            None => Ok(Table::new()),
            Some(Value::Table(table)) => Ok(table),
            Some(_) => Err(ConfigFault::new(format!("{name} in {} must be a table", self.file_name))),
        }
    }

    /// Notes that a variable is known.
    pub(super) fn know(&mut self, variable: &str) {
        self.asked.insert(variable.to_owned());
    }

    pub(super) fn file_name(&self) -> &str {
        &self.file_name
    }

    pub(super) fn text(&mut self, path: &str) -> Result<Option<String>, ConfigFault> {
        let Some(given) = self.take(path) else { return Ok(None) };
        match given.value {
            Value::String(text) if !text.trim().is_empty() => Ok(Some(text)),
            _ => Err(ConfigFault::new(format!("{} must be a text that is not empty", given.from))),
        }
    }

    pub(super) fn secret(&mut self, path: &str) -> Result<Option<Secret>, ConfigFault> {
        Ok(self.text(path)?.map(Secret::new))
    }

    pub(super) fn span(&mut self, path: &str, default: Duration) -> Result<Duration, ConfigFault> {
        let Some(given) = self.take(path) else { return Ok(default) };
        let span = given.value.as_str().and_then(parse::span);
        span.ok_or_else(|| {
            ConfigFault::new(format!("{} is no duration", given.from))
                .hint_that("write a number and a unit: \"500ms\", \"60s\", \"30m\", \"24h\", \"45d\"")
        })
    }

    pub(super) fn size(&mut self, path: &str, default: usize) -> Result<usize, ConfigFault> {
        let Some(given) = self.take(path) else { return Ok(default) };
        let text = match &given.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        parse::size(&text)
            .ok_or_else(|| ConfigFault::new(format!("{} is no size", given.from)).hint_that("write bytes, or \"64KiB\", \"1MiB\""))
    }

    pub(super) fn count(&mut self, path: &str, default: usize) -> Result<usize, ConfigFault> {
        let Some(given) = self.take(path) else { return Ok(default) };
        let text = match &given.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        text.trim().parse().map_err(|_| ConfigFault::new(format!("{} must be a whole number", given.from)))
    }

    pub(super) fn choice<T: Copy>(&mut self, path: &str, default: T, choices: &[(&str, T)]) -> Result<T, ConfigFault> {
        let Some(given) = self.take(path) else { return Ok(default) };
        let chosen = given.value.as_str().and_then(|text| choices.iter().find(|(name, _)| *name == text));
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        chosen.map(|(_, value)| *value).ok_or_else(|| {
            ConfigFault::new(format!("{} must be one of: {}", given.from, names.join(", ")))
                .hint_that(format!("write one of them as a text, or leave {path} out for the default; see docs/configuration.md"))
        })
    }

    /// Texts: a list in the file, or separated by commas.
    pub(super) fn list(&mut self, path: &str) -> Result<Vec<String>, ConfigFault> {
        let Some(given) = self.take(path) else { return Ok(Vec::new()) };
        list_of(&given.value).ok_or_else(|| ConfigFault::new(format!("{} must be a list of texts", given.from)))
    }

    /// The sections that a file may have, as they are written in it.
    fn sections(&self) -> String {
        let heads: BTreeSet<&str> = self.paths.iter().filter_map(|path| path.split_once('.')).map(|(head, _)| head).collect();
        let plain = heads.into_iter().map(|head| format!("[{head}]"));
        let named = ["[tenant.NAME.merchant]", "[account.NAME]", "[account.NAME.settings]"].map(str::to_owned);
        plain.chain(named).collect::<Vec<_>>().join(", ")
    }

    /// Refuses what nobody asked for.
    pub(super) fn finish(self) -> Result<(), ConfigFault> {
        if let Some(unknown) = first_leaf(&self.file, "") {
            let section = unknown.rsplit_once('.').map(|(section, _)| format!("{section}."));
            let alike = |path: &&String| section.as_ref().map_or_else(|| !path.contains('.'), |section| path.starts_with(section));
            let known: Vec<&str> = self.paths.iter().filter(alike).map(String::as_str).collect();
            let hint = match &section {
                Some(_) if !known.is_empty() => format!("known: {}", known.join(", ")),
                Some(_) => format!("known sections: {}", self.sections()),
                None => format!("known: {}; and in sections: {}", known.join(", "), self.sections()),
            };
            return Err(ConfigFault::new(format!("{} has the unknown key {unknown}", self.file_name)).hint_that(hint));
        }
        for name in self.environment.names("PAYONCE_") {
            let section = name.trim_start_matches("PAYONCE_").split('_').next().unwrap_or_default();
            if SECTIONS.contains(&section) && !self.asked.contains(name) {
                let known: Vec<&str> =
                    self.asked.iter().filter(|known| known.starts_with(&format!("PAYONCE_{section}_"))).map(String::as_str).collect();
                return Err(ConfigFault::new(format!("the environment variable {name} sets nothing"))
                    .hint_that(format!("known: {}", known.join(", "))));
            }
        }
        Ok(())
    }
}

pub(super) fn list_of(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(text.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()),
        Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

/// `guard.lease` is `PAYONCE_GUARD_LEASE`.
fn variable_of(path: &str) -> String {
    NAMED
        .iter()
        .find(|(named, _)| *named == path)
        .map_or_else(|| format!("PAYONCE_{}", path.replace(['.', '-'], "_").to_ascii_uppercase()), |(_, variable)| (*variable).to_owned())
}

fn take_path(table: &mut Table, path: &str) -> Option<Value> {
    match path.split_once('.') {
        None => match table.get(path) {
            Some(Value::Table(_)) | None => None,
            Some(_) => table.remove(path),
        },
        Some((head, rest)) => match table.get_mut(head) {
            Some(Value::Table(inner)) => take_path(inner, rest),
            Some(_) | None => None,
        },
    }
}

fn first_leaf(table: &Table, prefix: &str) -> Option<String> {
    table.iter().find_map(|(name, value)| {
        let path = format!("{prefix}{name}");
        match value {
            Value::Table(inner) => first_leaf(inner, &format!("{path}.")),
            _ => Some(path),
        }
    })
}
