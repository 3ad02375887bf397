//! Named places in the code where a test can make the process die, panic, stall or turn back.
//!
//! What comes in: a name, and `PAYONCE_FAILPOINTS` (`name=abort|panic|sleep(MS)|return`, separated by commas or semicolons), read once.
//! What goes out: whether the caller shall turn back. Without the feature `failpoints` a hit is nothing at all.
//!
//! Bad entries stop the process at the first hit: a test that believes it has set a failpoint must not pass without it.

/// Passes the place `name`. True where the caller shall return at once (`return`); `abort` kills the process as `kill -9` would.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub async fn hit(_name: &str) -> bool {
    false
}

#[cfg(feature = "failpoints")]
pub use active::hit;

#[cfg(feature = "failpoints")]
mod active {
    use std::collections::HashMap;
    use std::sync::OnceLock;
    use std::time::Duration;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Action {
        Abort,
        Panic,
        Sleep(Duration),
        Return,
    }

    static POINTS: OnceLock<HashMap<String, Action>> = OnceLock::new();

    /// Passes the place `name`. True where the caller shall return at once (`return`); `abort` kills the process as `kill -9` would.
    pub async fn hit(name: &str) -> bool {
        match POINTS.get_or_init(configured).get(name) {
            None => false,
            Some(Action::Return) => true,
            Some(Action::Sleep(by)) => {
                tokio::time::sleep(*by).await;
                false
            }
            Some(Action::Panic) => panic!("failpoint {name}"),
            Some(Action::Abort) => kill_self(),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the one variable of test builds; release builds do not hold this module")]
    fn configured() -> HashMap<String, Action> {
        let text = std::env::var("PAYONCE_FAILPOINTS").unwrap_or_default();
        match parse(&text) {
            Some(points) => points,
            None => {
                eprintln!("PAYONCE_FAILPOINTS cannot be read: {text}");
                std::process::abort()
            }
        }
    }

    fn parse(text: &str) -> Option<HashMap<String, Action>> {
        let entries = text.split([',', ';']).map(str::trim).filter(|entry| !entry.is_empty());
        entries
            .map(|entry| entry.split_once('=').and_then(|(name, action)| Some((name.trim().to_owned(), parse_action(action.trim())?))))
            .collect()
    }

    fn parse_action(text: &str) -> Option<Action> {
        match text {
            "abort" => Some(Action::Abort),
            "panic" => Some(Action::Panic),
            "return" => Some(Action::Return),
            other => {
                let ms = other.strip_prefix("sleep(")?.strip_suffix(')')?;
                ms.parse().ok().map(|ms| Action::Sleep(Duration::from_millis(ms)))
            }
        }
    }

    #[expect(unsafe_code, reason = "no destructor and no signal handler may run, as under kill -9; std has no call for that")]
    fn kill_self() -> ! {
        // SAFETY: kill and getpid have no preconditions.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        std::process::abort()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn entries_are_read_whole_or_not_at_all() {
            let points = parse("guard.claimed=abort; charge.request_sent = sleep(250),x=return,y=panic;").expect("well-formed");
            assert_eq!(points.get("guard.claimed"), Some(&Action::Abort));
            assert_eq!(points.get("charge.request_sent"), Some(&Action::Sleep(Duration::from_millis(250))));
            assert_eq!((points.get("x"), points.get("y"), points.len()), (Some(&Action::Return), Some(&Action::Panic), 4));
            assert_eq!(parse("").map(|p| p.len()), Some(0));
            for bad in ["a", "a=", "a=explode", "a=sleep(x)", "a=sleep(1", "=;b"] {
                assert_eq!(parse(bad), None, "{bad}");
            }
        }

        /// Runs itself again as a child with a failpoint set, because the child does not survive it.
        #[test]
        fn abort_dies_as_under_kill_9_and_return_turns_back() {
            let hit =
                || tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(super::hit("here"));
            if std::env::var_os("PAYONCE_FAILPOINTS").is_some() {
                assert!(hit(), "set to return");
                return;
            }
            let child = |points: &str| {
                let this = std::env::current_exe().expect("this test");
                let mut child = std::process::Command::new(this);
                child
                    .args(["--exact", "active::tests::abort_dies_as_under_kill_9_and_return_turns_back"])
                    .env("PAYONCE_FAILPOINTS", points);
                child.output().expect("a child").status
            };
            assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child("here=abort")), Some(libc::SIGKILL));
            assert_eq!(child("here=return").code(), Some(0));
            assert_ne!(child("here=panic").code(), Some(0));
            assert_ne!(child("elsewhere=return").code(), Some(0));
            assert!(!child("here=explode").success());
        }
    }
}
