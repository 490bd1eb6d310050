//! IO001: a disk is saturated or stalls
//!
//! Means: a disk has had more requests than it can serve for 10 s or longer, so that every
//! request waits in its queue; or it has requests and completes none. What reads, writes or
//! syncs on it takes many times as long. Databases, container starts and logins are first.
//! Not this: a disk that is 100 % busy and still answers at once, as an NVMe device does that
//! serves many requests in parallel; a backup that saturates a disk while nothing else waits
//! for it (this is a note); an idle disk of which the kernel still counts a request that no task
//! waits for (a note); time lost to a network filesystem.
//! By hand: `iostat -x 1`, `cat /proc/pressure/io`, `iotop -obP`.
//! Next: find out whether the process that reads or writes most has to do it now; limit it
//! (`IOReadBandwidthMax=`, `IOWeight=`, `ionice -c3`) or move it. If no process reads or writes
//! much, the disk itself is slow: look for errors of the hardware (HW001).

use std::collections::BTreeSet;
use std::time::Duration;

use sexton_model::fact::Measure;
use sexton_model::fact::disk::{DISK_BUSY_RATIO, DISK_COMPLETED, DISK_SEEN};
use sexton_model::fact::pressure::{PRESSURE_IO_FULL_RATIO, PRESSURE_IO_SOME_RATIO};
use sexton_model::family::Family;
use sexton_model::finding::{
    Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity, Stance,
};
use sexton_model::fix::Offer;
use sexton_model::moment::Moment;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::shell_word;

use crate::case::Case;
use crate::evidence::disk_load::{self, Load, Parties, Party};
use crate::evidence::span;
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures::{bytes, count, percent, time, time_ns};
use crate::words::unit_name::{self, systemctl};

const CODE: &str = "IO001";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::Storage,
    title: "a disk is saturated or stalls",
    sees: "saturated disks",
    needs: &["disks"],
    uses: &["pressure"],
    is_essential: true,
    least: Some(&LEAST),
    cause: Cause::WhenNamed,
    offer: Offer::NOTHING,
    thresholds: &[&BUSY, &LEAST, &LATENCY, &SOME, &OTHERS, &STALL],
    source: include_str!("io001_saturated_disk.rs"),
    judge,
};

static BUSY: Threshold = Threshold {
    rule: CODE,
    name: "busy",
    default: 0.9,
    range: (0.1, 1.0),
    unit: Measure::Ratio,
    why: "a disk that had a request in this part of the time has no time left; iostat's %util of \
          a saturated disk is 95 to 100",
};

static LEAST: Threshold = Threshold {
    rule: CODE,
    name: "least_seconds",
    default: 10.0,
    range: (2.0, 86_400.0),
    unit: Measure::Seconds,
    why: "shorter bursts are ordinary: the kernel writes its cache back every 5 s \
          (vm.dirty_writeback_centisecs)",
};

static LATENCY: Threshold = Threshold {
    rule: CODE,
    name: "latency_ms",
    default: 20.0,
    range: (0.1, 60_000.0),
    unit: Measure::Count,
    why: "milliseconds of a request, on average. An SSD answers within 1 ms and a disk that turns \
          within 5 to 15 ms; a request that takes longer has waited in the queue. Without this an \
          NVMe device that serves a database at 100 % busy would be called saturated",
};

static SOME: Threshold = Threshold {
    rule: CODE,
    name: "pressure",
    default: 0.2,
    range: (0.0, 1.0),
    unit: Measure::Ratio,
    why: "in a smaller part of the time did any task wait for I/O (PSI `some`), so the queue is \
          that of the kernel's own writing, which holds up no process. `full` does not count: it \
          is near 0 as long as any process computes",
};

static OTHERS: Threshold = Threshold {
    rule: CODE,
    name: "others_wait",
    default: 0.25,
    range: (0.0, 1.0),
    unit: Measure::Ratio,
    why: "part of the looks at all processes in which another than the main user of the disk was \
          in uninterruptible sleep. Below this only the one that saturates the disk waits for it, \
          as a nightly backup does: a note. One look in four is seen to be slow by its users",
};

