//! What the rules need from the outside: one trait per family of tables. Stores implement them; flows and the guard call them.

pub mod directory;
pub mod inbox;
pub mod outbox;
pub mod payments;
pub mod records;

/// Why a store could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreFault {
    /// Not reachable, out of connections, or shutting down. Nothing was written by this call.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// The connection broke after the statement was sent: it may or may not have been applied. Read back before trying again.
    #[error("the store's answer was lost: {0}")]
    Ambiguous(String),
    /// A serialisation failure or deadlock: the transaction was rolled back and may be repeated as it is.
    #[error("the store asks to repeat the transaction: {0}")]
    Retry(String),
    /// A row or statement is wrong. Repeating it will not help.
    #[error("the store refused: {0}")]
    Refused(String),
}

/// The whole of a store.
pub trait Store: records::Records + payments::Payments + inbox::Inbox + outbox::Outbox + directory::Directory {}
impl<T: records::Records + payments::Payments + inbox::Inbox + outbox::Outbox + directory::Directory> Store for T {}
