//! Puts the pages of `docs/errors/` into the program, so that the address in a problem's `type` answers wherever it runs.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    println!("cargo::rerun-if-changed={}", pages.display());
    let mut found: Vec<(String, String)> = Vec::new();
    // A tree without its docs still builds.
    for entry in fs::read_dir(&pages).into_iter().flatten() {
        let path = entry?.path();
        let code = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        if path.extension().is_some_and(|end| end == "md")
            && code.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        {
            found.push((code, fs::canonicalize(path)?.display().to_string()));
        }
    }
    found.sort();
    let mut source = String::from("/// Every page by its code.\nconst ERROR_PAGES: &[(&str, &str)] = &[\n");
    for (code, path) in found {
        let _ = writeln!(source, "    ({code:?}, include_str!({path:?})),");
    }
    source.push_str("];\n");
    let out = env::var_os("OUT_DIR").map(|dir| Path::new(&dir).join("error_pages.rs"));
    out.map_or_else(|| Err(io::Error::other("no OUT_DIR")), |out| fs::write(out, source))
}
