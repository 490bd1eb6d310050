//! One look at all processes and threads, within limits.

use std::time::{Duration, Instant};

use sexton_host::{Host, HostError, clock};

use super::blocked::waits_for_fuse;
use super::freezer::Freezer;
use crate::tasks::{self, Stat};

/// Processes that one scan looks at.
const MAX_PROCESSES: usize = 65_536;

/// CPU time of one scan, and the time on the clock that it may take on a busy node.
const MAX_CPU: Duration = Duration::from_millis(100);
const MAX_WALL: Duration = Duration::from_secs(1);

/// Between two looks at the clock.
const LOOKS: usize = 64;

/// What a scan found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// Processes that were looked at.
    pub(super) n: u64,
    /// Those whose main thread is in state D, and not because their cgroup is frozen.
    pub(super) n_uninterruptible: u64,
    /// Tasks in state D, and those that wait for a FUSE server: main threads, and other threads as far as there was time for them.
    pub(super) blocked: Vec<Id>,
    /// Processes whose other threads there was no time for.
    pub(super) n_threads_left_out: u64,
    /// Those in state Z.
    pub(super) defunct: Vec<Defunct>,
    /// Processes that there was no time for.
    pub(super) n_left_out: u64,
    /// The PID that the next scan should begin with.
    pub(super) next: u32,
}

/// A process that has exited and was not reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Defunct {
    pub(super) id: Id,
    pub(super) parent: u32,
}

/// A process that no other will be taken for: PIDs are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Id {
    pub(super) pid: u32,
    /// When it started, in ticks since boot.
    pub(super) started: u64,
}

/// Tasks in state D that one scan remembers. More of them wait for few different things.
const MAX_BLOCKED: usize = 4096;

/// When a scan has to end.
struct Limit {
    began: Instant,
    cpu: Duration,
    n: usize,
}

impl Limit {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            cpu: clock::thread_cpu_time(),
            n: 0,
        }
    }

    /// Counts one more file that is read.
    fn is_over(&mut self) -> bool {
        self.n += 1;
        self.n.is_multiple_of(LOOKS) && {
            let used = clock::thread_cpu_time().saturating_sub(self.cpu);
            used >= MAX_CPU || self.began.elapsed() >= MAX_WALL
        }
    }
}

/// Looks at all processes, those from a PID on first, and then at the threads of those that
/// have several. Where a FUSE server does not answer, also for those that wait for it.
pub(super) fn scan(host: &Host, from: u32, by_fuse: bool) -> Result<Scan, HostError> {
    let folder = host.proc("")?;
    let mut pids = tasks::pids(host)?;
    let first = pids.partition_point(|pid| *pid < from);
    pids.rotate_left(first);
    let mut limit = Limit::new();
    let mut scan = Scan::default();
    let mut freezer = Freezer::new(host);
    let mut with_threads = Vec::new();
    let mut buffer = Vec::new();
    for (at, pid) in pids.iter().enumerate() {
        if at >= MAX_PROCESSES || limit.is_over() {
            scan.n_left_out = (pids.len() - at) as u64;
            scan.next = *pid;
            break;
        }
        // One that went away in between is no gap.
        let path = folder.join(pid.to_string()).join("stat");
        if host.read_into(path, &mut buffer).is_ok() {
            let mut is_frozen = |stat: &Stat| stat.is_blocked() && freezer.holds(host, *pid);
            let stat = Stat::parse(&buffer).filter(|stat| !is_frozen(stat));
            scan.count(*pid, stat);
            if by_fuse && let Some(stat) = stat.filter(|stat| waits_for_fuse(host, *pid, stat)) {
                scan.block(*pid, stat);
            }
            with_threads.extend(stat.filter(|stat| stat.n_threads > 1).map(|_| *pid));
        }
    }
    for (at, pid) in with_threads.iter().enumerate() {
        if !scan.look_at_threads(host, *pid, by_fuse, &mut limit) {
            scan.n_threads_left_out = (with_threads.len() - at) as u64;
            break;
        }
    }
    Ok(scan)
}

impl Scan {
    fn count(&mut self, pid: u32, stat: Option<Stat>) {
        self.n += 1;
        match stat {
            Some(stat) if stat.state == b'Z' => self.defunct.push(Defunct {
                id: Id {
                    pid,
                    started: stat.started,
                },
                parent: stat.parent,
            }),
            Some(stat) if stat.is_blocked() => {
                self.n_uninterruptible += 1;
                self.block(pid, stat);
            }
            _ => {}
        }
    }

    fn block(&mut self, pid: u32, stat: Stat) {
        if self.blocked.len() < MAX_BLOCKED {
            let started = stat.started;
            self.blocked.push(Id { pid, started });
        }
    }

    /// Looks at the threads of a process other than its main one; false when time is up.
    fn look_at_threads(&mut self, host: &Host, pid: u32, by_fuse: bool, limit: &mut Limit) -> bool {
        let mut buffer = Vec::new();
        let Ok(threads) = tasks::threads(host, pid) else {
            // It has exited.
            return true;
        };
        for thread in threads.into_iter().filter(|thread| *thread != pid) {
            if limit.is_over() {
                return false;
            }
            let path = host.proc(&format!("{pid}/task/{thread}/stat"));
            let is_read = path.is_ok_and(|path| host.read_into(path, &mut buffer).is_ok());
            let stat = is_read.then(|| Stat::parse(&buffer)).flatten();
            let waits =
                |stat: &Stat| stat.is_blocked() || (by_fuse && waits_for_fuse(host, thread, stat));
            if let Some(stat) = stat.filter(waits) {
                self.block(thread, stat);
            }
        }
        true
    }
}
