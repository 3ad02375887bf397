//! Where money is decided, a match names every case: a new variant must stop the build in each place that cares.

use super::{Finding, numbered};
use crate::tree::Tree;

const FOLDER: &str = "crates/core/src/";
/// Each as a file, or as a folder of files.
const RULES: &[&str] = &["transition", "decision", "observe", "refunds", "outcome", "failure"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let rule_files = tree.production_rust(FOLDER).filter(|(path, _)| is_rule(path));
    rule_files
        .flat_map(|(path, text)| {
            numbered(text)
                .filter(|(_, line)| takes_anything(line))
                .map(move |(line, _)| Finding::new(path, line, "a wildcard arm in a rule file: name every case"))
        })
        .collect()
}

fn is_rule(path: &str) -> bool {
    path.trim_end_matches(".rs").split('/').any(|part| RULES.contains(&part))
}

/// `_ =>`, `_ if … =>`, `(_, _) =>` and `other =>` take whatever comes.
fn takes_anything(line: &str) -> bool {
    let Some((pattern, _)) = line.trim_start().split_once("=>") else { return false };
    let pattern = pattern.split_once(" if ").map_or(pattern, |(pattern, _)| pattern);
    let parts = pattern.trim().trim_start_matches('(').trim_end_matches(')').split(',');
    parts.into_iter().all(|part| is_wild(part.trim()))
}

fn is_wild(part: &str) -> bool {
    let lower = part.chars().next().is_some_and(|first| first == '_' || first.is_ascii_lowercase());
    // `true` and `false` are the cases of a bool.
    lower && !matches!(part, "true" | "false") && part.chars().all(|c| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_wildcard_arm_is_found() {
        for arm in ["_ => Stay,", "    _ if paid => Stay,", "(_, _) => Stay,", "other => Stay,", "(state, _) => Stay,"] {
            assert!(takes_anything(arm), "{arm}");
        }
    }

    #[test]
    fn a_named_case_is_not() {
        for arm in [
            "(Closed { .. }, _) => Stay,",
            "Open | Pending { .. } => Stay,",
            "None => 1,",
            "true => 1,",
            "// other => is refused",
            "\"paid\" => 1,",
            "3 => 1,",
        ] {
            assert!(!takes_anything(arm), "{arm}");
        }
    }

    #[test]
    fn only_rule_files_are_read_and_not_their_tests() {
        let tree = Tree::of(&[
            ("crates/core/src/payment/transition.rs", "match x {\n    _ => 1,\n}\n\n#[cfg(test)]\nmod tests {\n    _ => 2,\n}\n"),
            ("crates/core/src/record/decision/claim.rs", "_ => 1,\n"),
            ("crates/core/src/money.rs", "_ => 1,\n"),
        ]);
        let found: Vec<(String, usize)> = check(&tree).into_iter().map(|finding| (finding.path, finding.line)).collect();
        assert_eq!(
            found,
            [("crates/core/src/payment/transition.rs".to_owned(), 2), ("crates/core/src/record/decision/claim.rs".to_owned(), 1)]
        );
    }
}
