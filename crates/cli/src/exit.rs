//! How a command ends: 0 done, 1 the answer is no, 2 usage or environment fault.
//!
//! In: what a command came to. Out: the process's exit code, and for a fault one sentence with a hint set apart.

use std::fmt;
use std::process::ExitCode;

use payonce_core::ports::StoreFault;
use payonce_flows::FlowFault;

/// How a command that ran to its end came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// The answer is no: not found, refused by the books, a check that failed.
    No,
    /// Wrong usage, or an environment in which nothing can be done.
    Fault,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => Self::SUCCESS,
            Exit::No => Self::from(1),
            Exit::Fault => Self::from(2),
        }
    }
}

/// Why a command could not run to its end.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// One sentence, without a full stop.
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
    /// `No` where the command was understood and the answer is no.
    pub(crate) exit: Exit,
}

impl Fault {
    /// A usage or environment fault.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None, exit: Exit::Fault }
    }

    /// The answer is no.
    pub(crate) fn no(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None, exit: Exit::No }
    }

    /// The same with what to do about it.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl From<StoreFault> for Fault {
    fn from(fault: StoreFault) -> Self {
        let hint = match &fault {
            StoreFault::Unavailable(_) => "is the database running, and is --database (or PAYONCE_DATABASE_URL) right?",
            StoreFault::Ambiguous(_) | StoreFault::Retry(_) => "run the command again",
            StoreFault::Refused(_) => {
                "run `payonce migrate` if the schema is older than this program, and `payonce doctor` to see what else is wrong"
            }
        };
        Self::new(fault.to_string()).hint(hint)
    }
}

impl From<FlowFault> for Fault {
    fn from(fault: FlowFault) -> Self {
        match fault {
            FlowFault::Store(fault) => fault.into(),
            FlowFault::Sealed(_) => {
                Self::new(fault.to_string()).hint("`secrets.key_file` must be the file that this database was written with")
            }
            FlowFault::Account(..) => Self::new(fault.to_string()).hint("see `payonce account list` and `payonce account check NAME`"),
            FlowFault::Busy => Self::new(fault.to_string()).hint("run the command again"),
            FlowFault::Violates(_) => Self::new(fault.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_does_not_answer_is_an_environment_fault_with_a_hint() {
        let fault = Fault::from(FlowFault::Store(StoreFault::Unavailable("refused".to_owned())));
        assert_eq!(fault.exit, Exit::Fault);
        assert!(fault.hint.is_some_and(|hint| hint.contains("--database")));
        assert_eq!(Fault::no("x").hint("y").exit, Exit::No);
    }
}
