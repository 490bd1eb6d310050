//! MEM002: tasks wait for memory
//!
//! Means: a cgroup, or the node, needs more memory than it may have. The kernel reclaims pages
//! that are needed again a moment later (thrashing), or swaps, and tasks wait for that: for
//! 10 s or longer a task waited for memory in a fifth of the time, or waited for I/O in half of
//! it while most of what disks read had been in memory before. Everything in that cgroup, or
//! on the node, becomes slow long before the OOM killer ends it.
//! Not this: a database or a backup that fills its limit with page cache, which the kernel drops
//! while no task waits; memory that is used and not short; OOM kills (MEM001).
//! By hand: `cat /proc/pressure/memory /proc/pressure/io`, `vmstat 1` (si, so),
//! `grep -E 'refault|pgpgin' /proc/vmstat` twice; `memory.events` of a cgroup, on cgroup v1
//! `memory.failcnt`.
//! Next: give the cgroup more memory, or the work less to do; on the node, move or stop what uses
//! most. More swap does not help against thrashing.

use sexton_model::fact::Measure;
use sexton_model::fact::memory as fact;
use sexton_model::fact::pressure::{PRESSURE_IO_SOME_RATIO, PRESSURE_MEMORY_SOME_RATIO};
use sexton_model::fact::process::TASKS_WAITING_FOR_IO;
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::memory_load::{self, Place, Strain, Task};
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures::{bytes, count, percent, time};
use crate::words::unit_name::systemctl;

const CODE: &str = "MEM002";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::MemoryShort,
    title: "tasks wait for memory",
    sees: "memory pressure",
    needs: &["memory"],
    uses: &["pressure", "processes", "disks"],
    is_essential: true,
    least: Some(&LEAST),
    cause: Cause::WhenNamed,
    offer: Offer::NOTHING,
    thresholds: &[&SOME, &OF_CGROUP, &IO, &REREAD, &LEAST, &GRAVE],
    source: include_str!("mem002_pressure.rs"),
    judge,
};

static SOME: Threshold = Threshold {
    rule: CODE,
    name: "pressure",
    default: 0.2,
    range: (0.01, 1.0),
    unit: Measure::Ratio,
    why: "a task waited for memory in this part of the time (PSI `some` of the node). A node with \
          memory to spare has 0. A process that filled its limit of 64 MiB with page cache, and \
          read at random 420 MB/s of a file of three times that size, had 11 % on two cores",
};

static IO: Threshold = Threshold {
    rule: CODE,
    name: "io_pressure",
    default: 0.5,
    range: (0.05, 1.0),
    unit: Measure::Ratio,
    why: "a task waited for I/O in this part of the time, while most of what disks read had been in \
          memory before. The kernel counts a wait for a page that was read again as one for memory \
          only if the page had been used often, so the wait for the others is found here. The \
          process of `pressure` had 37 %; one that had to read its pages from a disk of 500 \
          requests/s had 79 %",
};

static OF_CGROUP: Threshold = Threshold {
    rule: CODE,
    name: "cgroup_pressure",
    default: 0.5,
    range: (0.01, 1.0),
    unit: Measure::Ratio,
    why: "the same of one cgroup, where the kernel tells (cgroup v2). It counts only the time of its \
          own tasks, so a single one that reclaims its page cache is seen here; systemd-oomd kills a \
          cgroup from 60 % on",
};

static REREAD: Threshold = Threshold {
    rule: CODE,
    name: "reread",
    default: 0.5,
    range: (0.05, 1.0),
    unit: Measure::Ratio,
    why: "part of what disks read that had been in memory and was reclaimed: from half on, lack of \
          memory makes more of the reads than the work itself does",
};

static LEAST: Threshold = Threshold {
    rule: CODE,
    name: "least_seconds",
    default: 10.0,
    range: (2.0, 86_400.0),
    unit: Measure::Seconds,
    why: "a start or a deploy reclaims for some seconds; the kernel's own shortest average is of \
          10 s",
};

static GRAVE: Threshold = Threshold {
    rule: CODE,
    name: "grave",
    default: 0.6,
    range: (0.05, 1.0),
    unit: Measure::Ratio,
    why: "all tasks that had work waited for memory in this part of the time (PSI `full`): it is \
          serious. systemd-oomd kills from here on by default (DefaultMemoryPressureLimit=60%)",
};

