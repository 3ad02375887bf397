//! `ARCHITECTURE.md` names no file that is gone.

use super::{Finding, numbered};
use crate::tree::Tree;

const PAGE: &str = "ARCHITECTURE.md";
const ENDINGS: &[&str] = &[".rs", ".md", ".toml", ".sql", ".sh", ".py", ".json"];
/// A span of code with a slash is a path if it begins like this; others are media types and URL paths.
const FOLDERS: &[&str] = &["crates/", "xtask/", "docs/", "scripts/", "tests/", "examples/", "deploy/", ".ci/", ".config/"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.text(PAGE) else { return Vec::new() };
    let missing = numbered(text)
        .flat_map(|(number, line)| spans(line).flat_map(expand).filter(|path| !found(tree, path)).map(move |path| (number, path)));
    missing.map(|(number, path)| Finding::new(PAGE, number, format!("`{path}` does not exist"))).collect()
}

fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// `a/{b,c}.rs` names two files.
fn expand(span: &str) -> Vec<String> {
    let inner = span.split_once('{').and_then(|(before, rest)| rest.split_once('}').map(|(names, after)| (before, names, after)));
    match inner {
        None => vec![span.to_owned()],
        Some((before, names, after)) => names.split(',').flat_map(|name| expand(&format!("{before}{}{after}", name.trim()))).collect(),
    }
}

/// Whether it is no path at all, or one that exists. A bare file name may lie anywhere.
fn found(tree: &Tree, path: &str) -> bool {
    if path.contains([' ', '<', '*', '…', '(', ':']) {
        return true;
    }
    if FOLDERS.iter().any(|folder| path.starts_with(folder)) {
        return tree.exists(path);
    }
    let is_file = ENDINGS.iter().any(|ending| path.ends_with(ending));
    let inside = format!("/{path}");
    !is_file || path.starts_with('/') || tree.exists(path) || tree.files().any(|(known, _)| known.ends_with(&inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_that_are_gone_are_found() {
        let page = "See `crates/core/src/{money,key}.rs`, `money.rs`, `crates/core/`.\n\
                    `POST /v1/payments` answers `application/problem+json`; `crates/<name>/src` is a pattern.\n\
                    `crates/gone/src/lib.rs` and `gone.rs` are gone.\n";
        let tree = Tree::of(&[(PAGE, page), ("crates/core/src/money.rs", "")]);
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "ARCHITECTURE.md:1: `crates/core/src/key.rs` does not exist",
                "ARCHITECTURE.md:3: `crates/gone/src/lib.rs` does not exist",
                "ARCHITECTURE.md:3: `gone.rs` does not exist"
            ]
        );
    }
}
