//! Wrong usage and environments in which nothing can be done: exit 2, one sentence, a hint, nothing on stdout.

use crate::binary::{Ended, Folder, run};

fn refused(args: &str) -> Ended {
    let folder = Folder::new();
    let ended = run(folder.path(), args);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{args}: {ended:?}");
    ended
}

#[test]
fn wrong_usage_is_told_by_what_was_typed() {
    for args in [
        "nonsense",
        "payment",
        "payment show",
        "payment list --limit 0",
        "payment list --status lost",
        "payment resolve pay_1 --outcome maybe --evidence x",
        "apikey create",
        "serve --listen",
        "sandbox --listen nowhere",
        "demo --channel nobody",
        "bench",
    ] {
        insta::assert_snapshot!(format!("usage {args}").replace([' ', '-'], "_"), refused(args).stderr);
    }
}

#[test]
fn an_environment_in_which_nothing_can_be_done_is_a_fault_with_a_hint() {
    for args in [
        "payment list",
        "payment list --database sqlite://missing/nowhere.db",
        "payment list --database mysql://localhost/x",
        "serve --config missing.toml",
        "account add a --tenant t --channel nobody --settings x.json",
        "account add a --tenant t --channel alipay --settings missing.json",
    ] {
        let ended = refused(args);
        assert!(ended.stderr.starts_with("error: "), "{ended:?}");
        insta::assert_snapshot!(format!("fault {args}").replace([' ', '-', '/', ':'], "_"), ended.stderr);
    }
}

#[test]
fn a_database_that_does_not_answer_is_a_fault_and_its_password_is_not_printed() {
    let ended = refused("payment list --database postgres://me:hunter2@127.0.0.1:1/x");
    assert!(ended.stderr.starts_with("error: ") && ended.stderr.contains("hint: "), "{ended:?}");
    assert!(!ended.stderr.contains("hunter2"), "{ended:?}");
}

/// Nothing was asked to be made, so nothing is.
#[test]
fn a_command_that_looks_makes_no_file() {
    let folder = Folder::new();
    let ended = run(folder.path(), "payment list");
    assert_eq!(ended.code, 2);
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0);
}

/// `payonce proxy` is not built: it must not be there rather than do half of it.
#[test]
fn what_is_not_built_is_no_command() {
    assert!(refused("proxy --upstream http://127.0.0.1:1").stderr.contains("unrecognized subcommand"));
}