/// Fewer bytes in a second are not what makes tasks wait: 256 pages of 4 KiB, as many reads as a
/// disk that turns does in two seconds.
const LEAST_BYTES: f64 = 1024.0 * 1024.0;

fn judge(case: &Case<'_>, out: &mut Findings) {
    let strain = match case.heard("pressure") {
        true => by_pressure(case),
        // A kernel without pressure: tasks in uninterruptible sleep must do.
        false => {
            let waits = Strain::longest(case, &TASKS_WAITING_FOR_IO, &Subject::node(), 1.0);
            by_reads(case, waits)
        }
    };
    match strain {
        Some(strain) => out.found(finding(case, &strain)),
        None if case.heard("pressure") || case.heard("processes") => {}
        None => out.not_judged(CODE, case.why_silent("pressure")),
    }
}

fn by_pressure(case: &Case<'_>) -> Option<Strain> {
    let node = Subject::node();
    let some = Strain::longest(case, &PRESSURE_MEMORY_SOME_RATIO, &node, case.limit(&SOME));
    let of_node = some.filter(|strain| is_long(case, strain)).or_else(|| {
        let io = Strain::longest(case, &PRESSURE_IO_SOME_RATIO, &node, case.limit(&IO));
        by_reads(case, io)
    });
    of_node.or_else(|| of_cgroup(case))
}

/// The cgroup whose tasks waited longest. On a node of many cores that are busy with other work
/// the pressure of the node does not show it.
fn of_cgroup(case: &Case<'_>) -> Option<Strain> {
    let subjects = case.by_subject(&PRESSURE_MEMORY_SOME_RATIO).into_keys();
    let cgroups = subjects.filter(|subject| subject.kind == SubjectKind::Cgroup);
    let strains = cgroups.filter_map(|cgroup| {
        let least = case.limit(&OF_CGROUP);
        Strain::longest(case, &PRESSURE_MEMORY_SOME_RATIO, cgroup, least)
    });
    let long = strains.filter(|strain| is_long(case, strain));
    // A slice waits with what is in it: the deepest of equals is meant.
    long.max_by_key(|strain| (strain.length(), strain.subject.name.len()))
}

/// A time of waiting for I/O, if most of what was read had been in memory.
fn by_reads(case: &Case<'_>, strain: Option<Strain>) -> Option<Strain> {
    let strain = strain.filter(|strain| is_long(case, strain))?;
    let is_reread = strain.reread_part() >= case.limit(&REREAD);
    (is_reread && strain.reread >= LEAST_BYTES).then_some(strain)
}

fn is_long(case: &Case<'_>, strain: &Strain) -> bool {
    strain.length() >= case.lasting(&LEAST)
}

fn finding(case: &Case<'_>, strain: &Strain) -> Finding {
    let places = memory_load::places(case, strain);
    let main = memory_load::main(strain, &places);
    let tasks = memory_load::tasks(case, strain, main);
    let is_grave = strain.full.is_some_and(|full| full >= case.limit(&GRAVE));
    let touched = touched(main, &tasks);
    Finding {
        code: CODE,
        subject: touched.first().cloned().unwrap_or_else(Subject::node),
        severity: match is_grave {
            true => Severity::Serious,
            false => Severity::Warning,
        },
        confidence: confidence(case, main),
        title: format!("{}: {}", title(strain, main, &places), waits(strain)),
        figure: waits(strain),
        since: Some(strain.from),
        evidence: evidence(case, strain, &places, &tasks),
        remedies: remedies(main, &places),
        episodes: vec![Episode {
            from: strain.from,
            to: strain.to,
            touched: touched.clone(),
        }],
        touched,
    }
}

/// That tasks wait is measured. Whose it is, is measured on cgroup v2 alone; on v1 a cgroup at
/// its limit is only the likely one.
fn confidence(case: &Case<'_>, main: Option<&Place>) -> Confidence {
    match main {
        _ if !case.heard("pressure") => Confidence::POSSIBLE,
        Some(place) if place.stalled.is_none_or(|time| time.is_zero()) => Confidence::LIKELY,
        _ => Confidence::CERTAIN,
    }
}

fn waits(strain: &Strain) -> String {
    // The greater of the two is what people feel.
    match (strain.some, strain.io) {
        (Some(some), io) if io.is_none_or(|io| some >= io) => {
            format!("tasks wait for memory {} of the time", percent(some))
        }
        (_, Some(io)) => format!(
            "tasks wait {} of the time for pages read again",
            percent(io)
        ),
        _ => "tasks wait for pages read again".into(),
    }
}

