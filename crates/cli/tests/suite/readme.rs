//! What the README files say can be pasted: it is pasted, against a real service.

use std::path::Path;

use crate::binary::{Folder, Service, ended};

const MARK: &str = "<!-- A test runs this block against `payonce serve --sandbox`; both README files hold the same one. -->";

fn read(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

fn block(name: &str) -> String {
    let text = read(name);
    let (_, after) = text.split_once(MARK).unwrap_or_else(|| panic!("{name} has no marked block"));
    let (_, code) = after.split_once("```sh\n").expect("the block begins");
    let (code, _) = code.split_once("\n```").expect("the block ends");
    code.to_owned()
}

#[test]
fn the_block_is_the_same_in_both_languages() {
    assert_eq!(block("README.md"), block("README.zh-CN.md"));
}

/// Same sections, tables and code: a change in one language that is forgotten in the other shows.
#[test]
fn both_languages_have_the_same_build() {
    let shape = |name: &str| -> Vec<String> {
        let text = read(name);
        let lines = text.lines().filter(|line| line.starts_with('#') || line.starts_with("|-") || line.starts_with("```"));
        lines.map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(shape("README.md"), shape("README.zh-CN.md"));
}

#[test]
fn the_block_can_be_pasted_and_says_what_the_text_says() {
    let folder = Folder::new();
    let service = Service::start(folder.path(), &["serve", "--sandbox", "--listen", "127.0.0.1:0"], &[]);
    let mut shell = std::process::Command::new("bash");
    shell.arg("-c").arg(block("README.md")).current_dir(folder.path());
    shell.env("KEY", service.fact("api key ")).env("SANDBOX", service.fact("sandbox on ")).env("PAY", service.fact("listening on "));
    let ended = ended(&mut shell);
    let printed: Vec<&str> = ended.stdout.lines().map(str::trim).collect();
    let expected = [
        "take: 201",
        "replay: 201",
        "idempotency-replayed: true",
        "replay: same bytes",
        "changed: 422",
        "buyer: 200",
        "\"status\":\"paid\"",
        "refund 1: 201",
        "refund 2: 201",
        "refund 3: 422",
        "\"executed\":1",
        "\"executed\":1",
        "\"executed\":1",
    ];
    assert_eq!(printed, expected, "{ended:?}");
}
