//! Reads an account's settings: a flat JSON object of texts. In: the object. Out: values that are there, not blank, and known by name.
//! Never: a value in a fault, an empty secret (B056), or a member that nobody reads.

use payonce_core::secret::Secret;
use serde_json::{Map, Value};

use crate::contract::ConfigFault;

/// The longest file that a setting may name.
const FILE_MAX_BYTES: u64 = 64 * 1024;

/// An account's settings.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    members: &'a Map<String, Value>,
}

impl std::fmt::Debug for Settings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[settings]")
    }
}

/// A fault of one setting.
pub fn fault(setting: &str, rule: impl Into<String>) -> ConfigFault {
    ConfigFault { setting: setting.to_owned(), rule: rule.into() }
}

impl<'a> Settings<'a> {
    /// Takes an object that has no member outside `known`.
    pub fn new(value: &'a Value, known: &[&str]) -> Result<Self, ConfigFault> {
        let Value::Object(members) = value else { return Err(fault("settings", "must be an object")) };
        match members.keys().find(|name| !known.contains(&name.as_str())) {
            Some(unknown) => Err(fault(unknown, format!("is not known; the settings are {}", known.join(", ")))),
            None => Ok(Self { members }),
        }
    }

    /// A text that must be there.
    pub fn text(&self, name: &str) -> Result<&'a str, ConfigFault> {
        self.optional_text(name)?.ok_or_else(|| fault(name, "is missing"))
    }

    /// A text that may be absent. There, it is not blank and has no blanks around it: a pasted space would fail later and less clearly.
    pub fn optional_text(&self, name: &str) -> Result<Option<&'a str>, ConfigFault> {
        let Some(value) = self.members.get(name) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| fault(name, "must be a text"))?;
        checked(name, text).map(Some)
    }

    /// A secret, given as `name` or as the path of a file under `name` with `_file`.
    pub fn secret(&self, name: &str) -> Result<Secret, ConfigFault> {
        let file = format!("{name}_file");
        match (self.members.get(name), self.members.get(&file)) {
            (Some(_), Some(_)) => Err(fault(name, format!("is given twice: set {name} or {file}"))),
            (Some(value), None) => trimmed(name, value).map(Secret::new),
            (None, Some(_)) => read_file(&file, self.text(&file)?).map(Secret::new),
            (None, None) => Err(fault(name, format!("is missing: set {name} or {file}"))),
        }
    }

    /// Texts under `name` and the names that follow from it: one (`name`, `name_file`) or several (`plural`, a list). At least one.
    pub fn keys(&self, name: &str, plural: &str) -> Result<Vec<String>, ConfigFault> {
        let file = format!("{name}_file");
        let mut keys = Vec::new();
        if let Some(value) = self.members.get(name) {
            keys.push(trimmed(name, value)?);
        }
        if self.members.contains_key(&file) {
            keys.push(read_file(&file, self.text(&file)?)?);
        }
        if let Some(value) = self.members.get(plural) {
            let list = value.as_array().ok_or_else(|| fault(plural, "must be a list of texts"))?;
            for one in list {
                keys.push(trimmed(plural, one)?);
            }
        }
        if keys.is_empty() { Err(fault(name, format!("is missing: set {name}, {file} or {plural}"))) } else { Ok(keys) }
    }
}

fn checked<'a>(name: &str, text: &'a str) -> Result<&'a str, ConfigFault> {
    if text.trim().is_empty() {
        Err(fault(name, "is empty"))
    } else if text.trim() != text {
        Err(fault(name, "has blanks at its beginning or end"))
    } else {
        Ok(text)
    }
}

/// Key texts come with line ends around them.
fn trimmed(name: &str, value: &Value) -> Result<String, ConfigFault> {
    let text = value.as_str().ok_or_else(|| fault(name, "must be a text"))?.trim();
    if text.is_empty() { Err(fault(name, "is empty")) } else { Ok(text.to_owned()) }
}

fn read_file(name: &str, path: &str) -> Result<String, ConfigFault> {
    let size = std::fs::metadata(path).map_err(|why| fault(name, format!("cannot be read: {}", why.kind())))?.len();
    if size > FILE_MAX_BYTES {
        return Err(fault(name, format!("names a file of more than {FILE_MAX_BYTES} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|why| fault(name, format!("cannot be read: {}", why.kind())))?;
    let text = text.trim();
    if text.is_empty() { Err(fault(name, "names an empty file")) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn b056_blank_missing_and_unknown_settings_are_refused_by_name_and_without_their_value() {
        let given = json!({ "id": "x", "blank": "  ", "padded": " x", "number": 7, "key": "\n hunter2 \n", "keys": ["a", " "] });
        let known = ["id", "blank", "padded", "number", "key", "key_file", "keys"];
        let settings = Settings::new(&given, &known).expect("known");
        assert_eq!(settings.text("id"), Ok("x"));
        assert_eq!(settings.secret("key").map(|s| s.expose().to_owned()), Ok("hunter2".to_owned()));
        for name in ["blank", "padded", "number", "absent"] {
            assert_eq!(settings.text(name).map_err(|f| f.setting), Err(name.to_owned()));
        }
        assert!(settings.keys("id", "keys").is_err(), "one blank key spoils the list");
        assert!(settings.secret("absent").is_err());
        let unknown = Settings::new(&json!({ "secret_key": "hunter2" }), &known).expect_err("unknown");
        assert_eq!(unknown.setting, "secret_key");
        assert!(!unknown.to_string().contains("hunter2"));
    }
}
