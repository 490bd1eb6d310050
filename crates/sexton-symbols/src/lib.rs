//! One symbolizer for live and imported stacks: addresses in, names of functions out.
//!
//! A function has the same name wherever it was seen. [`live`] names addresses of the running
//! kernel and of running processes; [`recorded`] names places that a recording of perf tells
//! of. Both read the same files with the same readers: ELF files and their debug files
//! ([`elf`], [`code`]), `/proc/kallsyms` ([`kallsyms`]), and what run-time compilers write
//! ([`perf_map`]).
//!
//! The naming rule: a name is what its author wrote ([`demangle`]), templates kept, without
//! parameters, return type and Rust's hash. Of several symbols at one address, the one that
//! perf would choose ([`choice`]).
//!
//! All of these files are other people's. None is mapped, because its owner may cut it while
//! it is read, and every size is bounded before it is used.

pub mod choice;
pub mod code;
pub mod debug_file;
pub mod demangle;
pub mod elf;
pub mod kallsyms;
pub mod live;
pub mod perf_map;
pub mod recorded;
pub mod source;
pub mod unwinding;
pub mod vdso;
