//! Every error code that a caller can meet has a page, and every page has its code.

use std::collections::BTreeMap;

use super::Finding;
use crate::tree::Tree;

const PAGES: &str = "docs/errors/";
/// Pages that describe no single code.
const OTHER_PAGES: &[&str] = &["README", "index"];
/// Where codes of problem documents are made.
const SOURCES: &[&str] = &["crates/core/src/", "crates/guard/src/", "crates/flows/src/", "crates/server/src/"];
/// What stands before a code: the body of a function that names them, a constructor, a member.
const BEFORE: &[(&str, Reach)] = &[("fn code(", Reach::Body), ("Problem::new(", Reach::FirstLiteral), ("code: \"", Reach::Here)];

#[derive(Clone, Copy)]
enum Reach {
    /// Every literal up to the brace that ends the function.
    Body,
    /// The first literal of the call.
    FirstLiteral,
    /// The literal that has just begun.
    Here,
}

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    // The pages are written last; until there is one, there is nothing to hold the codes against.
    if !tree.exists(PAGES) {
        return Vec::new();
    }
    let mut codes: BTreeMap<&str, &str> = BTreeMap::new();
    for (path, text) in SOURCES.iter().flat_map(|folder| tree.production_rust(folder)) {
        for code in codes_in(text) {
            codes.entry(code).or_insert(path);
        }
    }
    let without_page = codes.iter().filter(|(code, _)| tree.text(&format!("{PAGES}{code}.md")).is_none());
    let mut findings: Vec<Finding> =
        without_page.map(|(code, path)| Finding::new(path, 0, format!("the error code {code} has no page {PAGES}{code}.md"))).collect();
    for (path, _) in tree.files() {
        let Some(page) = path.strip_prefix(PAGES).and_then(|name| name.strip_suffix(".md")) else { continue };
        let literal = format!("\"{page}\"");
        let used =
            || tree.files().any(|(source, text)| source.starts_with("crates/") && source.ends_with(".rs") && text.contains(&literal));
        if !OTHER_PAGES.contains(&page) && !used() {
            findings.push(Finding::new(path, 0, "a page for a code that nothing uses"));
        }
    }
    findings
}

fn codes_in(text: &str) -> Vec<&str> {
    let mut codes = Vec::new();
    for (before, reach) in BEFORE {
        for (at, _) in text.match_indices(before) {
            let after = &text[at + before.len()..];
            match reach {
                Reach::Body => codes.extend(literals(body(after))),
                Reach::FirstLiteral => codes.extend(literals(after.split(';').next().unwrap_or_default()).next()),
                Reach::Here => codes.extend(after.split('"').next()),
            }
        }
    }
    codes.retain(|code| is_code(code));
    codes
}

fn body(text: &str) -> &str {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return &text[..at],
            '}' => depth = depth.saturating_sub(1),
            // A declaration in a trait has no body.
            ';' if depth == 0 => return "",
            _ => {}
        }
    }
    text
}

fn literals(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').skip(1).step_by(2)
}

fn is_code(text: &str) -> bool {
    text.len() > 2 && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"
        fn code(&self) -> &'static str {
            match self { Self::A { .. } => "order_open", Self::B => "order_conflict" }
        }
        fn other(&self) -> &'static str { "not_a_code" }
        let p = Problem::new(StatusCode::CONFLICT, "attempt_unresolved", "Words for people");
        let q = Row { code: "body_too_large", n: 1 };
    "#;

    #[test]
    fn codes_are_read_from_where_they_are_made() {
        assert_eq!(codes_in(SOURCE), ["order_open", "order_conflict", "attempt_unresolved", "body_too_large"]);
    }

    #[test]
    fn a_code_without_a_page_and_a_page_without_a_code_are_found() {
        let tree = Tree::of(&[
            ("crates/server/src/api.rs", SOURCE),
            ("docs/errors/README.md", ""),
            ("docs/errors/order_open.md", ""),
            ("docs/errors/order_conflict.md", ""),
            ("docs/errors/attempt_unresolved.md", ""),
            ("docs/errors/gone.md", ""),
        ]);
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "crates/server/src/api.rs: the error code body_too_large has no page docs/errors/body_too_large.md",
                "docs/errors/gone.md: a page for a code that nothing uses"
            ]
        );
    }

    #[test]
    fn without_pages_nothing_is_asked() {
        assert_eq!(check(&Tree::of(&[("crates/server/src/api.rs", SOURCE)])), []);
    }
}
