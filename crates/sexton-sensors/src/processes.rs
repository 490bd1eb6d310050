//! Tells how many processes there are, how many are defunct or in uninterruptible sleep, which
//! parents do not reap their children, and which tasks stay in uninterruptible sleep.
//!
//! Source: at every poll only `/proc/loadavg`, which has the number of tasks, `procs_blocked` of
//! `/proc/stat`, and how many requests each FUSE connection has waiting. All of `/proc/PID/stat` is
//! scanned every 10 s in the first minute and then once a minute; earlier when 100 tasks more are
//! there, when tasks wait for I/O in two polls, when the load average has more tasks than run or
//! when a FUSE server has not answered in two polls, and again soon after a scan that found defunct
//! children. A scan ends after 100 ms of CPU time or 65,536 processes; the next one goes on from
//! there. At most 512 tasks that a scan found in uninterruptible sleep are read again at every poll.
//! Blind to: processes of PID namespaces above our own, or hidden by `hidepid`; without root,
//! what a task waits in; without fusectl, which systemd mounts, who waits for FUSE.
//! Overhead: a scan costs one read of a small file for each process, and scans together never
//! more than 0.5 % of a core.

mod blocked;
mod freezer;
mod fuse;
pub(crate) mod fuzzing;
mod load;
mod parent;
mod piles;
mod scan;

use std::time::Duration;

use sexton_host::{Host, HostError, process};
use sexton_model::fact::process as fact;
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::{Subject, SubjectKind};

use crate::effort::Effort;
use crate::{Sensor, SensorSpec};
use blocked::Blocked;
use fuse::Fuse;
use load::Load;
use piles::{Pile, Piles};
use scan::Scan;

const NAME: &str = "processes";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "processes: how many, defunct ones and their parents, tasks stuck in the kernel",
    emits: &[
        &fact::TASKS_TOTAL,
        &fact::PROCESSES_TOTAL,
        &fact::PROCESSES_DEFUNCT,
        &fact::PROCESSES_UNINTERRUPTIBLE,
        &fact::DEFUNCT_CHILDREN.fact,
        &fact::TASKS_WAITING_FOR_IO,
        &fact::TASKS_BLOCKED.fact,
    ],
    every: LEAST_BETWEEN,
    deadline: Duration::from_secs(2),
    examine,
    open,
};

/// Scans are never closer than this.
const LEAST_BETWEEN: Duration = Duration::from_secs(5);

/// Without any sign all processes are scanned this often.
const SCAN_EVERY: Duration = Duration::from_secs(60);

/// In its first minute, which is as long as most diagnoses watch, this often.
const SCAN_EVERY_AT_FIRST: Duration = Duration::from_secs(10);
const AT_FIRST: Duration = Duration::from_secs(60);

/// So many more tasks than at the last scan ask for another: as many defunct processes make a
/// finding (TASK002).
const MORE_TASKS: u64 = 100;

fn examine(host: &Host) -> Vec<Sight> {
    const WHAT: &str = "processes and their parents";
    let scan = match scan::scan(host, 0, false) {
        Ok(scan) => scan,
        Err(error) => return vec![Sight::blind(WHAT, error.chain())],
    };
    let sight = match blind_spot(host) {
        None => Sight::sees(WHAT, format!("{} in /proc", scan.n)),
        Some(why) => Sight::blind(WHAT, why)
            .partly()
            .with_remedy("run as root on the node, outside any container"),
    };
    vec![sight]
}

/// Why not all processes of the node are seen.
fn blind_spot(host: &Host) -> Option<&'static str> {
    let is_hidden = |mount: &sexton_host::mounts::Mount| {
        ["hidepid=1", "hidepid=2", "hidepid=4"]
            .into_iter()
            .chain([
                "hidepid=noaccess",
                "hidepid=invisible",
                "hidepid=ptraceable",
            ])
            .any(|option| mount.has_option(option))
    };
    let proc = host.mounts().of_type("proc");
    if host.is_live() && !process::numbers_are_the_kernels(host) {
        Some("only processes of our own PID namespace are seen")
    } else if proc.is_some_and(is_hidden) && sexton_host::machine::effective_user() != 0 {
        Some("/proc is mounted with hidepid: only our own processes are seen")
    } else {
        None
    }
}

/// The sensor.
#[derive(Debug, Default)]
struct Processes {
    last: Option<Last>,
    /// The PID that the next scan begins with.
    from: u32,
    piles: Piles,
    blocked: Blocked,
    /// Whether more tasks waited for I/O at the last poll than are followed.
    some_waited: bool,
    fuse: Fuse,
    /// When the first scan was.
    first: Option<Moment>,
    /// The load average at the last poll.
    load: Option<Load>,
}

/// The last scan.
#[derive(Debug)]
struct Last {
    at: Moment,
    n_tasks: u64,
    /// How long to rest whatever comes, by what it cost.
    least_rest: Duration,
    /// How long to wait for the next one without another sign.
    rest: Duration,
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    read_load(host).map_err(|error| gap(&error))?;
    Ok(Box::new(Processes::default()))
}

fn gap(error: &HostError) -> Gap {
    Gap::new(NAME, error.why(), error.chain())
}

