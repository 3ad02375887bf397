//! Files stay small enough to be read in one go.

use super::Finding;
use crate::tree::Tree;

/// Lines of a Rust file before its tests.
const LINES_MAX: usize = 500;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let long = tree.production_rust("").map(|(path, text)| (path, text.lines().count())).filter(|(_, lines)| *lines > LINES_MAX);
    long.map(|(path, lines)| Finding::new(path, 0, format!("{lines} lines before the tests, {LINES_MAX} are allowed: split it"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_do_not_count() {
        let lines = |count: usize| "// line\n".repeat(count);
        let with_tests = format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", lines(LINES_MAX), lines(LINES_MAX));
        let too_long = lines(LINES_MAX + 1);
        let tree =
            Tree::of(&[("crates/a/src/ok.rs", &with_tests), ("crates/a/src/long.rs", &too_long), ("crates/a/tests/long.rs", &too_long)]);
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/long.rs: 501 lines"), "{found:?}");
    }
}
