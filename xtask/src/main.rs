//! Work on the repository itself: `cargo run -p xtask -- tidy`.
//!
//! What comes in: the files of the repository. What goes out: findings, one a line, as `path:line: what`. It never writes a file.

mod tidy;
mod tree;

use std::{env, path::Path, process::ExitCode};

use tree::Tree;

fn main() -> ExitCode {
    match env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [verb] if verb == "tidy" => run_tidy(),
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy");
            ExitCode::from(2)
        }
    }
}

fn run_tidy() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let tree = match Tree::read(root) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("tidy: {error}");
            return ExitCode::from(2);
        }
    };
    let mut findings = 0;
    for (name, check) in tidy::CHECKS {
        for finding in check(&tree) {
            println!("{finding} [{name}]");
            findings += 1;
        }
    }
    if findings > 0 {
        eprintln!("tidy: {findings} findings");
        return ExitCode::FAILURE;
    }
    eprintln!("tidy: {} checks over {} files, nothing found", tidy::CHECKS.len(), tree.len());
    ExitCode::SUCCESS
}