fn read_load(host: &Host) -> Result<Load, HostError> {
    let path = host.proc("loadavg")?;
    let text = host.read_text(&path)?;
    Load::parse(&text).ok_or_else(|| HostError::Malformed {
        path,
        what: format!("it says {text:?}"),
    })
}

/// Tasks that wait for I/O now, of a `/proc/stat`.
fn waiting(stat: &str) -> Option<u64> {
    let mut lines = stat.lines();
    let value = lines.find_map(|line| line.strip_prefix("procs_blocked "))?;
    value.trim().parse().ok()
}

impl Sensor for Processes {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        let node = Subject::node();
        let load = match read_load(host) {
            Ok(load) => load,
            Err(error) => return out.gap(&node, gap(&error)),
        };
        let n_tasks = load.tasks;
        out.sample(&node, &fact::TASKS_TOTAL, n_tasks as f64);
        let before = self.load.replace(load);
        let some_hang = before.is_some_and(|before| load.has_blocked(&before, self.blocked.len()));
        let is_asked_for = self.note_waiting(host, out) || some_hang;
        let by_fuse = self.fuse.asks(host);
        if self.is_due(out.now(), n_tasks, is_asked_for || by_fuse) {
            self.scan(host, out, n_tasks, by_fuse);
        }
        for (wait, blocked) in self.blocked.update(host, out.now()) {
            let subject = Subject::new(SubjectKind::Task, wait);
            out.event(out.now(), &subject, &fact::TASKS_BLOCKED, blocked);
        }
    }
}

impl Processes {
    /// Tells how many tasks wait for I/O. Whether that asks for a scan: a task that is stuck
    /// waits in one poll and in the next.
    fn note_waiting(&mut self, host: &Host, out: &mut Sink) -> bool {
        let stat = host.proc("stat").and_then(|path| host.read_text(path));
        let Some(n) = stat.ok().as_deref().and_then(waiting) else {
            return false;
        };
        out.sample(&Subject::node(), &fact::TASKS_WAITING_FOR_IO, n as f64);
        let some_wait = n > self.blocked.len() as u64;
        std::mem::replace(&mut self.some_waited, some_wait) && some_wait
    }

    fn scan(&mut self, host: &Host, out: &mut Sink, n_tasks: u64, by_fuse: bool) {
        let effort = Effort::begin();
        match scan::scan(host, self.from, by_fuse) {
            Ok(scan) => {
                self.tell(host, out, &scan);
                self.blocked.add(host, out.now(), &scan.blocked);
                self.note(out.now(), n_tasks, effort.rest());
                self.from = scan.next;
            }
            Err(error) => out.gap(&Subject::node(), gap(&error)),
        }
    }

    fn is_due(&self, now: Moment, n_tasks: u64, is_asked_for: bool) -> bool {
        let Some(last) = &self.last else {
            return true;
        };
        // Polls are not exactly on time; one that is a little early counts.
        let past = now.since(last.at) + LEAST_BETWEEN / 2;
        let has_grown = n_tasks >= last.n_tasks + MORE_TASKS;
        past >= LEAST_BETWEEN.max(last.least_rest)
            && (has_grown || is_asked_for || past >= last.rest)
    }

    /// Where children are defunct the next scan comes soon, to see whether they last, and
    /// then ever later.
    fn note(&mut self, now: Moment, n_tasks: u64, least_rest: Duration) {
        let first = *self.first.get_or_insert(now);
        let usual = match now.since(first) < AT_FIRST {
            true => SCAN_EVERY_AT_FIRST,
            false => SCAN_EVERY,
        };
        let rested = self.last.as_ref().map_or(usual, |last| last.rest);
        let rest = match self.piles.any() {
            false => usual,
            true if rested >= usual && !self.piles.lasts() => LEAST_BETWEEN,
            true => (rested * 2).min(usual),
        };
        self.last = Some(Last {
            at: now,
            n_tasks,
            least_rest,
            rest,
        });
    }

    fn tell(&mut self, host: &Host, out: &mut Sink, scan: &Scan) {
        let node = Subject::node();
        for (fact, n) in [
            (&fact::PROCESSES_TOTAL, scan.n),
            (&fact::PROCESSES_DEFUNCT, scan.defunct.len() as u64),
            (&fact::PROCESSES_UNINTERRUPTIBLE, scan.n_uninterruptible),
        ] {
            out.sample(&node, fact, n as f64);
        }
        if scan.n_left_out > 0 {
            let text = format!(
                "{} of {} processes were not looked at: a scan has a time limit",
                scan.n_left_out,
                scan.n_left_out + scan.n
            );
            out.gap(&node, Gap::new(NAME, Why::Lost(scan.n_left_out), text));
        }
        if scan.n_threads_left_out > 0 {
            let n = scan.n_threads_left_out;
            let text =
                format!("the threads of {n} processes were not looked at: a scan has a time limit");
            out.gap(&node, Gap::new(NAME, Why::Lost(n), text));
        }
        for pile in self.piles.update(out.now(), scan) {
            tell_pile(host, out, &pile);
        }
    }
}

fn tell_pile(host: &Host, out: &mut Sink, pile: &Pile) {
    let subject = Subject::new(SubjectKind::Process, pile.parent.to_string());
    let now = out.now();
    out.event(
        now,
        &subject,
        &fact::DEFUNCT_CHILDREN,
        parent::describe(host, pile),
    );
}
