//! The sandbox seen from outside: its channels' rules, its faults, its notifications, its control calls.

mod adapter;
mod alipay_rules;
mod alipay_wire;
mod cashier;
mod concurrency;
mod control;
mod faults;
mod interop;
mod notifications;
mod receiver;
mod vectors;
mod world;
