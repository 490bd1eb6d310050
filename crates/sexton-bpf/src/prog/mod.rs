//! One module per BPF program.

pub mod cgroups;
pub mod exits;
pub mod memcg;
pub mod napi;
pub mod offcpu;
pub mod runq;
pub mod stacks;
