//! The guard against its cases: the engine, the writer, the fence, and the tower layer, on the memory store with faults on demand.

mod engine;
mod faults;
mod fence;
mod layer;
mod model;
mod presets;
mod support;
mod writer;
