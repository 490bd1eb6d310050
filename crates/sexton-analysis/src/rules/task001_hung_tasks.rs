//! TASK001: tasks hang in D state
//!
//! Means: tasks have been in uninterruptible sleep (state D) without a break for 10 s or longer:
//! the kernel waits on their behalf for a disk, a server or a lock that does not answer. They
//! cannot be killed, and count in the load average. The kernel itself says so only after 120 s
//! (`hung_task_timeout_secs`), and in many kernels not at all. Tasks that wait for the server of a
//! filesystem in user space (FUSE) are in state S, hang as well, and can be killed.
//! Not this: ordinary I/O, which sleeps and wakes many times a second, as the count of context
//! switches shows; tasks of a frozen cgroup, as that of a paused container is; threads of the
//! kernel that sleep this way when they are idle, a program that waits for its own child after
//! vfork, or for FUSE to store what it wrote (notes).
//! By hand: `ps -eo pid,stat,wchan:32,comm | awk '$2 ~ /^D/'`, `cat /proc/PID/stack` as root.
//! Next: mend what they wait for: the disk (IO001, HW001), the file server, the process that
//! holds the lock. Killing them does not help; when what they wait for answers, they go on.

use std::time::Duration;

use sexton_model::fact::Measure;
use sexton_model::fact::process::{BlockedTask, BlockedTasks, TASKS_BLOCKED};
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::moment::Moment;
use sexton_model::record::Event;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::kernel_wait;
use crate::evidence::restart_loops::watched;
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures::{count, seen_for, time_ns};
use crate::words::unit_name;

const CODE: &str = "TASK001";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::Tasks,
    title: "tasks hang in D state",
    sees: "hung tasks",
    needs: &["processes"],
    uses: &[],
    is_essential: true,
    least: Some(&LEAST),
    cause: Cause::Never,
    offer: Offer::NOTHING,
    thresholds: &[&LEAST, &GRAVE, &MANY],
    source: include_str!("task001_hung_tasks.rs"),
    judge,
};

static LEAST: Threshold = Threshold {
    rule: CODE,
    name: "least_seconds",
    default: 10.0,
    range: (5.0, 86_400.0),
    unit: Measure::Seconds,
    why: "a task that sleeps so long without one context switch does not do I/O: the slowest \
          request of a disk, with its own retries, takes 1 to 3 s, and a SCSI command times out \
          after 30 s. The kernel complains after 120 s",
};

static GRAVE: Threshold = Threshold {
    rule: CODE,
    name: "grave_seconds",
    default: 60.0,
    range: (5.0, 86_400.0),
    unit: Measure::Seconds,
    why: "from here on the finding is serious: twice the time that a disk gets to answer \
          (30 s), after which the kernel resets it",
};

static MANY: Threshold = Threshold {
    rule: CODE,
    name: "many",
    default: 10.0,
    range: (1.0, 1e6),
    unit: Measure::Count,
    why: "this many tasks that wait for the same thing make the finding serious: every task that \
          needs it hangs",
};

fn judge(case: &Case<'_>, out: &mut Findings) {
    let sightings = case.events_by_subject(&TASKS_BLOCKED).into_iter();
    for (_, told) in sightings {
        let least = case.lasting(&LEAST);
        let long = sleeps(case, &told).into_iter();
        let long = long.filter(|sleep| sleep.length() >= least);
        // Of two, what still lasts is what has to be mended.
        let worst = long.max_by_key(|sleep| (sleep.lasts, sleep.length()));
        if let Some(worst) = worst {
            out.found(finding(case, &worst));
        }
    }
}

/// One sleep: what was told while the same task had slept longest.
struct Sleep<'a> {
    /// The record of it with the longest time.
    longest: Event<'a, BlockedTasks>,
    /// Tasks that slept there, at most.
    n: u64,
    /// Whether some sleep still.
    lasts: bool,
    /// Until when it is known to have slept.
    told_until: Moment,
}

