//! Vital signs that one look can tell: pressure, OOM kills, filesystems, processes and limits.

use std::time::Duration;

use sexton_model::fact::Fact;
use sexton_model::fact::filesystem::FS_SEEN;
use sexton_model::fact::klog::KLOG_EVENT;
use sexton_model::fact::limit::{LIMIT_HITS, LIMIT_MOST, LIMIT_USED_RATIO};
use sexton_model::fact::pressure::{
    PRESSURE_IO_FULL_AVG10_RATIO, PRESSURE_MEMORY_SOME_AVG10_RATIO,
};
use sexton_model::fact::process::{PROCESSES_DEFUNCT, PROCESSES_UNINTERRUPTIBLE};
use sexton_model::finding::{Finding, Severity};
use sexton_model::gap::Why;
use sexton_model::subject::Subject;

use super::nics::{Log, cut_after, log};
use super::{Counting, names, silence};
use crate::case::Case;
use crate::evidence::limits::{self, LEAST_TASKS};
use crate::evidence::span;
use crate::gate::Seen;
use crate::gate::count::Count;
use crate::gate::policy::{GatePolicy, Limit};
use crate::policy::Policy;
use crate::rule::Findings;
use crate::rules;
use crate::words::figures::{count, percent};

pub(super) static MEMORY_PRESSURE: Counting = Counting {
    limit: Limit {
        name: "memory_pressure",
        default: 0.2,
        range: (0.0, 1.0),
        title: "part of the last 10 s in which a task waited for memory",
        code: "MEM002",
        why: "as in MEM002: a node with memory to spare has 0",
    },
    count: |seen, _| {
        let fact = &PRESSURE_MEMORY_SOME_AVG10_RATIO;
        pressure(seen, fact, "some task waited for memory in")
    },
};

pub(super) static IO_PRESSURE: Counting = Counting {
    limit: Limit {
        name: "io_pressure",
        default: 0.9,
        range: (0.0, 1.0),
        title: "part of the last 10 s in which all tasks that had work waited for I/O",
        code: "IO001",
        why: "nothing makes progress but by a tenth. The check knows no cause: on a node that does \
              nothing but a backup all tasks wait for I/O, too",
    },
    count: |seen, _| {
        let fact = &PRESSURE_IO_FULL_AVG10_RATIO;
        pressure(seen, fact, "all tasks waited for I/O in")
    },
};

pub(super) static OOM_KILLS: Counting = Counting {
    limit: Limit {
        name: "oom_kills",
        default: 0.0,
        range: (0.0, 1e6),
        title: "processes that the kernel killed for lack of memory in the last 10 minutes",
        code: "MEM001",
        why: "each is work that was lost; older ones may have been dealt with",
    },
    count: oom_kills,
};

pub(super) static BAD_FILESYSTEMS: Counting = Counting {
    limit: Limit {
        name: "bad_filesystems",
        default: 0.0,
        range: (0.0, 1e4),
        title: "filesystems that are full, or read-only after an error",
        code: "IO002",
        why: "what writes to one fails",
    },
    count: bad_filesystems,
};

pub(super) static DEFUNCT: Counting = Counting {
    limit: Limit {
        name: "defunct_processes",
        default: 100.0,
        range: (0.0, 1e7),
        title: "defunct processes",
        code: "TASK002",
        why: "as in TASK002: a server that forks for each request reaps them by the dozen",
    },
    count: |seen, _| processes(seen, &PROCESSES_DEFUNCT, "defunct"),
};

pub(super) static UNINTERRUPTIBLE: Counting = Counting {
    limit: Limit {
        name: "uninterruptible_tasks",
        default: 50.0,
        range: (0.0, 1e7),
        title: "processes in uninterruptible sleep (state D) at one moment",
        code: "TASK001",
        why: "ordinary I/O is in this state too, for moments: a disk with a queue of 32 requests, \
              which is what SATA has, is waited for by as many",
    },
    count: |seen, _| {
        let fact = &PROCESSES_UNINTERRUPTIBLE;
        processes(seen, fact, "in uninterruptible sleep")
    },
};

pub(super) static LIMIT_USED: Counting = Counting {
    limit: Limit {
        name: "limit_used",
        default: 0.9,
        range: (0.01, 1.0),
        title: "part of the kernel's limit that is nearest",
        code: "LIM001",
        why: "as in LIM001: a tenth is what is left for a burst or a deploy",
    },
    count: limit_used,
};

/// OOM kills that are older do not count.
const RECENT: Duration = Duration::from_secs(600);

const NEXT: &str = "sudo sexton diagnose";

/// The last value of the node.
fn last(seen: &Seen<'_>, fact: &'static Fact) -> Option<f64> {
    let records = seen.records.of(fact);
    let own = records.filter(|record| record.subject == Subject::node());
    own.filter_map(|record| record.value()).last()
}

fn pressure(seen: &Seen<'_>, fact: &'static Fact, waited: &str) -> Count {
    match last(seen, fact) {
        Some(part) => Count::of(part, format!("{waited} {} of the last 10 s", percent(part))),
        None => Count::unknown(silence(seen, "pressure")),
    }
    .next(NEXT.to_owned())
}

