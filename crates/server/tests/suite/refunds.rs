//! refunds
