//! The rules of core from outside: the grids, the cases at rule level, and random walks that hold the invariants at every step.

mod docs;
mod grid;
mod payments;
mod refunds;
mod story;
mod totals;
mod walk;
