//! The channels' own side, with the true ledger and faults on demand.
