//! BPF programs of sexton, their loaders, and what the kernel must offer them.
//!
//! Each program is three files of one stem in `prog/`: `<name>.bpf.c`, `<name>.h`
//! for the types both sides use, and `<name>.rs`, the safe wrapper.
#![allow(unsafe_code, reason = "kernel memory is shared with the BPF programs")]

pub mod prog;
pub mod stats;
pub mod types;

mod core_clock;
mod error;
mod loaded;
mod mapped;
mod meter;
mod perf_event;
mod probe;
mod ring;

pub use error::LoadError;
pub use meter::{Cost, Meter};
pub use probe::shares_memory;
