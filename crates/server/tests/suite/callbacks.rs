//! callbacks
