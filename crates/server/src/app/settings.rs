//! An account's settings with the files that they name read in: what is stored is the key itself, sealed, so that every node has it.
//!
//! In: settings with members that end in `_file`. Out: the same with the file's text under the name without that ending. Never: a path that
//! another node or another folder would have to have too.

use std::io::Read as _;

use serde_json::{Map, Value};

use super::StartFault;

/// A key or certificate is far smaller.
const FILE_MAX_BYTES: u64 = 64 * 1024;

/// Reads every file that is named. Where the text stands there too, both are left for the channel's own rule to refuse.
pub(super) fn with_files_read(settings: &Value) -> Result<Value, StartFault> {
    let Value::Object(members) = settings else { return Ok(settings.clone()) };
    let mut read = Map::new();
    for (name, value) in members {
        match (name.strip_suffix("_file"), value) {
            (Some(short), Value::String(path)) if !members.contains_key(short) => {
                read.insert(short.to_owned(), Value::String(text_of(name, path)?));
            }
            (Some(_) | None, value) => {
                read.insert(name.clone(), value.clone());
            }
        }
    }
    Ok(Value::Object(read))
}

fn text_of(name: &str, path: &str) -> Result<String, StartFault> {
    let fault = |why: String| {
        StartFault::new(format!("{name}: {path} cannot be read: {why}")).hint_that("name an existing text file, at most 64 KiB")
    };
    let file = std::fs::File::open(path).map_err(|why| fault(why.to_string()))?;
    let mut text = String::new();
    file.take(FILE_MAX_BYTES + 1).read_to_string(&mut text).map_err(|why| fault(why.to_string()))?;
    if text.len() as u64 > FILE_MAX_BYTES {
        return Err(fault("it is larger than 64 KiB".to_owned()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_are_read_in_and_a_missing_one_is_named() {
        let path = std::env::temp_dir().join(format!("payonce-settings-{}", std::process::id()));
        std::fs::write(&path, "the key").expect("a file");
        let settings = json!({ "app_id": "1", "private_key_file": path.display().to_string() });
        assert_eq!(with_files_read(&settings).ok(), Some(json!({ "app_id": "1", "private_key": "the key" })));
        let both = json!({ "private_key": "x", "private_key_file": path.display().to_string() });
        assert_eq!(with_files_read(&both).ok(), Some(both), "for the channel to refuse");
        std::fs::remove_file(&path).expect("removed");
        let fault = with_files_read(&settings).expect_err("gone").to_string();
        assert!(fault.contains("private_key_file") && fault.contains(&path.display().to_string()), "{fault}");
    }
}
