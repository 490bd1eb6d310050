//! What BPF programs cost, as the kernel counts it. Counting itself costs some twenty
//! nanoseconds a run, so it is for benches, not for every day.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

use libbpf_rs::libbpf_sys::{BPF_STATS_RUN_TIME, bpf_enable_stats};
use libbpf_rs::query::ProgInfoIter;

/// The runs of a program since it was loaded, while they were counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// How often it ran.
    pub n_runs: u64,
    /// How long it ran in all.
    pub time: Duration,
}

/// Has the kernel count until it is dropped.
#[derive(Debug)]
pub struct Counting {
    _enabled: OwnedFd,
}

impl Counting {
    /// Begins to count the runs of all programs there are.
    pub fn start() -> io::Result<Self> {
        // SAFETY: takes a number, gives a descriptor.
        let fd = unsafe { bpf_enable_stats(BPF_STATS_RUN_TIME) };
        if fd < 0 {
            return Err(io::Error::from_raw_os_error(-fd));
        }
        Ok(Self {
            // SAFETY: the kernel has just given us this descriptor.
            _enabled: unsafe { OwnedFd::from_raw_fd(fd) },
        })
    }

    /// The cost of the programs whose name begins so. The kernel keeps 15 bytes of a name;
    /// programs that share them are added up.
    pub fn costs(&self, prefix: &str) -> BTreeMap<String, Cost> {
        let mut costs: BTreeMap<String, Cost> = BTreeMap::new();
        for program in ProgInfoIter::default() {
            let name = program.name.to_string_lossy();
            if name.starts_with(prefix) {
                let cost = costs.entry(name.into_owned()).or_default();
                cost.n_runs += program.run_cnt;
                cost.time += Duration::from_nanos(program.run_time_ns);
            }
        }
        costs
    }
}
