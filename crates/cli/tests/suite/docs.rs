//! The documentation against the code: settings, error codes, commands.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::binary::{Folder, run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// Every Rust file below a folder, joined.
fn sources(folder: &str) -> String {
    let mut folders = vec![root().join(folder)];
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
                text.push_str(&read(&path));
            }
        }
    }
    text
}

/// The literals that stand right behind `before`.
fn literals_after(text: &str, before: &str) -> BTreeSet<String> {
    text.split(before).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

/// What stands between backticks in the first column of a table.
fn first_column(text: &str) -> BTreeSet<String> {
    let cells = text.lines().filter(|line| line.starts_with("| `") || line.starts_with("| [`")).filter_map(|line| line.split('|').nth(1));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn the_page_on_configuration_lists_every_setting_and_no_other() {
    let source = sources("crates/server/src/config");
    let kinds = ["text", "secret", "span", "size", "count", "choice", "list"];
    let mut settings: BTreeSet<String> = kinds.iter().flat_map(|kind| literals_after(&source, &format!("source.{kind}(\""))).collect();
    // A call over several lines has its literal on the next one.
    settings
        .extend(kinds.iter().flat_map(|kind| literals_after(&source.replace("(\n                ", "("), &format!("source.{kind}(\""))));
    assert!(settings.len() > 25, "{settings:?}");
    assert_eq!(first_column(&read(&root().join("docs/configuration.md"))), settings);
}

#[test]
fn the_index_of_errors_lists_every_page() {
    let folder = root().join("docs/errors");
    let pages: BTreeSet<String> = std::fs::read_dir(&folder)
        .expect("the folder")
        .flatten()
        .filter_map(|entry| entry.file_name().to_string_lossy().strip_suffix(".md").map(str::to_owned))
        .filter(|name| name != "README")
        .collect();
    assert_eq!(first_column(&read(&folder.join("README.md"))), pages);
}

/// Codes that go through the server's own constructor, beside those that the repository check finds.
#[test]
fn every_refusal_has_a_page() {
    let source = sources("crates/server/src");
    let codes: BTreeSet<&str> = source
        .split("refused(")
        .skip(1)
        .filter_map(|rest| rest.split(';').next())
        .filter_map(|call| call.split('"').nth(1))
        .filter(|code| code.len() > 2 && code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        .collect();
    assert!(codes.contains("payment_not_found") && codes.contains("api_key_invalid"), "{codes:?}");
    for code in codes {
        assert!(root().join(format!("docs/errors/{code}.md")).exists(), "{code} has no page");
    }
}

/// A command that a README names is there.
#[test]
fn the_readme_names_commands_that_exist() {
    let folder = Folder::new();
    for name in ["README.md", "README.zh-CN.md"] {
        let text = read(&root().join(name));
        let typed = text.split("`payonce ").skip(1).filter_map(|rest| rest.split('`').next());
        let mut seen = 0;
        for typed in typed {
            let mut words = typed.split_whitespace().take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
            let Some(noun) = words.next().filter(|noun| *noun != "proxy") else { continue };
            let verbs: Vec<&str> = words.next().map(|verbs| verbs.split("\\|").collect()).unwrap_or_default();
            for verb in if verbs.is_empty() { vec![""] } else { verbs } {
                let ended = run(folder.path(), &format!("{noun} {verb} --help"));
                assert_eq!(ended.code, 0, "{name}: {typed}: {ended:?}");
                seen += 1;
            }
        }
        assert!(seen > 20, "{name}: {seen}");
    }
}
