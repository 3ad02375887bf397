//! The two stores diff side by side: the same statements under the same names, each with its reason.

use std::collections::BTreeSet;

use super::Finding;
use crate::tree::Tree;

const STORES: [&str; 2] = ["crates/store-postgres", "crates/store-sqlite"];
const FOLDERS: [&str; 2] = ["sql", "migrations"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in FOLDERS {
        let [first, second] = STORES.map(|store| names(tree, &format!("{store}/{folder}/")));
        for (have, lack, store) in [(&first, &second, STORES[1]), (&second, &first, STORES[0])] {
            findings.extend(
                have.difference(lack).map(|name| Finding::new(&format!("{store}/{folder}/{name}"), 0, "missing; the other store has it")),
            );
        }
    }
    for (path, text) in tree.files().filter(|(path, _)| path.contains("/sql/") && path.ends_with(".sql")) {
        if !text.starts_with("--") {
            findings.push(Finding::new(path, 1, "a statement begins with a comment that says why"));
        }
    }
    findings
}

fn names<'a>(tree: &'a Tree, folder: &str) -> BTreeSet<&'a str> {
    tree.files().filter_map(|(path, _)| path.strip_prefix(folder)).filter(|name| name.ends_with(".sql")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_that_one_store_lacks_is_found() {
        let tree = Tree::of(&[
            ("crates/store-postgres/sql/records/claim.sql", "-- why\nSELECT 1;"),
            ("crates/store-sqlite/sql/records/claim.sql", "SELECT 1;"),
            ("crates/store-sqlite/sql/records/renew.sql", "-- why\nSELECT 1;"),
        ]);
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/store-postgres/sql/records/renew.sql: missing"), "{found:?}");
        assert!(found[1].starts_with("crates/store-sqlite/sql/records/claim.sql:1: "), "{found:?}");
    }
}
