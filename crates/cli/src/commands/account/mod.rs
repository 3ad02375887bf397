//! `payonce account …`

pub(crate) mod add;
pub(crate) mod check;
pub(crate) mod list;

use payonce_core::channel::AccountName;

use crate::exit::Fault;

/// Parses an account's name.
fn named(name: &str) -> Result<AccountName, Fault> {
    AccountName::parse(name)
        .ok_or_else(|| Fault::new(format!("{name:?} is no account's name")).hint("1 to 64 letters, digits, `_` and `-`"))
}
