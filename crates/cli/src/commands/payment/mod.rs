//! `payonce payment …`

pub(crate) mod close;
pub(crate) mod list;
pub(crate) mod resolve;
pub(crate) mod show;
pub(crate) mod sync;

use payonce_core::payment::{Payment, view};

use crate::exit::Fault;
use crate::printer::Printer;

/// Prints a payment in the API's form, without what the buyer has to do: that holds tokens (I12).
fn print(json: bool, payment: &Payment) -> Result<(), Fault> {
    let attempt =
        payment.newest().map_or_else(|| "no attempt".to_owned(), |row| format!("{} {} {}", row.channel, row.method, row.status.as_str()));
    let text = format!("{}  order {}  {}  {}  ({attempt})", payment.id, payment.order_id, payment.amount, payment.status.as_str());
    Printer::new(json).either(&text, &view::payment(payment))
}
