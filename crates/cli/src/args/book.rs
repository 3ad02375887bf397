//! `payment`, `refund`, `key`, `inbox` and `event`.

use clap::{Args, Subcommand, ValueEnum};

use super::shared::{Form, Limit, Place, Whose};

#[derive(Debug, Subcommand)]
pub(crate) enum Payment {
    /// Show a payment with its attempts, refunds and timeline
    Show(One),
    /// List payments, newest first
    List(PaymentList),
    /// Ask the channel now what became of a payment
    Sync(One),
    /// Close an unpaid payment at the channel
    Close(One),
    /// End an unknown outcome by hand, with evidence; kept in the timeline
    Resolve(PaymentResolve),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Refund {
    /// Show a refund
    Show(One),
}

/// One thing by its id.
#[derive(Debug, Args)]
pub(crate) struct One {
    /// Its id
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) whose: Whose,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Args)]
pub(crate) struct PaymentList {
    /// The merchant's own number
    #[arg(long, value_name = "ORDER")]
    pub(crate) order_id: Option<String>,
    /// pending, authorized, paid, closed, failed or review
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// Channel of any attempt
    #[arg(long, value_name = "NAME")]
    pub(crate) channel: Option<String>,
    /// Only payments older than this one
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<String>,
    #[command(flatten)]
    pub(crate) limit: Limit,
    #[command(flatten)]
    pub(crate) whose: Whose,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) form: Form,
}

/// What an operator found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// The channel has done it
    Succeeded,
    /// The channel has not done it and never will
    NeverHappened,
}

#[derive(Debug, Args)]
pub(crate) struct PaymentResolve {
    /// Its id
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// What really happened
    #[arg(long)]
    pub(crate) outcome: Outcome,
    /// How you know: a statement line, the channel's ticket number
    #[arg(long, value_name = "TEXT")]
    pub(crate) evidence: String,
    #[command(flatten)]
    pub(crate) whose: Whose,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Show the records of an idempotency key, in every scope
    Show(KeyShow),
    /// List the newest records
    List(KeyList),
    /// Remove a parked or lapsed record after you have made sure of the outcome
    Release(KeyRelease),
}

#[derive(Debug, Args)]
pub(crate) struct KeyShow {
    /// The idempotency key
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) whose: Whose,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Args)]
pub(crate) struct KeyList {
    #[command(flatten)]
    pub(crate) limit: Limit,
    #[command(flatten)]
    pub(crate) whose: Whose,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Args)]
pub(crate) struct KeyRelease {
    /// The idempotency key
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
    /// Method and route, as `key show` prints it; needed where the key was used in several
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Option<String>,
    #[command(flatten)]
    pub(crate) whose: Whose,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Inbox {
    /// List stored notifications, newest first
    List(InboxList),
    /// Show a stored notification
    Show(One),
    /// Settle a notification again, now
    Retry(One),
}

#[derive(Debug, Args)]
pub(crate) struct InboxList {
    /// waiting, settled, unmatched or foreign
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    #[command(flatten)]
    pub(crate) limit: Limit,
    #[command(flatten)]
    pub(crate) whose: Whose,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Event {
    /// List events in the order of the feed
    List(EventList),
}

#[derive(Debug, Args)]
pub(crate) struct EventList {
    /// Only events after this one (`evt_…`)
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<String>,
    #[command(flatten)]
    pub(crate) limit: Limit,
    #[command(flatten)]
    pub(crate) whose: Whose,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) form: Form,
}
