//! `--help` and `--version` of every command.

use crate::binary::{Folder, run};

const COMMANDS: [&str; 35] = [
    "",
    "serve",
    "sandbox",
    "demo",
    "migrate",
    "doctor",
    "apikey",
    "apikey create",
    "apikey list",
    "apikey revoke",
    "account",
    "account add",
    "account list",
    "account check",
    "payment",
    "payment show",
    "payment list",
    "payment sync",
    "payment close",
    "payment resolve",
    "refund",
    "refund show",
    "key",
    "key show",
    "key list",
    "key release",
    "inbox",
    "inbox list",
    "inbox show",
    "inbox retry",
    "event",
    "event list",
    "reconcile",
    "sweep",
    "bench",
];

#[test]
fn every_command_says_what_it_does() {
    let folder = Folder::new();
    for command in COMMANDS {
        let ended = run(folder.path(), &format!("{command} --help"));
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{command}");
        insta::assert_snapshot!(format!("help {command}").trim().replace(' ', "_"), ended.stdout);
    }
}

/// A command that is not in the list above would have no snapshot.
#[test]
fn no_command_is_forgotten() {
    let folder = Folder::new();
    for command in COMMANDS {
        let help = run(folder.path(), &format!("{command} --help")).stdout;
        let Some((_, list)) = help.split_once("Commands:\n") else { continue };
        for line in list.lines().take_while(|line| line.starts_with("  ")) {
            let verb = line.split_whitespace().next().expect("a name");
            let whole = format!("{command} {verb}");
            assert!(COMMANDS.contains(&whole.trim()), "{whole}");
        }
    }
}

#[test]
fn the_version_is_one_line() {
    let folder = Folder::new();
    let ended = run(folder.path(), "--version");
    assert_eq!((ended.code, ended.stdout, ended.stderr), (0, format!("payonce {}\n", env!("CARGO_PKG_VERSION")), String::new()));
}

#[test]
fn a_password_in_the_environment_is_not_shown_by_help() {
    let folder = Folder::new();
    let mut command = crate::binary::command(folder.path());
    command.args(["payment", "list", "--help"]).env("PAYONCE_DATABASE_URL", "postgres://me:hunter2@localhost/x");
    let ended = crate::binary::ended(&mut command);
    assert!(ended.stdout.contains("PAYONCE_DATABASE_URL") && !ended.stdout.contains("hunter2"), "{}", ended.stdout);
}
