//! The text files of the repository, in memory.

use std::{collections::BTreeMap, fs, io, path::Path, process::Command};

/// Path (relative, with `/`) to text. A file that is not UTF-8 is kept as an empty text, so that it still exists.
#[derive(Debug, Default)]
pub(crate) struct Tree(BTreeMap<String, String>);

impl Tree {
    /// What git tracks, and what it would track: new files count, ignored ones do not.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let listed =
            Command::new("git").current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).output()?;
        if !listed.status.success() {
            return Err(io::Error::other(format!("git ls-files: {}", String::from_utf8_lossy(&listed.stderr).trim())));
        }
        let names = String::from_utf8_lossy(&listed.stdout).into_owned();
        // A file that was deleted but not yet committed is listed all the same.
        let files = names.split('\0').filter(|name| root.join(name).is_file());
        files
            .map(|name| Ok((name.to_owned(), String::from_utf8(fs::read(root.join(name))?).unwrap_or_default())))
            .collect::<io::Result<_>>()
            .map(Self)
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// Rust files below a folder, each with its part before the tests.
    pub(crate) fn production_rust<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let outside_src = |path: &str| path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "benches"));
        self.files()
            .filter(move |(path, _)| path.starts_with(folder) && path.ends_with(".rs") && !outside_src(path))
            .map(|(path, text)| (path, before_tests(text)))
    }

    /// Whether a file or a folder of this name exists.
    pub(crate) fn exists(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let inside = format!("{path}/");
        self.0.contains_key(path) || self.0.keys().any(|known| known.starts_with(&inside))
    }
}

/// Tests stand at the end of a file, after the attribute that keeps them out of a build.
fn before_tests(text: &str) -> &str {
    text.find("\n#[cfg(test)]\nmod ").map_or(text, |end| &text[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_at_the_end_are_not_production() {
        assert_eq!(before_tests("fn a() {}\n\n#[cfg(test)]\nmod tests {}\n"), "fn a() {}\n\n");
        assert_eq!(before_tests("#[cfg(test)]\nuse x;\nfn a() {}\n"), "#[cfg(test)]\nuse x;\nfn a() {}\n");
    }

    #[test]
    fn a_folder_exists_through_its_files() {
        let tree = Tree::of(&[("crates/core/src/lib.rs", "")]);
        assert!(tree.exists("crates/core/") && tree.exists("crates/core/src/lib.rs"));
        assert!(!tree.exists("crates/cor"));
    }
}
