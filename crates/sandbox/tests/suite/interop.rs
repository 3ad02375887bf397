//! SDKs that merchants use, unpatched, against a running sandbox. The scripts are in `tests/interop/` at the repository's root.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use payonce_sandbox::WallClock;
use tokio::process::Command;

use crate::world::World;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn python() -> PathBuf {
    let named = std::env::var_os("PAYONCE_PYTHON").map(PathBuf::from);
    let python = named.unwrap_or_else(|| root().join(".venv/bin/python"));
    assert!(python.exists(), "no Python at {}: run `make setup`, or name one by PAYONCE_PYTHON", python.display());
    python
}

async fn run(script: &str) {
    let world = World::with(|options| options.clock = Arc::new(WallClock)).await;
    let output = Command::new(python()).arg(root().join("tests/interop").join(script)).arg(&world.base).kill_on_drop(true).output().await;
    let output = output.expect("Python runs");
    let told = String::from_utf8_lossy(&output.stdout);
    println!("{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}: see its output above; a missing package is installed by `make setup`");
    // A script that checks nothing must not pass.
    let passed: Option<u32> = told.lines().last().and_then(|line| line.strip_suffix(" checks passed")).and_then(|count| count.parse().ok());
    assert!(passed.is_some_and(|count| count >= 15), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alipay_s_own_sdk_agrees_with_the_sandbox() {
    run("alipay_sdk.py").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_alipay_sdk_agrees_with_the_sandbox() {
    run("python_alipay_sdk.py").await;
}
