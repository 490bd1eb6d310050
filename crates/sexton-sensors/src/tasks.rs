//! What procfs tells of one task.

use sexton_host::process::{Place as Home, unit_place};
use sexton_host::{Host, HostError};
use sexton_model::text;

use crate::lineage::Lineage;

/// What `stat` says of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) state: u8,
    pub(crate) parent: u32,
    /// Whether it is a thread of the kernel.
    pub(crate) is_of_kernel: bool,
    pub(crate) n_threads: u32,
    /// How long all its threads ran, those that exited included, in ticks.
    pub(crate) ran: u64,
    /// How far it stands back for others, from -20 to 19.
    pub(crate) nice: i64,
    /// When it started, in ticks since boot.
    pub(crate) started: u64,
}

impl Stat {
    /// The name may hold blanks and brackets, so fields are counted from its last bracket.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        const STATE: usize = 0;
        const PARENT: usize = 1;
        const FLAGS: usize = 6;
        const USER: usize = 11;
        const SYSTEM: usize = 12;
        const NICE: usize = 16;
        const THREADS: usize = 17;
        const STARTED: usize = 19;
        /// `PF_KTHREAD` in include/linux/sched.h.
        const OF_KERNEL: u64 = 0x0020_0000;
        let end = bytes.iter().rposition(|byte| *byte == b')')?;
        let fields = std::str::from_utf8(&bytes[end + 1..]).ok()?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let flags: u64 = fields.get(FLAGS)?.parse().ok()?;
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            state: *fields.get(STATE)?.as_bytes().first()?,
            parent: fields.get(PARENT)?.parse().ok()?,
            is_of_kernel: flags & OF_KERNEL != 0,
            n_threads: fields.get(THREADS)?.parse().ok()?,
            ran: number(USER)?.saturating_add(number(SYSTEM)?),
            nice: fields.get(NICE)?.parse().ok()?,
            started: fields.get(STARTED)?.parse().ok()?,
        })
    }

    /// Whether it is in uninterruptible sleep.
    pub(crate) fn is_blocked(&self) -> bool {
        self.state == b'D'
    }
}

/// The numbers of all processes, in order.
pub(crate) fn pids(host: &Host) -> Result<Vec<u32>, HostError> {
    numbers_in(host, "")
}

/// The numbers of the threads of a process, in order.
pub(crate) fn threads(host: &Host, pid: u32) -> Result<Vec<u32>, HostError> {
    numbers_in(host, &format!("{pid}/task"))
}

fn numbers_in(host: &Host, folder: &str) -> Result<Vec<u32>, HostError> {
    let entries = host.list(host.proc(folder)?)?;
    let names = entries.iter().filter_map(|entry| entry.name.to_str());
    let mut numbers: Vec<u32> = names.filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Where a process belongs; nothing of one that is gone.
#[derive(Debug, Default)]
pub(crate) struct Belongs {
    pub(crate) cgroup: Option<String>,
    pub(crate) unit: Option<String>,
    pub(crate) container: Option<String>,
}

impl Belongs {
    pub(crate) fn of(host: &Host, pid: u32) -> Self {
        Self::at(&Home::read_all(host, pid).unwrap_or_default())
    }

    /// By the places of a process in the hierarchies of cgroups.
    pub(crate) fn at(places: &[Home]) -> Self {
        let Some(place) = unit_place(places) else {
            return Self::default();
        };
        let lineage = Lineage::of(&place.path);
        Self {
            cgroup: Some(text::escape(&place.path)),
            unit: lineage.unit,
            container: lineage.container,
        }
    }
}

/// Where a task is, and whether it could run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The core it runs on or waits for.
    pub(crate) cpu: u32,
    /// It runs, or could.
    pub(crate) is_runnable: bool,
    /// How far it stands back for others, from -20 to 19.
    pub(crate) nice: i64,
    /// Whether it runs before all tasks of ordinary priority.
    pub(crate) is_realtime: bool,
}

