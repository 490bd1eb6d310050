//! What BPF programs cost, as the kernel measures it.

use std::os::fd::{FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys;
use libbpf_rs::query::ProgInfoIter;

/// Has the kernel measure every BPF program for as long as it lives. Measuring costs some
/// 20 ns a run, so it is for benchmarks.
#[derive(Debug)]
pub struct Meter {
    _on: OwnedFd,
}

/// What one program has cost since measuring began, or since it was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// Its name, cut to 15 bytes by the kernel.
    pub program: String,
    /// How often it ran.
    pub runs: u64,
    /// How long all runs took.
    pub ns: u64,
    /// How often it was to run but another program had the CPU.
    pub missed: u64,
}

impl Meter {
    /// Begins to measure; `None` when the kernel does not let us.
    pub fn start() -> Option<Self> {
        // SAFETY: a system call without pointers.
        let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if fd < 0 {
            return None;
        }
        // SAFETY: it is open, and nobody else's.
        let on = unsafe { OwnedFd::from_raw_fd(fd) };
        Some(Self { _on: on })
    }

    /// The costs of all programs whose name begins so.
    pub fn read(&self, prefix: &str) -> Vec<Cost> {
        let all = ProgInfoIter::default().map(|program| Cost {
            program: program.name.to_string_lossy().into_owned(),
            runs: program.run_cnt,
            ns: program.run_time_ns,
            missed: program.recursion_misses,
        });
        all.filter(|cost| cost.program.starts_with(prefix))
            .collect()
    }
}
