//! Where the server's programs are.
//!
//! Debian keeps them out of the search path, one folder per major version; elsewhere they are on it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Debian's place for them.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The folder with `initdb` and `postgres`; the newest version where there are several.
pub(crate) fn folder() -> io::Result<PathBuf> {
    folder_among(debian_folders(Path::new(DEBIAN)).into_iter().chain(search_path()))
}

fn folder_among(folders: impl IntoIterator<Item = PathBuf>) -> io::Result<PathBuf> {
    let complete = |folder: &PathBuf| ["initdb", "postgres"].iter().all(|name| folder.join(name).is_file());
    let message = "PostgreSQL's server programs (initdb, postgres) are neither under /usr/lib/postgresql nor on PATH; run `make setup`";
    folders.into_iter().find(complete).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, message))
}

/// A program on the search path, or where Debian keeps those of an administrator.
pub(crate) fn program(name: &str) -> io::Result<PathBuf> {
    let folders = ["/usr/sbin", "/usr/bin"].into_iter().map(PathBuf::from).chain(search_path());
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("{name} is not installed; run `make setup`"));
    folders.map(|folder| folder.join(name)).find(|path| path.is_file()).ok_or_else(missing)
}

fn debian_folders(root: &Path) -> Vec<PathBuf> {
    let versions = fs::read_dir(root).into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let mut versions: Vec<u32> = versions.collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    versions.into_iter().map(|version| root.join(version.to_string()).join("bin")).collect()
}

fn search_path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_postgresql_a_test_is_told_what_to_run() {
        let refusal = folder_among(debian_folders(Path::new("/nowhere"))).expect_err("there is none");
        assert!(refusal.to_string().contains("make setup"), "{refusal}");
        let refusal = program("no-such-pooler").expect_err("there is none");
        assert!(refusal.to_string().contains("make setup"), "{refusal}");
    }
}
