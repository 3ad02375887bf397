//! Progress of long work: one line that is written over on a terminal, nothing in a pipe.

use std::cell::Cell;
use std::io::{self, IsTerminal as _, Write as _};

/// A line on stderr that says what is going on.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: bool,
    /// Whether something stands there now.
    stands: Cell<bool>,
}

impl Progress {
    /// Shown if stderr is a terminal.
    pub(crate) fn new() -> Self {
        Self { shown: io::stderr().is_terminal(), stands: Cell::new(false) }
    }

    /// Replaces the line.
    pub(crate) fn say(&self, text: &str) {
        if self.shown {
            self.stands.set(!text.is_empty());
            let mut err = io::stderr().lock();
            // A terminal that went away is no reason to stop the work.
            let _ = write!(err, "\r\x1b[2K{text}").and_then(|()| err.flush());
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        if self.stands.get() {
            self.say("");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
