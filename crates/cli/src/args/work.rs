//! `migrate`, `doctor`, and the workers' jobs by hand.

use clap::Args;

use super::shared::{Form, Place};

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Args)]
pub(crate) struct Reconcile {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Ask about everything that is due now, then end; without it, go on until interrupted
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Args)]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub(crate) place: Place,
    /// One bounded round, then end; without it, go on until interrupted
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) form: Form,
}
