//! Code that the kernel makes while it is sampled: BPF programs come and go, and
//! `/proc/kallsyms` says where they begin but not where they end.

use sexton_host::perf::{Ask, Code, Watch, What};
use sexton_host::{Host, machine};

/// What a core's ring holds: some 200 programs between two polls.
const RING_BYTES: usize = 1 << 14;

/// Hears of such code.
#[derive(Debug)]
pub(super) struct Made {
    watch: Watch,
    /// Every core is heard: a program may be loaded on any.
    is_complete: bool,
    n_lost: u64,
}

impl Made {
    /// Begins to listen. Where the kernel refuses that (before 5.1, or without root), nothing
    /// will be known.
    pub(super) fn open(host: &Host) -> Self {
        let mut made = Self {
            watch: Watch::new(Ask::MadeCode, RING_BYTES),
            is_complete: true,
            n_lost: 0,
        };
        made.follow_cores(&machine::online_cpus(host).unwrap_or_default());
        made
    }

    /// Listens to cores that came online, and to those no more that went.
    pub(super) fn follow_cores(&mut self, online: &[u32]) {
        let refused = self.watch.follow_cores(online).is_some();
        self.is_complete = !refused && !online.is_empty();
    }

    /// What was made since the last time. `None` when that is not known. For after samples were
    /// taken and before they are named: the kernel tells of code before it runs.
    pub(super) fn take(&mut self) -> Option<Vec<Code>> {
        let mut made = Vec::new();
        let malformed = self.watch.drain(|record| {
            if let What::Made(code) = &record.what {
                made.push(code.clone());
            }
        });
        let n_lost = self.watch.n_lost();
        let is_whole = malformed == 0 && n_lost == std::mem::replace(&mut self.n_lost, n_lost);
        (self.is_complete && is_whole).then_some(made)
    }
}
