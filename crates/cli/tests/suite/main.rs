//! The binary from the outside: what it prints, how it ends, and that what the documentation says can be pasted.

mod binary;
mod demo;
mod docs;
mod help;
mod outputs;
mod readme;
mod serve;
mod usage;
