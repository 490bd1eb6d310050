//! One look at all processes, within limits.

use std::time::{Duration, Instant};

use sexton_host::{Host, HostError, clock};

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
    /// Those whose main thread is in state D.
    pub(super) n_uninterruptible: u64,
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

/// What `stat` says of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) state: u8,
    pub(super) parent: u32,
    pub(super) started: u64,
}

/// Looks at all processes, those from a PID on first.
pub(super) fn scan(host: &Host, from: u32) -> Result<Scan, HostError> {
    let folder = host.proc("")?;
    let entries = host.list(&folder)?;
    let pids = entries.iter().filter_map(|entry| entry.name.to_str());
    let mut pids: Vec<u32> = pids.filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    let first = pids.partition_point(|pid| *pid < from);
    pids.rotate_left(first);
    let (began, cpu) = (Instant::now(), clock::thread_cpu_time());
    let is_over = || {
        let used = clock::thread_cpu_time().saturating_sub(cpu);
        used >= MAX_CPU || began.elapsed() >= MAX_WALL
    };
    let mut scan = Scan::default();
    let mut buffer = Vec::new();
    for (at, pid) in pids.iter().enumerate() {
        if at >= MAX_PROCESSES || (at > 0 && at.is_multiple_of(LOOKS) && is_over()) {
            scan.n_left_out = (pids.len() - at) as u64;
            scan.next = *pid;
            break;
        }
        // One that went away in between is no gap.
        let path = folder.join(pid.to_string()).join("stat");
        if host.read_into(path, &mut buffer).is_ok() {
            scan.count(*pid, stat(&buffer));
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
            Some(stat) if stat.state == b'D' => self.n_uninterruptible += 1,
            _ => {}
        }
    }
}

/// The name may hold blanks and brackets, so fields are counted from its last bracket.
pub(super) fn stat(bytes: &[u8]) -> Option<Stat> {
    const STATE: usize = 0;
    const PARENT: usize = 1;
    const STARTED: usize = 19;
    let end = bytes.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(&bytes[end + 1..]).ok()?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    Some(Stat {
        state: *fields.get(STATE)?.as_bytes().first()?,
        parent: fields.get(PARENT)?.parse().ok()?,
        started: fields.get(STARTED)?.parse().ok()?,
    })
}

/// All tasks, of a `/proc/loadavg` such as `0.20 0.18 0.12 1/80 11206`.
pub(super) fn tasks(loadavg: &str) -> Option<u64> {
    let field = loadavg.split_ascii_whitespace().nth(3)?;
    field.split_once('/')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<(char, u32, u64)>) {
        let found = stat(line.as_bytes());
        let found = found.map(|stat| (char::from(stat.state), stat.parent, stat.started));
        assert_eq!(found, expected, "{line:?}");
    }

    #[test]
    fn a_stat_line() {
        let rest = "1 1 0 -1 4228044 1 2 3 4 5 6 7 8 20 0 1 0 900";
        check(&format!("7 (a) Z) Z 3 {rest} 0 0"), Some(('Z', 3, 900)));
        check(&format!("7 (sh) D 1 {rest}"), Some(('D', 1, 900)));
        check("7 (short) Z 1 2", None);
        check("7 (no end Z", None);
        check("", None);
    }

    #[test]
    fn the_number_of_tasks() {
        assert_eq!(tasks("0.20 0.18 0.12 1/80 11206\n"), Some(80));
        assert_eq!(tasks("0.20 0.18 0.12 1 11206\n"), None);
        assert_eq!(tasks(""), None);
    }
}