static STALL: Threshold = Threshold {
    rule: CODE,
    name: "stall_seconds",
    default: 5.0,
    range: (1.0, 3_600.0),
    unit: Measure::Seconds,
    why: "a disk that has requests and completes none for so long does not work: the slowest \
          correct request of a disk that turns, with its own retries, takes 1 to 3 s",
};

/// Disks that get a finding.
const MAX_FINDINGS: usize = 8;

fn judge(case: &Case<'_>, out: &mut Findings) {
    let mut findings: Vec<Finding> = Vec::new();
    let mut stalled: BTreeSet<&Subject> = BTreeSet::new();
    for disk in case.by_subject(&DISK_COMPLETED).keys() {
        if let Some(finding) = stall(case, disk) {
            stalled.insert(disk);
            findings.push(finding);
        }
    }
    let disks = case.by_subject(&DISK_BUSY_RATIO);
    let others = disks.keys().filter(|disk| !stalled.contains(*disk));
    let loads: Vec<Load<'_>> = others.filter_map(|disk| saturated(case, disk)).collect();
    let lower = loads
        .iter()
        .filter(|load| !has_part(case, load.disk, &loads));
    findings.extend(lower.map(|load| finding(case, load)));
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.id()));
    findings.truncate(MAX_FINDINGS);
    findings.into_iter().for_each(|finding| out.found(finding));
}

/// A time in which a disk was saturated.
fn saturated<'a>(case: &Case<'a>, disk: &'a Subject) -> Option<Load<'a>> {
    let load = disk_load::longest(case, disk, case.limit(&BUSY))?;
    let is_long = load.length() >= case.lasting(&LEAST);
    let is_slow = load.latency_ns / 1e6 >= case.limit(&LATENCY);
    let waits = pressure(case, &PRESSURE_IO_SOME_RATIO, &load);
    let some_wait = waits.is_none_or(|some| some >= case.limit(&SOME));
    (is_long && is_slow && some_wait).then_some(load)
}

fn pressure(
    case: &Case<'_>,
    fact: &'static sexton_model::fact::Fact,
    load: &Load<'_>,
) -> Option<f64> {
    let node = Subject::node();
    let samples: Vec<(Moment, f64)> = case.samples(fact, &node).collect();
    span::mean(&samples, &[load.span()])
}

/// Whether the disk is made of one that is saturated too: then that one is meant.
fn has_part(case: &Case<'_>, disk: &Subject, loads: &[Load<'_>]) -> bool {
    let seen = case
        .events(&DISK_SEEN)
        .rev()
        .find(|event| event.subject == disk);
    let made_of = seen.map_or(&[][..], |event| &event.says.made_of[..]);
    let mut others = loads.iter();
    // A part may be a partition of the disk that was measured.
    others.any(|load| {
        made_of
            .iter()
            .any(|part| part.starts_with(&*load.disk.name))
    })
}

/// Whether any task waited while a disk completed nothing: `None` where that was not seen. A
/// kernel that lost count of a disk's requests shows one for ever, and nothing waits for it.
fn is_waited_for(case: &Case<'_>, disk: &Subject, span: (Moment, Moment)) -> Option<Evidence> {
    let waits = disk_load::waits(case, disk, span);
    let node = Subject::node();
    let samples: Vec<(Moment, f64)> = case.samples(&PRESSURE_IO_SOME_RATIO, &node).collect();
    let some = span::mean(&samples, &[span]);
    let (source, text, is_enough) = match (waits, some) {
        (Some(waits), _) => (
            "disks: /proc/PID/stat",
            format!(
                "a task was in uninterruptible sleep in {} of the looks",
                percent(waits)
            ),
            waits >= case.limit(&OTHERS),
        ),
        (None, Some(some)) => (
            "pressure: /proc/pressure/io",
            format!("some task waited for I/O in {} of that time", percent(some)),
            some >= case.limit(&SOME),
        ),
        (None, None) => return None,
    };
    Some(match is_enough {
        true => Evidence::speaks_for(source, text),
        false => Evidence::against(source, text),
    })
}

