//! `payonce event …`

pub(crate) mod list;