impl Sleep<'_> {
    fn from(&self) -> Moment {
        Moment::from_ns(self.longest.says.since_ns)
    }

    /// The last record holds until it is withdrawn. A sleep that goes on is told again when it
    /// is twice as long; one that was not had ended, and another task has slept there since.
    fn length(&self) -> Duration {
        let told = Duration::from_nanos(self.longest.says.longest_ns);
        let so_far = self.told_until.since(self.from());
        match so_far > told * 2 + BETWEEN_POLLS {
            true => told,
            false => so_far.max(told),
        }
    }

    fn until(&self) -> Moment {
        self.from().after(self.length())
    }
}

/// Two polls of the sensor: one that is late by so much is not a sleep that ended.
const BETWEEN_POLLS: Duration = Duration::from_secs(10);

/// The sleeps in one function, in the order of time. One that ended and one that began later
/// are two, however soon the one comes after the other.
fn sleeps<'a>(case: &Case<'_>, told: &[Event<'a, BlockedTasks>]) -> Vec<Sleep<'a>> {
    let is_same = |a: &Event<'_, BlockedTasks>, b: &Event<'_, BlockedTasks>| {
        a.says.n > 0 && b.says.n > 0 && a.says.since_ns == b.says.since_ns
    };
    let mut sleeps = Vec::new();
    let mut end = 0;
    for part in told.chunk_by(is_same) {
        end += part.len();
        let length = |event: &&Event<'_, BlockedTasks>| (event.says.longest_ns, event.says.n);
        let longest = part.iter().max_by_key(length);
        let Some(longest) = longest.filter(|longest| longest.says.n > 0) else {
            continue;
        };
        let (last, next) = (part.last().unwrap_or(longest), told.get(end));
        sleeps.push(Sleep {
            longest: *longest,
            n: part.iter().map(|event| event.says.n).max().unwrap_or(0),
            lasts: next.is_none(),
            told_until: match next {
                None => case.now(),
                Some(next) if next.says.n == 0 => next.at,
                // Another had slept for longer by then; since when is not told.
                Some(_) => last.at,
            },
        });
    }
    sleeps
}

fn finding(case: &Case<'_>, sleep: &Sleep<'_>) -> Finding {
    let (longest, n, length) = (&sleep.longest, sleep.n, sleep.length());
    let says = longest.says;
    let length_ns = length.as_nanos() as f64;
    let wait = &longest.subject.name;
    let place = kernel_wait::place(wait, &says.stack);
    let place = place.map_or(format!("in {wait}"), |place| format!("in {place} ({wait})"));
    let excuse = kernel_wait::excuse(wait, &says.stack);
    let is_harmless = says.n_of_kernel == says.n || excuse.is_some();
    let state = match kernel_wait::is_for_server(wait) {
        true => "",
        false => " in D state",
    };
    let is_grave = length.as_secs_f64() >= case.limit(&GRAVE) || n as f64 >= case.limit(&MANY);
    let verb = match (n, sleep.lasts) {
        (1, true) => "hangs",
        (1, false) => "hung",
        (_, true) => "hang",
        (_, false) => "hung",
    };
    let what = match n {
        1 => subject_of_one(says),
        n => format!("{} tasks", count(n)),
    };
    Finding {
        code: CODE,
        subject: longest.subject.clone(),
        severity: match (is_harmless, is_grave) {
            (true, _) => Severity::Note,
            (false, true) => Severity::Serious,
            (false, false) => Severity::Warning,
        },
        confidence: Confidence::CERTAIN,
        title: format!(
            "{what} {verb}{state} {place} for {}{}",
            seen_for(length, watched(case)),
            examples(says, n)
        ),
        figure: format!(
            "{} {} for {}",
            count(n),
            if state.is_empty() { verb } else { "in D state" },
            time_ns(length_ns)
        ),
        since: Some(sleep.from()),
        evidence: evidence(longest, n, length_ns),
        remedies: remedies(longest),
        touched: touched(longest),
        episodes: vec![Episode {
            from: sleep.from(),
            to: sleep.until(),
            touched: touched(longest),
        }],
    }
}

fn called(task: &BlockedTask) -> String {
    let comm = task.comm.as_deref().unwrap_or("task");
    match place_of(task) {
        Some(place) => format!("{comm} (pid {}) of {place}", task.tid),
        None => format!("{comm} (pid {})", task.tid),
    }
}

/// The container or service of a task.
fn place_of(task: &BlockedTask) -> Option<String> {
    match &task.container {
        Some(id) => Some(format!("container {}", id.get(..12).unwrap_or(id))),
        None => unit_of(task).filter(|unit| unit.ends_with(".service")),
    }
}

fn unit_of(task: &BlockedTask) -> Option<String> {
    let of_path = task.cgroup.as_deref().and_then(unit_name::of_path);
    of_path.or_else(|| task.unit.clone())
}

fn subject_of_one(says: &BlockedTasks) -> String {
    says.tasks.first().map_or("1 task".into(), called)
}

/// Some of several, by name.
fn examples(says: &BlockedTasks, n: u64) -> String {
    let mut names: Vec<String> = Vec::new();
    for task in &says.tasks {
        let name = place_of(task).or_else(|| task.comm.clone());
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names.truncate(3);
    match (n, names.is_empty()) {
        (1, _) | (_, true) => String::new(),
        _ => format!(": {}", names.join(", ")),
    }
}

fn evidence(longest: &Event<'_, BlockedTasks>, n: u64, length_ns: f64) -> Vec<Evidence> {
    const SOURCE: &str = "processes: /proc/PID/status";
    let says = longest.says;
    let text = format!(
        "{} in {}sleep for {} without a context switch",
        if n == 1 {
            "1 task has been".into()
        } else {
            format!("{} tasks have been", count(n))
        },
        match kernel_wait::is_for_server(&longest.subject.name) {
            true => "",
            false => "uninterruptible ",
        },
        time_ns(length_ns)
    );
    let mut all = vec![
        Evidence::speaks_for(SOURCE, text)
            .value(length_ns / 1e9)
            .at(longest.at),
    ];
    all.push(match &says.stack[..] {
        [] => Evidence::missing(
            "processes: /proc/PID/stack",
            "where in the kernel they wait cannot be read; only root may",
        ),
        stack => {
            let inner: Vec<&str> = stack.iter().take(8).map(String::as_str).collect();
            let text = format!("the first of them is in {}", inner.join(" < "));
            Evidence::speaks_for("processes: /proc/PID/stack", text)
        }
    });
    let named: Vec<String> = says.tasks.iter().map(called).collect();
    all.push(Evidence::speaks_for("processes", named.join(", ")));
    if says.n_of_kernel == says.n {
        let text = "all of them are threads of the kernel; some drivers' threads sleep this way \
                    when they are idle";
        all.push(Evidence::against("processes", text));
    }
    let excuse = kernel_wait::excuse(&longest.subject.name, &says.stack);
    all.extend(excuse.map(|text| Evidence::against("processes: /proc/PID/stack", text)));
    all
}

fn remedies(longest: &Event<'_, BlockedTasks>) -> Vec<Remedy> {
    let (wait, says) = (&longest.subject.name, longest.says);
    let look = |text: &str, command: String| Remedy::command(RemedyKind::Look, text, command);
    let first = says.tasks.first().map(|task| task.tid);
    if kernel_wait::is_for_child(wait, &says.stack) {
        let of_child = |tid| {
            let command = format!("ps -o pid,stat,wchan:32,comm --ppid {tid}");
            look("See what its child does", command).of_process(tid)
        };
        return first.map(of_child).into_iter().collect();
    }
    let is_for_server = kernel_wait::is_for_server(wait);
    let mut remedies = vec![Remedy::advice(
        RemedyKind::Stop,
        match is_for_server {
            true => "Restart the server of that filesystem, or unmount it with umount -f",
            false => "Mend what they wait for; killing them has no effect before that",
        },
    )];
    let list = match is_for_server {
        true => look(
            "See which connection has requests waiting: its number is that of the device",
            "sudo grep -H . /sys/fs/fuse/connections/*/waiting; grep fuse /proc/self/mountinfo"
                .into(),
        ),
        false => look(
            "List tasks in D state",
            "ps -eo pid,stat,wchan:32,comm | awk '$2 ~ /^D/'".into(),
        ),
    };
    let of_first = first.map(|tid| {
        let command = format!("sudo cat /proc/{tid}/stack");
        look("See where the first of them waits", command).of_process(tid)
    });
    // The stack of who waits for a server says only that it does.
    match is_for_server {
        true => remedies.extend([list].into_iter().chain(of_first)),
        false => remedies.extend(of_first.into_iter().chain([list])),
    }
    remedies
}

fn touched(event: &Event<'_, BlockedTasks>) -> Vec<Subject> {
    let mut touched = vec![event.subject.clone()];
    for task in &event.says.tasks {
        let named = [
            (SubjectKind::Process, Some(task.tid.to_string())),
            (SubjectKind::Unit, unit_of(task)),
            (SubjectKind::Container, task.container.clone()),
        ];
        for (kind, name) in named {
            let subject = name.map(|name| Subject::new(kind, name));
            touched.extend(subject.filter(|subject| !touched.contains(subject)));
        }
    }
    touched
}

#[cfg(test)]
mod tests {
    use sexton_model::record::Sink;

    use super::*;
    use crate::testing::{Watch, at};

    fn blocked(n: u64, seconds: u64, stack: &[&str]) -> BlockedTasks {
        BlockedTasks {
            n,
            longest_ns: seconds * 1_000_000_000,
            since_ns: 100_000_000_000,
            stack: stack.iter().map(|&frame| frame.to_owned()).collect(),
            tasks: (0..n.min(8) as u32)
                .map(|i| BlockedTask {
                    tid: 800 + i,
                    comm: Some("rsync".into()),
                    unit: Some("backup.service".into()),
                    ..BlockedTask::default()
                })
                .collect(),
            ..BlockedTasks::default()
        }
    }

    fn judge(wait: &str, told: &[(u64, BlockedTasks)]) -> Vec<Finding> {
        let mut watch = Watch::new(100, 20);
        for (second, says) in told {
            let mut out = Sink::new("processes", at(*second));
            let subject = Subject::new(SubjectKind::Task, wait);
            out.event(at(*second), &subject, &TASKS_BLOCKED, says.clone());
            watch.add(out);
        }
        watch.judge(&RULE).findings
    }

    const NFS: [&str; 3] = ["rpc_wait_bit_killable", "nfs4_call_sync", "vfs_statx"];

    #[test]
    fn alike_tasks_are_one_finding_that_says_what_they_wait_for() {
        let found = judge(
            "rpc_wait_bit_killable",
            &[(105, blocked(7, 5, &NFS)), (110, blocked(8, 10, &NFS))],
        );
        let [found] = &found[..] else {
            panic!("one finding, not {found:#?}")
        };
        assert_eq!(
            found.title,
            "8 tasks hang in D state in NFS (rpc_wait_bit_killable) for 20 s (all of the watch): backup.service"
        );
        assert_eq!(found.severity, Severity::Warning);
        assert!(found.touches(&Subject::new(SubjectKind::Unit, "backup.service")));
    }

    #[test]
    fn one_task_is_named_and_many_are_serious() {
        let one = judge("kernel_clone", &[(110, blocked(1, 10, &["kernel_clone"]))]);
        assert!(
            one[0]
                .title
                .starts_with("rsync (pid 800) of backup.service hangs in D state"),
            "{}",
            one[0].title
        );
        let many = judge("rpc_wait_bit_killable", &[(110, blocked(40, 10, &NFS))]);
        assert_eq!(many[0].severity, Severity::Serious);
    }

    #[test]
    fn what_goes_on_within_ten_seconds_is_ordinary() {
        let told = [(105, blocked(3, 5, &NFS)), (108, BlockedTasks::default())];
        assert!(judge("rpc_wait_bit_killable", &told).is_empty());
    }

    #[test]
    fn idle_threads_of_the_kernel_are_a_note() {
        let says = BlockedTasks {
            n_of_kernel: 1,
            ..blocked(1, 20, &["vendor_thread"])
        };
        assert_eq!(
            judge("vendor_thread", &[(120, says)])[0].severity,
            Severity::Note
        );
    }

    #[test]
    fn a_program_that_waits_for_its_own_child_is_a_note() {
        let says = blocked(1, 20, &["kernel_clone", "__do_sys_vfork"]);
        let found = judge("kernel_clone", &[(120, says)]);
        assert_eq!(found[0].severity, Severity::Note);
        let [look] = &found[0].remedies[..] else {
            panic!("{found:?}");
        };
        let command = look.command.as_deref();
        assert_eq!(command, Some("ps -o pid,stat,wchan:32,comm --ppid 800"));
    }

    #[test]
    fn who_waits_for_a_fuse_server_is_not_in_state_d() {
        let says = blocked(1, 20, &["request_wait_answer", "fuse_lookup_name"]);
        let found = judge("request_wait_answer", &[(120, says)]);
        assert_eq!(found[0].severity, Severity::Warning);
        assert_eq!(
            found[0].title,
            "rsync (pid 800) of backup.service hangs in FUSE (request_wait_answer) for 20 s (all \
             of the watch)"
        );
        assert!(!format!("{found:?}").contains("D state"));
        let stores = blocked(1, 20, &["request_wait_answer", "fuse_flush"]);
        let found = judge("request_wait_answer", &[(120, stores)]);
        assert_eq!(found[0].severity, Severity::Note);
    }

    fn slept(tid: u32, since: u64, seconds: u64) -> BlockedTasks {
        let mut says = blocked(1, seconds, &["io_schedule"]);
        says.since_ns = since * 1_000_000_000;
        says.tasks[0].tid = tid;
        says
    }

    #[test]
    fn sleeps_of_two_tasks_are_not_one_that_hangs() {
        let told = [
            (106, slept(801, 100, 6)),
            (107, BlockedTasks::default()),
            (117, slept(802, 112, 5)),
        ];
        assert!(judge("io_schedule", &told).is_empty());
        // Nor when the second took over from the first between two polls.
        let told = [(106, slept(801, 100, 6)), (118, slept(802, 112, 6))];
        assert!(judge("io_schedule", &told).is_empty());
        // Of a long one that is over and a long one that lasts, the second is told.
        let told = [(106, slept(801, 90, 16)), (112, slept(802, 105, 7))];
        let found = judge("io_schedule", &told);
        assert!(
            found[0]
                .title
                .starts_with("rsync (pid 802) of backup.service hangs")
                && found[0].title.contains("for 15 s"),
            "{}",
            found[0].title
        );
    }

    #[test]
    fn a_sleep_that_was_not_told_again_has_ended() {
        let mut watch = Watch::new(100, 300);
        let mut out = Sink::new("processes", at(106));
        let subject = Subject::new(SubjectKind::Task, "io_schedule");
        out.event(at(106), &subject, &TASKS_BLOCKED, slept(801, 100, 6));
        watch.add(out);
        assert!(watch.judge(&RULE).findings.is_empty());
    }

    #[test]
    fn what_has_ended_is_told_as_past() {
        let told = [(112, blocked(2, 12, &NFS)), (115, BlockedTasks::default())];
        let found = judge("rpc_wait_bit_killable", &told);
        assert!(
            found[0].title.starts_with("2 tasks hung in D state"),
            "{}",
            found[0].title
        );
    }
}
