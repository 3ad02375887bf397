//! The checks. Each is a function from the files to findings; what is allowed stands in a table at its top.

mod architecture;
mod arrows;
mod errors;
mod length;
mod rules;
mod sql;
mod words;

use std::fmt;

use crate::tree::Tree;

/// One thing that is not as it has to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    /// From 1; 0 where no line is meant.
    line: usize,
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

type Check = fn(&Tree) -> Vec<Finding>;

/// Name and function of every check.
pub(crate) const CHECKS: &[(&str, Check)] = &[
    ("arrows", arrows::check),
    ("sql", sql::check),
    ("rules", rules::check),
    ("length", length::check),
    ("words", words::check),
    ("architecture", architecture::check),
    ("errors", errors::check),
];

/// The lines of a text, numbered from 1.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}
