//! Words that do not belong into the repository: unfinished work, switched-off tests, and what ties it to one machine.

use super::{Finding, numbered};
use crate::tree::Tree;

/// Written in two halves, so that this file does not find itself.
const EVERYWHERE: &[(&str, &str)] = &[
    (concat!("/wor", "k/"), "a path of one machine"),
    (concat!("/roo", "t/"), "a path of one machine"),
    (concat!("crates", ".io"), "a package registry's host"),
    (concat!("py", "pi.org"), "a package registry's host"),
    (concat!("python", "hosted.org"), "a package registry's host"),
    (concat!("npm", "js.org"), "a package registry's host"),
    (concat!("npm", "js.com"), "a package registry's host"),
    (concat!("deb.deb", "ian.org"), "a package registry's host"),
    (concat!("proxy.gol", "ang.org"), "a package registry's host"),
];

const IN_SOURCE: &[(&str, &str)] = &[
    (concat!("TO", "DO"), "unfinished work: do it, or file it"),
    (concat!("FIX", "ME"), "unfinished work: do it, or file it"),
    (concat!("#[ign", "ore"), "a switched-off test"),
];

/// Written by tools.
const EXEMPT: &[&str] = &["Cargo.lock", "package-lock.json"];

const SOURCE: &[&str] = &[".rs", ".sh", ".py", ".js", ".ts", ".sql", ".toml", ".yml", ".yaml", ".html", ".css", "Makefile"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let files = tree.files().filter(|(path, _)| !EXEMPT.iter().any(|exempt| path.ends_with(exempt)));
    files.flat_map(|(path, text)| numbered(text).flat_map(move |(number, line)| in_line(path, number, line))).collect()
}

fn in_line(path: &str, number: usize, line: &str) -> Vec<Finding> {
    // Other people's libraries are kept as they are.
    let source = SOURCE.iter().any(|ending| path.ends_with(ending)) && !path.ends_with(".min.js") && !path.contains("/vendor/");
    let found =
        EVERYWHERE.iter().filter(|(word, _)| line.contains(word)).chain(IN_SOURCE.iter().filter(|(word, _)| source && is_word(line, word)));
    found.map(|(word, why)| Finding::new(path, number, format!("`{word}`: {why}"))).collect()
}

/// Whether the word stands alone: one inside a longer word is none.
fn is_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        [before, after].into_iter().flatten().all(|c| !c.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_found_where_it_counts() {
        let (path, work) = (EVERYWHERE[0].0, IN_SOURCE[0].0);
        let text = format!("// {work}: later\nlet x = \"{path}main\";\n");
        let tree = Tree::of(&[("crates/a/src/lib.rs", &text), ("docs/notes.md", &text), ("Cargo.lock", &text)]);
        let found: Vec<String> = check(&tree).iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect();
        assert_eq!(found, ["crates/a/src/lib.rs:1", "crates/a/src/lib.rs:2", "docs/notes.md:2"]);
    }

    #[test]
    fn a_word_inside_another_is_none() {
        assert!(!is_word(&format!("MAS{}N", IN_SOURCE[0].0), IN_SOURCE[0].0));
        assert!(is_word(&format!("# {}(me)", IN_SOURCE[0].0), IN_SOURCE[0].0));
    }
}