fn stall(case: &Case<'_>, disk: &Subject) -> Option<Finding> {
    let (from, to) = disk_load::stall(case, disk)?;
    if to.since(from).as_secs_f64() < case.limit(&STALL) {
        return None;
    }
    let length = time(to.since(from));
    let text = format!("it had requests and completed none for {length}");
    let waited = is_waited_for(case, disk, (from, to));
    let (severity, confidence) = match waited.as_ref().map(|waited| waited.stance) {
        Some(Stance::For) => (Severity::Serious, Confidence::CERTAIN),
        Some(_) => (Severity::Note, Confidence::POSSIBLE),
        None => (Severity::Warning, Confidence::POSSIBLE),
    };
    let name = &disk.name;
    let unseen = || Evidence::missing("pressure", case.why_silent("pressure"));
    Some(Finding {
        code: CODE,
        subject: disk.clone(),
        severity,
        confidence,
        title: match severity {
            Severity::Note => format!(
                "disk {name} has requests that it does not complete, and no task waits for them"
            ),
            _ => format!("disk {name} stalls: it completed no request for {length}"),
        },
        figure: format!("no request completed for {length}"),
        since: Some(from),
        evidence: vec![
            Evidence::speaks_for("disks: /proc/diskstats", text)
                .value(to.since(from).as_secs_f64())
                .at(from),
            waited.unwrap_or_else(unseen),
        ],
        remedies: vec![Remedy::command(
            RemedyKind::Look,
            "Look for errors of the disk",
            format!("journalctl -k -g {}", shell_word(&disk.name)),
        )],
        touched: vec![disk.clone()],
        episodes: vec![Episode {
            from,
            to,
            touched: vec![disk.clone()],
        }],
    })
}

fn finding(case: &Case<'_>, load: &Load<'_>) -> Finding {
    let parties = disk_load::parties(case, load);
    let main = parties.main();
    let name = &load.disk.name;
    let latency = time_ns(load.latency_ns);
    let by = main.map_or(String::new(), |main| format!(" by {}", called(main)));
    let waiting = waiting(&parties);
    let do_others_wait = parties.others_wait() >= case.limit(&OTHERS);
    let effect = match (&waiting[..], parties.n_looks) {
        (_, 0) => String::new(),
        ([], _) => "; nothing else waits for it".into(),
        _ if !do_others_wait => "; hardly anything else waits for it".into(),
        ([one], _) => format!("; {one} waits for it"),
        ([first, more @ ..], _) => format!("; {first} and {} more wait for it", more.len()),
    };
    let is_alone = parties.n_looks > 0 && !do_others_wait && main.is_some();
    Finding {
        code: CODE,
        subject: load.disk.clone(),
        severity: match is_alone {
            true => Severity::Note,
            false => Severity::Warning,
        },
        confidence: match parties.n_looks {
            0 => Confidence::POSSIBLE,
            _ => Confidence::CERTAIN,
        },
        title: format!("disk {name} is saturated{by}: requests take {latency}{effect}"),
        figure: format!("{} busy, {latency} a request", percent(load.busy)),
        since: Some(load.from),
        evidence: evidence(case, load, &parties),
        remedies: remedies(main),
        touched: touched(load.disk, &parties),
        episodes: vec![Episode {
            from: load.from,
            to: load.to,
            touched: vec![load.disk.clone()],
        }],
    }
}

/// `backup.service (tar)`, `dd (pid 812)`.
fn called(party: &Party) -> String {
    match party.name == party.comm || party.comm.is_empty() {
        true => format!("{} (pid {})", party.name, party.pid),
        false => format!("{} ({})", party.name, party.comm),
    }
}

/// Those that wait, other than the one that used the disk most; the most often first.
fn waiting(parties: &Parties) -> Vec<String> {
    let main = parties.main().map(|main| &main.name);
    let mut others: Vec<&Party> = parties
        .all
        .iter()
        .filter(|party| party.n_waits > 0 && Some(&party.name) != main)
        .collect();
    others.sort_by(|a, b| b.n_waits.cmp(&a.n_waits).then_with(|| a.name.cmp(&b.name)));
    others.into_iter().map(called).collect()
}

