//! The channels' suites: vectors of every channel, each channel's own rules, and the transport against misbehaving peers.

mod alipay;
mod transport;
mod vectors;
