//! Arrows between crates go down only, and some crates must not know some libraries.

use super::{Finding, numbered};
use crate::tree::Tree;

/// Folder under `crates/`, and our own crates that it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("failpoint", &[]),
    ("channels", &["payonce-core"]),
    ("store-postgres", &["payonce-core"]),
    ("store-sqlite", &["payonce-core"]),
    ("guard", &["payonce-core", "payonce-failpoint", "payonce-store-postgres", "payonce-store-sqlite"]),
    ("flows", &["payonce-core", "payonce-channels", "payonce-failpoint"]),
    ("sandbox", &["payonce-core", "payonce-channels"]),
    (
        "server",
        &[
            "payonce-core",
            "payonce-failpoint",
            "payonce-channels",
            "payonce-store-postgres",
            "payonce-store-sqlite",
            "payonce",
            "payonce-flows",
            "payonce-sandbox",
        ],
    ),
    ("cli", &["payonce-core", "payonce-failpoint", "payonce-channels", "payonce", "payonce-flows", "payonce-sandbox", "payonce-server"]),
    ("testkit", &["payonce-core", "payonce-channels"]),
    // Measures the guard on each store with the harness of the tests; nothing depends on it.
    ("bench", &["payonce-core", "payonce-store-postgres", "payonce-store-sqlite", "payonce", "payonce-testkit"]),
];

/// Folder under `crates/`, and what its production code must not use: the rules know no I/O, flows no HTTP framework and no SQL.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("core", &["tokio", "hyper", "axum", "tower", "http", "rusqlite", "tokio-postgres", "rand", "getrandom"]),
    ("channels", &["axum", "tower", "rusqlite", "tokio-postgres"]),
    ("flows", &["axum", "tower", "hyper", "http", "rusqlite", "tokio-postgres"]),
    ("guard", &["axum"]),
    ("sandbox", &["rusqlite", "tokio-postgres"]),
    ("cli", &["rusqlite", "tokio-postgres"]),
];

/// The only place that names concrete stores.
const STORES_NAMED_IN: &str = "crates/server/src/app";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Production,
    Tests,
    Other,
}

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        if let Some(folder) = path.strip_prefix("crates/").and_then(|rest| rest.strip_suffix("/Cargo.toml")) {
            manifest(path, folder, text, &mut findings);
        }
    }
    let outside_app = tree.production_rust("crates/server/src/").filter(|(path, _)| !path.starts_with(STORES_NAMED_IN));
    for (path, text) in outside_app {
        let named = numbered(text).filter(|(_, line)| line.contains("payonce_store_"));
        findings.extend(named.map(|(line, _)| Finding::new(path, line, format!("only {STORES_NAMED_IN}.rs names concrete stores"))));
    }
    findings
}

fn manifest(path: &str, folder: &str, text: &str, findings: &mut Vec<Finding>) {
    let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == folder) else {
        findings.push(Finding::new(path, 0, "a crate that the table of arrows does not know"));
        return;
    };
    let forbidden = FORBIDDEN.iter().find(|(known, _)| *known == folder).map_or(&[][..], |(_, names)| names);
    for (line, section, name) in dependencies(text) {
        let ours = name == "payonce" || name.starts_with("payonce-");
        match section {
            Section::Production if ours && !allowed.contains(&name) => {
                findings.push(Finding::new(path, line, format!("{folder} must not depend on {name}: arrows go down only")));
            }
            Section::Production if forbidden.contains(&name) => {
                findings.push(Finding::new(path, line, format!("{folder} must not use {name}")));
            }
            // Tests may use the testkit, and what lies in a lower or the same layer; Cargo itself refuses most cycles.
            Section::Production | Section::Tests | Section::Other => {}
        }
    }
}

/// Every dependency of a manifest with its line and section, in both spellings: `name = …` and `[dependencies.name]`.
fn dependencies(text: &str) -> Vec<(usize, Section, &str)> {
    let mut section = Section::Other;
    let mut found = Vec::new();
    for (number, line) in numbered(text) {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            // `[target.'cfg(unix)'.dependencies]` counts like `[dependencies]`.
            let header = header.rsplit_once("'.").map_or(header, |(_, rest)| rest);
            let (kind, name) = header.split_once('.').map_or((header, None), |(kind, name)| (kind, Some(name)));
            section = match kind {
                "dependencies" | "build-dependencies" => Section::Production,
                "dev-dependencies" => Section::Tests,
                _ => Section::Other,
            };
            if let Some(name) = name {
                found.push((number, section, name));
                section = Section::Other;
            }
        } else if section != Section::Other && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            if !name.is_empty() {
                found.push((number, section, name));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_upwards_is_found_in_every_spelling() {
        for text in [
            "[dependencies]\npayonce-flows.workspace = true\n",
            "[dependencies]\npayonce-flows = { workspace = true }\n",
            "[dependencies.payonce-flows]\npath = \"../flows\"\n",
            "[target.'cfg(unix)'.dependencies]\npayonce-flows.workspace = true\n",
            "[build-dependencies]\npayonce-testkit.workspace = true\n",
        ] {
            assert_eq!(check(&Tree::of(&[("crates/channels/Cargo.toml", text)])).len(), 1, "{text}");
        }
    }

    #[test]
    fn tests_may_use_the_testkit_but_production_may_not() {
        let dev = "[dependencies]\npayonce-core.workspace = true\n[dev-dependencies]\npayonce-testkit.workspace = true\n";
        assert_eq!(check(&Tree::of(&[("crates/guard/Cargo.toml", dev)])), []);
        let production = "[dependencies]\npayonce-testkit.workspace = true\n";
        assert_eq!(check(&Tree::of(&[("crates/guard/Cargo.toml", production)])).len(), 1);
    }

    #[test]
    fn flows_know_no_sql_and_only_app_names_stores() {
        let tree = Tree::of(&[
            ("crates/flows/Cargo.toml", "[dependencies]\nrusqlite.workspace = true\n"),
            ("crates/server/src/app.rs", "use payonce_store_sqlite::Store;\n"),
            ("crates/server/src/api.rs", "\nuse payonce_store_sqlite::Store;\n"),
        ]);
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].starts_with("crates/server/src/api.rs:2:"), "{found:?}");
    }

    #[test]
    fn an_unknown_crate_needs_a_place_in_the_table() {
        assert_eq!(check(&Tree::of(&[("crates/common/Cargo.toml", "[package]\n")])).len(), 1);
    }
}
