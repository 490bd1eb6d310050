//! Which processes use a busy disk, and which wait for it.

use std::collections::HashMap;
use std::time::Duration;

use sexton_host::Host;
use sexton_model::fact::disk::{self as fact, DiskUse};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};

use super::{NAME, files};
use crate::effort::Effort;
use crate::tasks::{self, Belongs, Stat};

/// Looks at all processes are at least so far apart.
const LEAST_BETWEEN: Duration = Duration::from_secs(2);

/// Processes that are told after a look: those with the most bytes, and those that wait.
const MAX_TOLD: usize = 8;

/// Fewer bytes between two looks are not what keeps a disk busy.
const LEAST_BYTES: u64 = 256 * 1024;

/// Threads of one process that are looked at.
const MAX_THREADS: usize = 64;

/// A look at all processes, and the one before.
#[derive(Default)]
pub(super) struct Users {
    before: Option<Look>,
    rest: Duration,
}

struct Look {
    at: Moment,
    processes: HashMap<Id, Used>,
}

/// PIDs are used again; the time of the start tells one from the next.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Id {
    pid: u32,
    started: u64,
}

#[derive(Clone, Copy, Default)]
struct Used {
    /// Read and written since its start; `None` where we may not know.
    bytes: Option<(u64, u64)>,
    waits: bool,
}

impl Users {
    /// Looks at all processes, if a disk is busy and it is time.
    pub(super) fn poll(&mut self, host: &Host, out: &mut Sink, is_busy: bool) {
        // What was used before a quiet time says nothing of who uses it now.
        let now = out.now();
        if !is_busy {
            let is_old = |look: &Look| now.since(look.at) > 2 * LEAST_BETWEEN + self.rest;
            self.before = self.before.take().filter(|look| !is_old(look));
            return;
        }
        // Polls are not exactly on time; one that is a little early counts.
        let pause = LEAST_BETWEEN.max(self.rest) - LEAST_BETWEEN / 4;
        let is_early = |look: &Look| now.since(look.at) < pause;
        if self.before.as_ref().is_some_and(is_early) {
            return;
        }
        let effort = Effort::begin();
        let look = look(host, out);
        if let Some(before) = &self.before {
            tell(host, out, before, &look);
        }
        self.rest = effort.rest();
        self.before = Some(look);
    }
}

fn look(host: &Host, out: &mut Sink) -> Look {
    let effort = Effort::begin();
    let mut processes = HashMap::new();
    let pids = tasks::pids(host).unwrap_or_default();
    for (at, pid) in pids.iter().enumerate() {
        if effort.is_over() {
            let n = (pids.len() - at) as u64;
            let text =
                format!("{n} processes were not asked for their I/O: a look has a time limit");
            out.gap(&Subject::node(), Gap::new(NAME, Why::Lost(n), text));
            break;
        }
        if let Some((id, used)) = look_at(host, *pid) {
            processes.insert(id, used);
        }
    }
    let at = out.now();
    Look { at, processes }
}

/// A process outside the kernel; `None` when it is gone.
fn look_at(host: &Host, pid: u32) -> Option<(Id, Used)> {
    let stat = Stat::parse(&host.read(host.proc(&format!("{pid}/stat")).ok()?).ok()?)?;
    if stat.is_of_kernel {
        return None;
    }
    let id = Id {
        pid,
        started: stat.started,
    };
    let used = match stat.n_threads {
        0 | 1 => Used {
            bytes: bytes_of(host, pid, pid),
            waits: stat.is_blocked(),
        },
        _ => look_at_threads(host, pid),
    };
    Some((id, used))
}

/// What a thread itself read and wrote. `/proc/PID/io` will not do: it has what all children
/// did that were reaped, so that a shell would be taken for what its commands did before.
fn bytes_of(host: &Host, pid: u32, thread: u32) -> Option<(u64, u64)> {
    let path = host.proc(&format!("{pid}/task/{thread}/io")).ok()?;
    bytes(&host.read_text(path).ok()?)
}

fn look_at_threads(host: &Host, pid: u32) -> Used {
    let mut used = Used::default();
    let threads = tasks::threads(host, pid).unwrap_or_default();
    for thread in threads.into_iter().take(MAX_THREADS) {
        if let Some((read, written)) = bytes_of(host, pid, thread) {
            let before = used.bytes.unwrap_or_default();
            used.bytes = Some((before.0 + read, before.1 + written));
        }
        let path = host.proc(&format!("{pid}/task/{thread}/stat"));
        let stat = path.and_then(|path| host.read(path)).ok();
        let stat = stat.and_then(|stat| Stat::parse(&stat));
        used.waits |= stat.is_some_and(|stat| stat.is_blocked());
    }
    used
}

/// Read and written, of a `/proc/PID/io`. What was written and thrown away before it reached
/// the disk does not count.
pub(super) fn bytes(io: &str) -> Option<(u64, u64)> {
    let field = |name: &str| {
        let value = io.lines().find_map(|line| line.strip_prefix(name))?;
        value.trim().parse::<u64>().ok()
    };
    let written = field("write_bytes:")?;
    let cancelled = field("cancelled_write_bytes:").unwrap_or(0);
    Some((field("read_bytes:")?, written.saturating_sub(cancelled)))
}

fn tell(host: &Host, out: &mut Sink, before: &Look, look: &Look) {
    let within = look.at.since(before.at);
    let own = std::process::id();
    let mut used: Vec<(Id, (u64, u64), bool)> = Vec::new();
    for (id, now) in &look.processes {
        let earlier = before.processes.get(id).and_then(|earlier| earlier.bytes);
        let since = |now: u64, earlier: u64| now.saturating_sub(earlier);
        let bytes = match (now.bytes, earlier) {
            (Some(now), Some(earlier)) => (since(now.0, earlier.0), since(now.1, earlier.1)),
            // It started in between.
            (Some(now), None) if !before.processes.contains_key(id) => now,
            _ => (0, 0),
        };
        if id.pid != own && (bytes.0 + bytes.1 >= LEAST_BYTES || now.waits) {
            used.push((*id, bytes, now.waits));
        }
    }
    let n_waiting = used.iter().filter(|(_, _, waits)| *waits).count();
    out.sample(&Subject::node(), &fact::DISK_WAITERS, n_waiting as f64);
    used.sort_by_key(|(id, bytes, _)| (std::cmp::Reverse(bytes.0 + bytes.1), id.pid));
    let waiting = used.iter().skip(MAX_TOLD).filter(|(_, _, waits)| *waits);
    let told = used.iter().take(MAX_TOLD).chain(waiting.take(MAX_TOLD));
    for (id, (read_bytes, written_bytes), waits) in told {
        let home = Belongs::of(host, id.pid);
        let subject = Subject::new(SubjectKind::Process, id.pid.to_string());
        let says = DiskUse {
            pid: id.pid,
            comm: tasks::comm(host, id.pid),
            read_bytes: *read_bytes,
            written_bytes: *written_bytes,
            within_ns: u64::try_from(within.as_nanos()).unwrap_or(u64::MAX),
            waits: *waits,
            disks: files::disks_of(host, id.pid),
            cgroup: home.cgroup,
            unit: home.unit,
            container: home.container,
        };
        out.event(look.at, &subject, &fact::DISK_USER, says);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_thrown_away_was_not_written() {
        let io = "rchar: 9\nwchar: 9\nread_bytes: 4096\nwrite_bytes: 9000\n\
                  cancelled_write_bytes: 1000\n";
        assert_eq!(bytes(io), Some((4096, 8000)));
        assert_eq!(bytes("read_bytes: 1\n"), None);
    }
}
