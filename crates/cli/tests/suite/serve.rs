//! `payonce serve` and `payonce sandbox`: the lines that others read, where settings come from, and how they end.

use crate::binary::{Folder, Service, run};

#[test]
fn serve_says_its_lines_and_listens_last() {
    let folder = Folder::new();
    let env = [("PAYONCE_SANDBOX_API_KEY", "first-key-of-the-test"), ("PAYONCE_SANDBOX_API_KEY_2", "second-key-of-the-test")];
    let service = Service::start(folder.path(), &["serve", "--sandbox", "--listen", "127.0.0.1:0"], &env);
    let keys: Vec<&str> = service.said.iter().filter_map(|line| line.strip_prefix("api key ")).collect();
    assert_eq!(keys, ["first-key-of-the-test", "second-key-of-the-test"]);
    assert!(service.fact("sandbox on ").starts_with("http://127.0.0.1:"));
    let address = service.fact("listening on http://127.0.0.1:");
    assert!(address.parse::<u16>().is_ok_and(|port| port != 0), "{address}");
    assert!(service.said.last().is_some_and(|line| line.starts_with("listening on ")));
}

#[test]
fn a_service_ends_with_0_on_sigterm_and_when_its_parent_is_gone() {
    let folder = Folder::new();
    let mut service = Service::start(folder.path(), &["serve", "--listen", "127.0.0.1:0"], &[]);
    assert_eq!(service.signal("TERM"), Some(0));
    let mut service = Service::start(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--until-stdin-closes"], &[]);
    assert_eq!(service.close_stdin(), Some(0));
    let mut sandbox = Service::start(folder.path(), &["sandbox", "--listen", "127.0.0.1:0"], &[]);
    assert!(sandbox.said.iter().all(|line| line.starts_with("listening on http://127.0.0.1:")), "{:?}", sandbox.said);
    assert_eq!(sandbox.signal("INT"), Some(0));
}

#[test]
fn a_sandbox_that_runs_is_used() {
    let folder = Folder::new();
    let sandbox = Service::start(folder.path(), &["sandbox", "--listen", "127.0.0.1:0"], &[]);
    let url = sandbox.fact("listening on ");
    let service = Service::start(folder.path(), &["serve", "--sandbox", "--listen", "127.0.0.1:0"], &[("PAYONCE_SANDBOX_URL", &url)]);
    assert_eq!(service.fact("sandbox on "), url);
    let check = run(folder.path(), "account check");
    assert_eq!(check.code, 0, "{check:?}");
}

/// Flags beat the environment, which beats the file.
#[test]
fn settings_come_from_flag_then_environment_then_file() {
    let folder = Folder::new();
    let url = |name: &str| format!("sqlite://{}", folder.path().join(name).display());
    let made = |name: &str| folder.path().join(name).exists();
    std::fs::write(folder.path().join("payonce.toml"), format!("[database]\nurl = \"{}\"\n", url("file.db"))).expect("the file is written");
    let migrate = |args: &[&str], env: Option<&str>| {
        let mut command = crate::binary::command(folder.path());
        command.arg("migrate").args(args);
        if let Some(env) = env {
            command.env("PAYONCE_DATABASE_URL", env);
        }
        let ended = crate::binary::ended(&mut command);
        assert_eq!(ended.code, 0, "{ended:?}");
    };
    migrate(&["--database", &url("flag.db")], Some(&url("environment.db")));
    assert_eq!((made("flag.db"), made("environment.db"), made("file.db")), (true, false, false));
    migrate(&[], Some(&url("environment.db")));
    assert_eq!((made("environment.db"), made("file.db")), (true, false));
    migrate(&[], None);
    assert!(made("file.db"));
}

#[test]
fn a_schema_that_is_missing_is_not_made_with_no_migrate() {
    let folder = Folder::new();
    let ended = run(folder.path(), "serve --listen 127.0.0.1:0 --no-migrate");
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.stderr.contains("error: ") && ended.stderr.contains("payonce migrate"), "{ended:?}");
}