fn evidence(case: &Case<'_>, load: &Load<'_>, parties: &Parties) -> Vec<Evidence> {
    const SOURCE: &str = "disks: /proc/diskstats";
    let text = format!(
        "busy {} of {}, {:.0} requests at once, {} for each, {}/s",
        percent(load.busy),
        time(load.length()),
        load.queue,
        time_ns(load.latency_ns),
        bytes(load.bytes_per_second)
    );
    let mut all = vec![
        Evidence::speaks_for(SOURCE, text)
            .value(load.busy * 100.0)
            .at(load.from),
    ];
    all.push(match pressure(case, &PRESSURE_IO_SOME_RATIO, load) {
        Some(some) => {
            let full = pressure(case, &PRESSURE_IO_FULL_RATIO, load).unwrap_or(0.0);
            let text = format!(
                "some task waited for I/O in {} of that time, all tasks in {}",
                percent(some),
                percent(full)
            );
            Evidence::speaks_for("pressure: /proc/pressure/io", text).value(some)
        }
        None => Evidence::missing("pressure", case.why_silent("pressure")),
    });
    all.extend(of_parties(parties, load.length()));
    all
}

fn of_parties(parties: &Parties, length: Duration) -> Vec<Evidence> {
    const SOURCE: &str = "disks: /proc/PID/io, /proc/PID/stat";
    if parties.n_looks == 0 {
        let text = "which processes used the disk and waited was not seen";
        return vec![Evidence::missing(SOURCE, text)];
    }
    let used = parties.all.iter().filter(|party| party.bytes > 0).take(4);
    let per_second = |party: &Party| party.bytes as f64 / length.as_secs_f64().max(1.0);
    let mut all: Vec<Evidence> = used
        .map(|party| {
            let rate = per_second(party);
            let text = format!("{} read and wrote {}/s", called(party), bytes(rate));
            Evidence::speaks_for(SOURCE, text).value(rate)
        })
        .collect();
    let looks = count(parties.n_looks as u64);
    all.push(match &waiting(parties)[..] {
        [] => {
            let text = format!("no other process was in uninterruptible sleep in {looks} looks");
            Evidence::against(SOURCE, text)
        }
        names => {
            let names: Vec<&str> = names.iter().take(4).map(String::as_str).collect();
            let text = format!(
                "in {} of {looks} looks another process was in uninterruptible sleep: {}",
                count(parties.n_others_wait as u64),
                names.join(", ")
            );
            Evidence::speaks_for(SOURCE, text).value(parties.others_wait())
        }
    });
    all
}

fn remedies(main: Option<&Party>) -> Vec<Remedy> {
    let look = Remedy::command(
        RemedyKind::Look,
        "See which processes read and write",
        "sudo iotop -obP -n 3",
    );
    let Some(main) = main else {
        return vec![look];
    };
    let unit = main
        .unit
        .as_deref()
        .filter(|unit| unit.ends_with(".service"));
    let stop = match (&main.container, unit) {
        (Some(id), _) => {
            let text = format!("Stop container {id} if it does not have to run now");
            Remedy::advice(RemedyKind::Stop, text)
        }
        (None, Some(unit)) => Remedy::command(
            RemedyKind::Stop,
            "Stop the unit if it does not have to run now",
            systemctl("stop", unit),
        ),
        (None, None) => Remedy::command(
            RemedyKind::Stop,
            format!("Let {} yield to other readers and writers", main.comm),
            format!("sudo ionice -c3 -p {}", main.pid),
        ),
    };
    let prevent = match unit {
        Some(unit) => format!(
            "Set IOWeight= or IOReadBandwidthMax= and IOWriteBandwidthMax= for {}",
            unit_name::own(unit)
        ),
        None => "Run it with ionice -c3, or in a unit with IOWeight=".into(),
    };
    vec![stop, Remedy::advice(RemedyKind::Prevent, prevent), look]
}

fn touched(disk: &Subject, parties: &Parties) -> Vec<Subject> {
    let mut touched = vec![disk.clone()];
    if let Some(main) = parties.main() {
        touched.push(Subject::new(SubjectKind::Process, main.pid.to_string()));
        let named = [
            (SubjectKind::Unit, &main.unit),
            (SubjectKind::Container, &main.container),
            (SubjectKind::Cgroup, &main.cgroup),
        ];
        let named = named.into_iter();
        touched.extend(named.filter_map(|(kind, name)| Some(Subject::new(kind, name.as_deref()?))));
    }
    touched
}

#[cfg(test)]
mod tests;