fn does_swap(strain: &Strain) -> bool {
    strain.swapped_in >= LEAST_BYTES
}

fn title(strain: &Strain, main: Option<&Place>, places: &[Place]) -> String {
    let swaps = format!(
        "swaps {}/s in and {}/s out",
        bytes(strain.swapped_in),
        bytes(strain.swapped_out)
    );
    match main {
        Some(main) => {
            let limit = main.limit.map_or(String::new(), |limit| {
                format!(" of {}", bytes(limit as f64))
            });
            format!("{} needs more memory than its limit{limit}", main.name())
        }
        None => {
            let how = match does_swap(strain) {
                true => format!("the node {swaps}"),
                false => "the node is short of memory".into(),
            };
            match largest(places) {
                Some(largest) => format!(
                    "{how}, {} has most ({})",
                    largest.name(),
                    bytes(largest.used as f64)
                ),
                None => how,
            }
        }
    }
}

/// The service or container that has most memory; a slice only adds up those below it.
fn largest(places: &[Place]) -> Option<&Place> {
    let owners = places
        .iter()
        .filter(|place| !place.name().starts_with("cgroup "));
    owners.max_by_key(|place| place.used)
}

const LOOKS: &str = "memory: memory cgroups";

fn evidence(case: &Case<'_>, strain: &Strain, places: &[Place], tasks: &[Task]) -> Vec<Evidence> {
    let mut all = of_waits(case, strain);
    all.extend(of_reads(strain));
    all.extend(of_left(case, strain));
    let at_limit = places.iter().filter(|place| place.hits > 0).take(4);
    all.extend(at_limit.map(of_place));
    if places.is_empty() {
        let text = "which cgroups and processes it was has not been seen";
        all.push(Evidence::missing(LOOKS, text));
    }
    let named = tasks.iter().filter(|task| task.major_faults > 0).take(4);
    all.extend(named.map(|task| {
        let text = format!(
            "{} (pid {}) waited for {} pages to be read (major faults), {} resident",
            task.comm,
            task.pid,
            count(task.major_faults),
            bytes(task.resident as f64)
        );
        Evidence::speaks_for("memory: /proc/PID/stat", text).value(task.major_faults as f64)
    }));
    all
}

fn of_waits(case: &Case<'_>, strain: &Strain) -> Vec<Evidence> {
    let Some(some) = strain.some else {
        return vec![Evidence::missing("pressure", case.why_silent("pressure"))];
    };
    let text = format!(
        "for {} some task waited for memory in {} of the time, all tasks in {}",
        time(strain.length()),
        percent(some),
        percent(strain.full.unwrap_or(0.0))
    );
    let source = match strain.subject.kind {
        SubjectKind::Cgroup => "pressure: memory.pressure",
        _ => "pressure: /proc/pressure/memory",
    };
    let least = match strain.subject.kind {
        SubjectKind::Cgroup => case.limit(&OF_CGROUP),
        _ => case.limit(&SOME),
    };
    let memory = match some >= least {
        true => Evidence::speaks_for(source, text),
        false => Evidence::against(source, text),
    };
    let io = strain.io.map(|io| {
        let text = format!("some task waited for I/O in {} of the time", percent(io));
        Evidence::speaks_for("pressure: io", text).value(io)
    });
    let memory = memory.value(some).at(strain.from);
    std::iter::once(memory).chain(io).collect()
}

fn of_reads(strain: &Strain) -> Vec<Evidence> {
    const SOURCE: &str = "memory: /proc/vmstat";
    let text = format!(
        "disks read {}/s, of which {} had been in memory and was reclaimed",
        bytes(strain.read),
        percent(strain.reread_part())
    );
    let mut all = vec![Evidence::speaks_for(SOURCE, text).value(strain.reread_part())];
    if does_swap(strain) || strain.swapped_out >= LEAST_BYTES {
        let text = format!(
            "swap: {}/s read, {}/s written",
            bytes(strain.swapped_in),
            bytes(strain.swapped_out)
        );
        all.push(Evidence::speaks_for(SOURCE, text).value(strain.swapped_in));
    }
    all
}

