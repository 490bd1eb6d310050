//! On which cores the kernel worked for our own threads, so that the judge can leave it out.
//!
//! Source: `/proc/self/task/*/stat`, read only when this process used a fair part of a core
//! since the last time: loading programs that the kernel checks for seconds, a read that walks
//! all dying cgroups, a census.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use sexton_host::{Host, clock};

/// Threads are asked once they used so much together. Less cannot be told from rounding.
const WORTH_ASKING: Duration = Duration::from_millis(20);

/// What `stat` counts in (`USER_HZ`, the same on all architectures we run on).
const TICK: Duration = Duration::from_millis(10);

/// More threads than we ever have.
const MAX_THREADS: usize = 256;

/// Our own kernel time, by core.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// Processor time of the process when its threads were last asked; none before that.
    asked_at: Option<Duration>,
    /// Kernel ticks of each thread then.
    threads: HashMap<u32, u64>,
    /// What was added since, by core.
    by_core: HashMap<u32, Duration>,
}

impl Own {
    /// Looks at our threads, if they did enough to be worth it.
    pub(super) fn look(&mut self, host: &Host) {
        self.by_core.clear();
        if !host.is_live() {
            return;
        }
        let used = clock::process_cpu_time();
        let is_first = self.asked_at.is_none();
        let before = self.asked_at.unwrap_or_default();
        if !is_first && used.saturating_sub(before) < WORTH_ASKING {
            return;
        }
        let Some(threads) = threads(host) else {
            return;
        };
        self.asked_at = Some(used);
        self.count(threads, is_first);
    }

    /// Adds up what each thread did since it was last asked. A thread that was not there then
    /// began since, unless nothing was asked before.
    fn count(&mut self, threads: Vec<Thread>, is_first: bool) {
        for thread in &threads {
            let before = self.threads.get(&thread.id).copied();
            let before = before.unwrap_or(if is_first { thread.kernel_ticks } else { 0 });
            let ticks = thread.kernel_ticks.saturating_sub(before);
            let time = TICK * u32::try_from(ticks).unwrap_or(u32::MAX);
            *self.by_core.entry(thread.core).or_default() += time;
        }
        let now = threads
            .iter()
            .map(|thread| (thread.id, thread.kernel_ticks));
        self.threads = now.collect();
    }

    /// Our kernel time on this core since the look before.
    pub(super) fn on(&self, core: u32) -> Duration {
        self.by_core.get(&core).copied().unwrap_or_default()
    }
}

/// A thread of ours, as its `stat` tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Thread {
    id: u32,
    kernel_ticks: u64,
    /// Where it ran last.
    core: u32,
}

fn threads(host: &Host) -> Option<Vec<Thread>> {
    let folder = host.proc("self/task").ok()?;
    let entries = host.list(&folder).ok()?;
    // One that ended meanwhile is left out.
    let threads = entries.iter().take(MAX_THREADS).filter_map(|entry| {
        let id = entry.name.to_str()?.parse().ok()?;
        let stat = host.read(folder.join(Path::new(&entry.name)).join("stat"));
        parse(id, &stat.ok()?)
    });
    Some(threads.collect())
}

/// Fields 15 and 39 of proc_pid_stat(5). The name before them may hold anything.
fn parse(id: u32, stat: &[u8]) -> Option<Thread> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    // The first of these is field 3.
    let mut fields = fields.split_ascii_whitespace();
    let kernel_ticks = fields.nth(15 - 3)?.parse().ok()?;
    let core = fields.nth(39 - 15 - 1)?.parse().ok()?;
    Some(Thread {
        id,
        kernel_ticks,
        core,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_tells_its_kernel_time_and_core() {
        let stat = b"77 (a) b) (c) S 1 2 3 4 5 6 7 8 9 10 111 222 13 14 20 0 1 0 99 1 2 3 \
                     4 5 6 7 8 9 10 11 12 13 14 15 17 6 0 0 0\n";
        let expected = Thread {
            id: 77,
            kernel_ticks: 222,
            core: 6,
        };
        assert_eq!(parse(77, stat), Some(expected));
        assert_eq!(parse(77, b"77 (a) S 1 2"), None);
        assert_eq!(parse(77, b""), None);
    }

    #[test]
    fn our_own_threads_can_be_read_here() {
        let host = Host::live().expect("this machine");
        let threads = threads(&host).expect("our threads");
        assert!(threads.iter().any(|thread| thread.id == std::process::id()));
    }

    /// Threads as (id, kernel ticks, core), asked twice; expects ms by core.
    #[track_caller]
    fn check(first: &[(u32, u64, u32)], second: &[(u32, u64, u32)], expected: &[(u32, u64)]) {
        let threads = |given: &[(u32, u64, u32)]| {
            let thread = |(id, kernel_ticks, core): &(u32, u64, u32)| Thread {
                id: *id,
                kernel_ticks: *kernel_ticks,
                core: *core,
            };
            given.iter().map(thread).collect::<Vec<Thread>>()
        };
        let mut own = Own::default();
        own.count(threads(first), true);
        assert!(own.by_core.values().all(Duration::is_zero));
        own.by_core.clear();
        own.count(threads(second), false);
        for (core, ms) in expected {
            assert_eq!(own.on(*core), Duration::from_millis(*ms), "core {core}");
        }
    }

    #[test]
    fn kernel_time_is_counted_where_each_thread_runs() {
        check(
            &[(1, 100, 0), (2, 50, 1)],
            &[(1, 109, 0), (2, 50, 1), (3, 4, 1)],
            &[(0, 90), (1, 40), (2, 0)],
        );
        // A number that was given to another thread meanwhile.
        check(&[(1, 100, 0)], &[(1, 3, 0)], &[(0, 0)]);
    }
}
