//! What the kernel tells of code that processes map, beside samples of a BPF program: some exit
//! before `/proc` can be asked.

use std::io;

use sexton_host::perf::{Ask, Spaces, Watch};

/// What a core's ring holds until it is read a quarter of a second later. A core starts some
/// 1,500 programs a second at most, which tell seven times each, in 100 bytes.
const RING_BYTES: usize = 1 << 18;
/// With more cores each has less: not all of them start programs all the time.
const ALL_BYTES: usize = 1 << 23;
const LEAST_BYTES: usize = 1 << 16;

/// Rings of mappings.
#[derive(Debug)]
pub(super) struct Told {
    watch: Watch,
    n_lost: u64,
}

impl Told {
    pub(super) fn new(n_cores: u32) -> Self {
        let share = ALL_BYTES / (n_cores.max(1) as usize);
        let room = share.clamp(LEAST_BYTES, RING_BYTES);
        Self {
            watch: Watch::new(Ask::Mappings, room),
            n_lost: 0,
        }
    }

    pub(super) fn watch_core(&mut self, cpu: u32) -> io::Result<()> {
        self.watch.watch_core(cpu)
    }

    pub(super) fn forget_core(&mut self, cpu: u32) {
        self.watch.forget_core(cpu);
    }

    /// Takes note of all that was told until now. Returns how many records made no sense.
    pub(super) fn drain(&mut self, spaces: &mut Spaces) -> u64 {
        let malformed = self.watch.drain(|record| spaces.note(record));
        forget_if_lost(spaces, &mut self.n_lost, self.watch.n_lost());
        malformed
    }

    /// Records that found no room.
    pub(super) fn n_lost(&self) -> u64 {
        self.n_lost
    }
}

/// Forgets what records told when some of them were lost: one of these may have said that a
/// process executed another program.
pub(super) fn forget_if_lost(spaces: &mut Spaces, before: &mut u64, n_lost: u64) {
    if n_lost > *before {
        spaces.forget_all();
    }
    *before = n_lost;
}