/// Whether the node as a whole has too little.
fn of_left(case: &Case<'_>, strain: &Strain) -> Vec<Evidence> {
    let node = Subject::node();
    let left = case.samples(&fact::MEMORY_AVAILABLE_BYTES, &node);
    let left = left.filter(|(at, _)| *at >= strain.from && *at <= strain.to);
    let left = left.map(|(_, left)| left).min_by(f64::total_cmp);
    let total = case.latest(&fact::MEMORY_TOTAL_BYTES, &node);
    let (Some(left), Some(total)) = (left, total) else {
        return Vec::new();
    };
    let text = format!(
        "the node had at least {} of {} available; tasks had to reclaim memory for the whole \
         node {} times a second",
        bytes(left),
        bytes(total),
        count(strain.stalls as u64)
    );
    vec![Evidence::speaks_for("memory: /proc/meminfo, /proc/vmstat", text).value(left)]
}

fn of_place(place: &Place) -> Evidence {
    let limit = place.limit.map_or("its limit".into(), |limit| {
        format!("its limit of {}", bytes(limit as f64))
    });
    let per_second = place.hits as f64 / place.within.as_secs_f64().max(1.0);
    let stalled = place.stalled.map_or(String::new(), |stalled| {
        let part = stalled.as_secs_f64() / place.within.as_secs_f64().max(1.0);
        format!(
            "; tasks of it waited for memory in {} of the time",
            percent(part)
        )
    });
    let text = format!(
        "{} has {} and reached {limit} {} times a second{stalled}",
        place.name(),
        bytes(place.used as f64),
        count(per_second.ceil() as u64)
    );
    Evidence::speaks_for(LOOKS, text).value(per_second)
}

fn remedies(main: Option<&Place>, places: &[Place]) -> Vec<Remedy> {
    let twice = main
        .and_then(|main| main.limit)
        .map(|limit| limit.saturating_mul(2));
    let who = main.or_else(|| largest(places));
    let unit = who
        .and_then(|who| who.unit.as_deref())
        .filter(|unit| unit.ends_with(".service"));
    let container = who.and_then(|who| who.container.as_deref());
    let mut all = Vec::new();
    all.extend(match (container, unit, twice) {
        (Some(id), _, Some(_)) => Some(Remedy::advice(
            RemedyKind::Stop,
            format!(
                "Give container {} a higher memory limit, if the node has room",
                short(id)
            ),
        )),
        (None, Some(unit), Some(twice)) => Some(Remedy::command(
            RemedyKind::Stop,
            "Raise the limit until the next boot, if the node has room",
            format!(
                "{} MemoryMax={twice}",
                systemctl("set-property --runtime", unit)
            ),
        )),
        (None, Some(unit), None) => Some(Remedy::command(
            RemedyKind::Stop,
            "Stop the largest service if it does not have to run here",
            systemctl("stop", unit),
        )),
        (Some(id), _, None) => Some(Remedy::advice(
            RemedyKind::Stop,
            format!(
                "Stop container {} if it does not have to run here",
                short(id)
            ),
        )),
        (None, None, Some(twice)) => Some(Remedy::advice(
            RemedyKind::Stop,
            format!(
                "Raise the memory limit of the cgroup to {}, if the node has room",
                bytes(twice as f64)
            ),
        )),
        (None, None, None) => None,
    });
    all.push(Remedy::advice(
        RemedyKind::Prevent,
        "Set limits by what the work needs at its peak, with its page cache, and alert on memory \
         pressure",
    ));
    all.push(Remedy::command(
        RemedyKind::Look,
        "See which cgroups have most memory",
        "systemd-cgtop --order=memory -n 1",
    ));
    all
}

fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// The cgroup that is short of memory, by its owner first; and the processes that read most.
fn touched(main: Option<&Place>, tasks: &[Task]) -> Vec<Subject> {
    let Some(main) = main else {
        return Vec::new();
    };
    let unit = main
        .unit
        .as_deref()
        .filter(|unit| unit.ends_with(".service"));
    let owners = [
        (SubjectKind::Container, main.container.as_deref()),
        (SubjectKind::Unit, unit),
        (SubjectKind::Cgroup, Some(main.cgroup.as_str())),
    ];
    let owners = owners.into_iter();
    let mut touched: Vec<Subject> = owners
        .filter_map(|(kind, name)| Some(Subject::new(kind, name?)))
        .collect();
    let reads = tasks
        .iter()
        .filter(|task| task.major_faults > 0 || task.read_bytes > 0);
    touched.extend(
        reads
            .take(4)
            .map(|task| Subject::new(SubjectKind::Process, task.pid.as_str())),
    );
    touched
}

#[cfg(test)]
mod tests;
