//! `docs/states.md` holds the grids between two markers each. It is compared here, so that it cannot go stale.

use std::path::PathBuf;

/// Set to write the grids into the file instead of comparing them.
const UPDATE: &str = "PAYONCE_UPDATE_DOCS";

fn begin(name: &str) -> String {
    format!("<!-- generated: {name}, by the tests of crates/core -->\n")
}

const END: &str = "<!-- end of generated -->\n";

/// The text with what stands between the markers of `name` replaced.
fn with_section(text: &str, name: &str, section: &str) -> String {
    let begin = begin(name);
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("docs/states.md has no section {name:?}"));
    let (_, after) = rest.split_once(END).unwrap_or_else(|| panic!("the section {name:?} of docs/states.md has no end"));
    format!("{before}{begin}\n{section}\n{END}{after}")
}

#[expect(clippy::disallowed_methods, reason = "a developer's switch of this test alone")]
fn is_update() -> bool {
    std::env::var(UPDATE).is_ok()
}

#[test]
fn the_grids_in_the_docs_are_the_rules() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/states.md");
    let text = std::fs::read_to_string(&path).expect("docs/states.md");
    let fresh = with_section(&text, "attempt grid", &crate::grid::attempts());
    let fresh = with_section(&fresh, "refund grid", &crate::grid::refunds());
    if is_update() {
        std::fs::write(&path, fresh).expect("docs/states.md can be written");
        return;
    }
    assert_eq!(text, fresh, "docs/states.md is stale: run this test again with {UPDATE}=1");
}