/// The name of a task; `None` when it is gone. The idle task has no directory.
pub(crate) fn comm(host: &Host, pid: u32) -> Option<String> {
    if pid == 0 {
        return Some("swapper".into());
    }
    let bytes = host.read(host.proc(&format!("{pid}/comm")).ok()?).ok()?;
    Some(text::escape(bytes.strip_suffix(b"\n").unwrap_or(&bytes)))
}

/// Where a task is; `None` when it is gone.
pub(crate) fn place(host: &Host, pid: u32) -> Option<Place> {
    let path = host.proc(&format!("{pid}/stat")).ok()?;
    parse_stat(&host.read_text(path).ok()?)
}

/// The cgroup of a task, escaped; `None` when it is gone.
pub(crate) fn cgroup(host: &Host, pid: u32) -> Option<String> {
    let places = Home::read_all(host, pid).ok()?;
    unit_place(&places).map(|place| text::escape(&place.path))
}

/// The name that a BPF program read, which ends at the first zero byte.
pub(crate) fn name_of(bytes: &[u8]) -> String {
    text::escape(bytes.split(|byte| *byte == 0).next().unwrap_or_default())
}

/// The name may hold blanks and brackets, so fields are counted from its last bracket.
fn parse_stat(stat: &str) -> Option<Place> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    const STATE: usize = 0;
    const NICE: usize = 16;
    const PROCESSOR: usize = 36;
    const POLICY: usize = 38;
    /// `SCHED_FIFO`, `SCHED_RR` and `SCHED_DEADLINE` in include/uapi/linux/sched.h.
    const REALTIME: [&str; 3] = ["1", "2", "6"];
    Some(Place {
        cpu: fields.get(PROCESSOR)?.parse().ok()?,
        is_runnable: *fields.get(STATE)? == "R",
        nice: fields.get(NICE)?.parse().ok()?,
        is_realtime: REALTIME.contains(fields.get(POLICY)?),
    })
}

pub(crate) mod fuzzing {
    //! For the fuzz targets.

    /// What a task's `stat` might say, and the name that a BPF program might read.
    pub fn task_stat(stat: &[u8]) -> String {
        super::Stat::parse(stat);
        super::parse_stat(&String::from_utf8_lossy(stat));
        super::name_of(stat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stat: &str, expected: Option<(u32, bool)>) {
        let found = parse_stat(stat).map(|place| (place.cpu, place.is_runnable));
        assert_eq!(found, expected);
    }

    #[test]
    fn states_parents_and_threads_of_the_kernel() {
        let rest = "1 1 0 -1 2129984 1 2 3 4 5 6 7 8 20 0 6 0 900";
        let stat = Stat::parse(format!("7 (a) Z) D 3 {rest} 0 0").as_bytes());
        let stat = stat.expect("a line of stat");
        assert!(stat.is_blocked() && stat.is_of_kernel);
        assert_eq!((stat.parent, stat.n_threads, stat.started), (3, 6, 900));
        assert_eq!((stat.ran, stat.nice), (5 + 6, 0));
        for line in ["7 (short) Z 1 2", "7 (no end Z", ""] {
            assert_eq!(Stat::parse(line.as_bytes()), None, "{line:?}");
        }
    }

    #[test]
    fn a_stat_line() {
        let rest = "1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9 1 2 3 4 5 6 7 8 0 0 0 0 0 0 0 17";
        check(&format!("7 (a) b) R {rest} 3 0 0"), Some((3, true)));
        let niced = rest.replacen(" 20 0 ", " 39 19 ", 1);
        let place = parse_stat(&format!("7 (a) R {niced} 3 0 0"));
        assert_eq!(place.map(|place| place.nice), Some(19));
        for (policy, is_realtime) in [("0", false), ("1", true), ("2", true), ("3", false)] {
            let place = parse_stat(&format!("7 (a) R {rest} 3 50 {policy}"));
            assert_eq!(place.map(|place| place.is_realtime), Some(is_realtime));
        }
        check(&format!("7 (R) S {rest} 11 0 0"), Some((11, false)));
        check("7 (short) R 1 2", None);
        check("", None);
    }
}