fn oom_kills(seen: &Seen<'_>, _: &GatePolicy) -> Count {
    let now = seen.records.all().map(|record| record.at).max();
    let events = seen.records.of(&KLOG_EVENT);
    let mut victims: Vec<String> = Vec::new();
    for record in events {
        let Some(line) = record.says(&KLOG_EVENT) else {
            continue;
        };
        let is_kill = line.class.as_deref() == Some("oom_kill");
        // A program can write such a line, too.
        let is_of_kernel = line.written_by.as_deref() != Some("userspace");
        let is_recent = now.is_some_and(|now| now.since(record.at) <= RECENT);
        if is_kill && is_of_kernel && is_recent {
            victims.push(line.comm.clone().unwrap_or_else(|| "a process".into()));
        }
    }
    let n = victims.len() as f64;
    let why = match &victims[..] {
        [] => "no OOM kill in the last 10 minutes".to_owned(),
        some => format!("the kernel killed {}", names(some)),
    };
    let since = now.map(|now| span::earlier(now, RECENT));
    let cut = cut_after(seen.records, since.unwrap_or_default());
    match (log(seen.records), cut) {
        (Log::Unread(gap), _) | (_, Some(gap)) => Count::at_least(n, format!("{why}, but {gap}")),
        // Lines that were overwritten are older.
        (Log::Whole | Log::Cut(_), None) => Count::of(n, why),
    }
    .next(NEXT.to_owned())
    .about(victims)
}

/// The rule itself says which are bad.
fn bad_filesystems(seen: &Seen<'_>, _: &GatePolicy) -> Count {
    let policy = Policy::default();
    let case = Case::new(seen.records, &policy);
    let mut said = Findings::default();
    if let Some(rule) = rules::by_code(BAD_FILESYSTEMS.limit.code) {
        rule.apply(&case, &mut said);
    }
    let bad = said.findings.iter();
    let bad: Vec<_> = bad.filter(|one| one.severity > Severity::Note).collect();
    let n = bad.len() as f64;
    let why = match bad.first() {
        Some(finding) => finding.title.clone(),
        None => "none is full or read-only".to_owned(),
    };
    // A filesystem that does not answer is a gap of its own.
    let mut gaps = seen.records.gaps();
    let gap = gaps.find(|(_, _, gap)| gap.sensor == "filesystems");
    let count = match (said.not_judged.first(), gap, log(seen.records)) {
        (Some(not_judged), _, _) => Count::unknown(not_judged.because.clone()),
        (None, Some((_, _, gap)), _) => Count::at_least(n, format!("{why}, but {}", gap.text)),
        (None, None, Log::Unread(gap)) => {
            let why = format!("{why}, but whether one had an error is not known: {gap}");
            Count::at_least(n, why)
        }
        (None, None, Log::Cut(gap)) => match read_only(&case, &bad) {
            Some(mount) => {
                let why = format!(
                    "{why}, but why {} is read-only is not known: {gap}",
                    mount.name
                );
                Count::at_least(n, why)
            }
            // One that an error had stopped would be read-only, whether the log has it or not.
            None => Count::of(n, why),
        },
        (None, None, Log::Whole) => Count::of(n, why),
    };
    let about = bad.iter().map(|finding| finding.subject.name.to_string());
    count.next(NEXT.to_owned()).about(about.collect())
}

/// Filesystems that are made to be written to.
const WRITABLE: [&str; 6] = ["ext2", "ext3", "ext4", "btrfs", "f2fs", "vfat"];

/// One of these that is read-only now, and of which nothing was found.
fn read_only<'a>(case: &Case<'a>, bad: &[&Finding]) -> Option<&'a Subject> {
    let events = case.events_by_subject(&FS_SEEN).into_iter();
    let mut last = events.filter_map(|(mount, told)| Some((mount, told.last()?.says)));
    let found = last.find(|(mount, says)| {
        let is_bad = bad.iter().any(|finding| finding.subject == **mount);
        says.read_only && WRITABLE.contains(&&*says.fs_type) && !is_bad
    });
    found.map(|(mount, _)| mount)
}

fn processes(seen: &Seen<'_>, fact: &'static Fact, what: &str) -> Count {
    let Some(n) = last(seen, fact) else {
        return Count::unknown(silence(seen, "processes")).next(NEXT.to_owned());
    };
    let why = format!("{} {what}", count(n as u64));
    let mut gaps = seen.records.gaps();
    let left_out =
        gaps.find(|(_, _, gap)| gap.sensor == "processes" && matches!(gap.why, Why::Lost(_)));
    match left_out {
        Some((_, _, gap)) => Count::at_least(n, format!("{why}, but {}", gap.text)),
        None => Count::of(n, why),
    }
    .next(NEXT.to_owned())
}

/// Whether it is a cgroup's limit that is as tight as it is meant to be, as in LIM001.
fn is_as_meant(seen: &Seen<'_>, limit: &Subject) -> bool {
    let last = |fact: &'static Fact| {
        let own = seen.records.of(fact).filter(|one| one.subject == *limit);
        own.filter_map(|record| record.value()).last()
    };
    let Some(most) = last(&LIMIT_MOST) else {
        return false;
    };
    let refused = last(&LIMIT_HITS).unwrap_or(0.0);
    limits::is_as_meant(&limit.name, most, refused, LEAST_TASKS.default)
}

fn limit_used(seen: &Seen<'_>, _: &GatePolicy) -> Count {
    let records = seen.records.of(&LIMIT_USED_RATIO);
    let records = records.filter(|record| !is_as_meant(seen, &record.subject));
    let known = records.filter_map(|record| Some((record.value()?, &record.subject.name)));
    let nearest = known.max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((part, name)) = nearest else {
        return Count::unknown(silence(seen, "limits")).next(NEXT.to_owned());
    };
    let why = format!("{name} is used to {}", percent(part));
    let mut gaps = seen.records.gaps();
    // One that could not be read may be nearer.
    match gaps.find(|(_, _, gap)| gap.sensor == "limits") {
        Some((_, _, gap)) => Count::at_least(part, format!("{why}, but {}", gap.text)),
        None => Count::of(part, why),
    }
    .next(NEXT.to_owned())
    .about(vec![name.to_string()])
}
