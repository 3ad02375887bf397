//! One file per verb, a folder per noun. A command opens the installation, does one thing, prints it.

mod account;
mod apikey;
mod bench;
mod doctor;
mod event;
mod inbox;
mod key;
mod migrate;
mod payment;
mod reconcile;
mod refund;
mod sandbox;
mod serve;
mod sweep;

use crate::args::Command;
use crate::args::access::{Account, Apikey};
use crate::args::book::{Event, Inbox, Key, Payment, Refund};
use crate::demo;
use crate::exit::{Exit, Fault};

/// Runs what was typed.
pub(crate) async fn run(command: Command) -> Result<Exit, Fault> {
    match command {
        Command::Serve(args) => serve::run(args).await,
        Command::Sandbox(args) => sandbox::run(args).await,
        Command::Demo(args) => demo::run(args).await,
        Command::Migrate(args) => migrate::run(args).await,
        Command::Doctor(args) => doctor::run(args).await,
        Command::Apikey(Apikey::Create(args)) => apikey::create::run(args).await,
        Command::Apikey(Apikey::List(args)) => apikey::list::run(args).await,
        Command::Apikey(Apikey::Revoke(args)) => apikey::revoke::run(args).await,
        Command::Account(Account::Add(args)) => account::add::run(args).await,
        Command::Account(Account::List(args)) => account::list::run(args).await,
        Command::Account(Account::Check(args)) => account::check::run(args).await,
        Command::Payment(Payment::Show(args)) => payment::show::run(args).await,
        Command::Payment(Payment::List(args)) => payment::list::run(args).await,
        Command::Payment(Payment::Sync(args)) => payment::sync::run(args).await,
        Command::Payment(Payment::Close(args)) => payment::close::run(args).await,
        Command::Payment(Payment::Resolve(args)) => payment::resolve::run(args).await,
        Command::Refund(Refund::Show(args)) => refund::show::run(args).await,
        Command::Key(Key::Show(args)) => key::show::run(args).await,
        Command::Key(Key::List(args)) => key::list::run(args).await,
        Command::Key(Key::Release(args)) => key::release::run(args).await,
        Command::Inbox(Inbox::List(args)) => inbox::list::run(args).await,
        Command::Inbox(Inbox::Show(args)) => inbox::show::run(args).await,
        Command::Inbox(Inbox::Retry(args)) => inbox::retry::run(args).await,
        Command::Event(Event::List(args)) => event::list::run(args).await,
        Command::Reconcile(args) => reconcile::run(args).await,
        Command::Sweep(args) => sweep::run(args).await,
        Command::Bench(args) => bench::run(args).await,
    }
}
