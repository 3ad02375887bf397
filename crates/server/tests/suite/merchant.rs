//! merchant
