//! HW001: the hardware reports errors
//!
//! Means: the kernel logged an error of a CPU, of memory (machine check, ECC), of a PCIe
//! device (AER), of a disk (timeout, failed read or write) or of an NVIDIA GPU (Xid). What the
//! hardware corrected by itself is a note; what it could not correct costs data, time or the
//! device.
//! Not this: Xid 13, 31, 43 and 45, which are mostly errors of the program on the GPU;
//! drives without a medium (fd0, sr0); loop, zram, network and mapped block devices, which
//! are no hardware; a line that a program wrote into the log, which is marked and weak.
//! By hand: `journalctl -k -g 'Hardware Error|EDAC|PCIe Bus Error|nvme.*timeout|I/O error|Xid'`.
//! Next: have the device that the finding names checked, and move the work off the node before
//! that. `smartctl -a`, `nvidia-smi -q` and `ras-mc-ctl --errors` show what each counted.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use sexton_model::fact::Measure;
use sexton_model::family::Family;
use sexton_model::finding::{Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::moment::Moment;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::shell_word;

use crate::case::Case;
use crate::evidence::kernel_log::{self, Line};
use crate::evidence::span::{self, earlier};
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures::{before, plural, times};

const CODE: &str = "HW001";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::Hardware,
    title: "the hardware reports errors",
    sees: "hardware errors",
    needs: &["klog"],
    uses: &[],
    is_essential: true,
    least: None,
    cause: Cause::Always,
    offer: Offer::NOTHING,
    thresholds: &[&BEFORE],
    source: include_str!("hw001_hardware.rs"),
    judge,
};

static BEFORE: Threshold = Threshold {
    rule: CODE,
    name: "before",
    default: 600.0,
    range: (0.0, 604_800.0),
    unit: Measure::Seconds,
    why: "errors so long before the watch count in full, older ones are notes: the log goes back \
          to the boot, and a disk that failed a read last week does not explain what happens now; \
          10 minutes are twenty timeouts of an NVMe disk (30 s, nvme_core.io_timeout)",
};

/// The classes of lines about hardware.
const CLASSES: [&str; 5] = [
    "hw_corrected",
    "hw_uncorrected",
    "disk_timeout",
    "disk_error",
    "gpu_xid",
];

/// Errors of the program that runs on the GPU, by NVIDIA's table of Xids.
const XIDS_OF_PROGRAMS: [u64; 4] = [13, 31, 43, 45];

/// Xids after which the GPU works on: a row was remapped, errors were contained or corrected.
const XIDS_WITHOUT_LOSS: [u64; 3] = [63, 92, 94];

/// A machine check whose status has this bit was not corrected.
const STATUS_UNCORRECTED: u64 = 1 << 61;

/// Block devices that are no hardware, or may have no medium.
const NO_DISKS: [&str; 9] = ["fd", "sr", "loop", "zram", "ram", "nbd", "rbd", "dm-", "md"];

/// Findings that are made; the rest is counted on the last of them.
const MAX_FINDINGS: usize = 16;

/// Lines that a finding shows.
const MAX_SHOWN: usize = 4;

fn judge(case: &Case<'_>, out: &mut Findings) {
    let mut by_place: BTreeMap<Subject, Vec<Line<'_>>> = BTreeMap::new();
    for line in kernel_log::lines(case, &CLASSES) {
        let place = place(line);
        if is_disk_line(line) && NO_DISKS.iter().any(|name| place.name.starts_with(name)) {
            continue;
        }
        by_place.entry(place).or_default().push(line);
    }
    let mut findings: Vec<Finding> = by_place
        .iter()
        .map(|(place, lines)| finding(case, place, lines))
        .collect();
    findings.sort_by_key(|finding| (Reverse(finding.severity), finding.id()));
    let n_left = findings.len().saturating_sub(MAX_FINDINGS);
    findings.truncate(MAX_FINDINGS);
    if let Some(last) = findings.last_mut().filter(|_| n_left > 0) {
        let text = format!("{} reported errors", plural(n_left as u64, "more device"));
        last.evidence.push(Evidence::speaks_for("klog", text));
    }
    findings.into_iter().for_each(|finding| out.found(finding));
}

fn is_disk_line(line: Line<'_>) -> bool {
    line.class().starts_with("disk_")
}

/// The device that a line names, by name, port or address; else its core; else the node.
fn place(line: Line<'_>) -> Subject {
    let says = line.says();
    let port = line.text("port").map(|port| format!("ata{port}"));
    let name = says.device.clone().or(port).or(says.bus.clone());
    match (name, line.core()) {
        (Some(name), _) => Subject::new(SubjectKind::Device, name),
        (None, Some(core)) => core,
        (None, None) => Subject::node(),
    }
}

/// How bad a line is, and what it says, in words.
fn weigh(line: Line<'_>) -> (Severity, String) {
    match line.class() {
        "gpu_xid" => weigh_xid(line),
        "disk_timeout" => (Severity::Warning, "did not answer in time".into()),
        "disk_error" => (Severity::Serious, "failed to read or write".into()),
        "hw_corrected" if !is_uncorrected(line) => (
            Severity::Note,
            "reported an error that was corrected".into(),
        ),
        _ => (Severity::Serious, "reported an uncorrected error".into()),
    }
}

fn weigh_xid(line: Line<'_>) -> (Severity, String) {
    let xid = line.captured("xid").unwrap_or_default();
    let what = line.text("what").unwrap_or_default().trim_end_matches('.');
    // What comes behind a process is about that process, and long.
    let what = match what.is_empty() || what.starts_with("pid=") {
        true => String::new(),
        false => format!(" ({what})"),
    };
    let severity = match xid {
        xid if XIDS_OF_PROGRAMS.contains(&xid) => Severity::Note,
        xid if XIDS_WITHOUT_LOSS.contains(&xid) => Severity::Warning,
        _ => Severity::Serious,
    };
    (severity, format!("reported Xid {xid}{what}"))
}

fn is_uncorrected(line: Line<'_>) -> bool {
    let status = line.text("status");
    let status = status.and_then(|status| u64::from_str_radix(status, 16).ok());
    status.is_some_and(|status| status & STATUS_UNCORRECTED != 0)
}

/// The lines that decide, and whether they count in full: the gravest that the kernel wrote of
/// late. Older ones decide only where there is none, and those that a program wrote only where
/// the kernel wrote none: neither hides what goes wrong now.
fn deciding<'a>(case: &Case<'_>, lines: &[Line<'a>]) -> (Vec<Line<'a>>, bool) {
    let since = since(case);
    let rank = |line: Line<'_>| {
        let is_of_kernel = line.is_of_kernel();
        let is_recent = is_of_kernel && line.at() >= since;
        (is_recent, is_of_kernel, weigh(line).0)
    };
    let first = lines.iter().map(|line| rank(*line)).max();
    let alike = |line: &Line<'_>| {
        let (_, is_of_kernel, severity) = rank(*line);
        first.is_some_and(|first| (first.1, first.2) == (is_of_kernel, severity))
    };
    let alike = lines.iter().copied().filter(alike).collect();
    (alike, first.is_some_and(|first| first.0))
}

fn finding(case: &Case<'_>, place: &Subject, lines: &[Line<'_>]) -> Finding {
    let (alike, counts_in_full) = deciding(case, lines);
    let last = alike.iter().copied().max_by_key(|line| line.at());
    let (severity, words) = last.map_or((Severity::Note, String::new()), weigh);
    let last = last.map(Line::at).unwrap_or_default();
    let often = times(alike.len());
    Finding {
        code: CODE,
        subject: place.clone(),
        severity: match counts_in_full {
            true => severity,
            false => Severity::Note,
        },
        confidence: kernel_log::trust(&alike),
        title: format!(
            "{} {words} {often}, last {}",
            name(place, lines),
            before(case.now(), last)
        ),
        figure: format!("{words} {often}"),
        since: alike.iter().map(|line| line.at()).min(),
        evidence: evidence(lines, &alike),
        remedies: remedies(place, lines),
        touched: touched(place, lines),
        episodes: span::longest(alike.iter().map(|line| episode(place, *line)).collect()),
    }
}

/// From when on errors count in full.
fn since(case: &Case<'_>) -> Moment {
    let began = case.window().map_or(case.now(), |window| *window.start());
    earlier(began, Duration::from_secs_f64(case.limit(&BEFORE)))
}

fn name(place: &Subject, lines: &[Line<'_>]) -> String {
    let is = |class: &str| lines.iter().any(|line| line.class() == class);
    match place.kind {
        SubjectKind::Node => "the hardware".into(),
        SubjectKind::Cpu => format!("core {}", place.name),
        _ if is("gpu_xid") => format!("GPU {}", place.name),
        _ if place.name.starts_with("MC") => format!("memory controller {}", place.name),
        _ if lines.iter().copied().any(is_disk_line) => format!("disk {}", place.name),
        _ => format!("device {}", place.name),
    }
}

/// The lines that decide come first.
fn evidence(lines: &[Line<'_>], alike: &[Line<'_>]) -> Vec<Evidence> {
    let text = format!(
        "{} about it in the kernel log",
        plural(lines.len() as u64, "line")
    );
    let mut evidence = vec![Evidence::speaks_for("klog", text).value(alike.len() as f64)];
    let decides = |line: &Line<'_>| {
        let first = alike.first();
        first.is_some_and(|first| {
            first.is_of_kernel() == line.is_of_kernel() && weigh(*first).0 == weigh(*line).0
        })
    };
    let worst = |line: &&Line<'_>| Reverse((decides(line), weigh(**line).0, line.at()));
    let mut sorted: Vec<&Line<'_>> = lines.iter().collect();
    sorted.sort_by_key(worst);
    evidence.extend(sorted.iter().take(MAX_SHOWN).map(|line| line.evidence()));
    evidence
}

fn remedies(place: &Subject, lines: &[Line<'_>]) -> Vec<Remedy> {
    let look = |text: &str, command: String| Remedy::command(RemedyKind::Look, text, command);
    let is_gpu = lines.iter().any(|line| line.class() == "gpu_xid");
    let is_disk = lines.iter().copied().any(is_disk_line);
    let device = shell_word(&place.name);
    let own = match place.kind {
        SubjectKind::Device if is_gpu => Some(look(
            "Print the GPU's error counters",
            "nvidia-smi -q -d ECC,PAGE_RETIREMENT".into(),
        )),
        SubjectKind::Device if is_disk && device.starts_with("ata") => Some(look(
            "Find the disk at that port",
            "ls -l /dev/disk/by-path".into(),
        )),
        SubjectKind::Device if is_disk => Some(look(
            "Print the disk's SMART data",
            format!("sudo smartctl -a /dev/{device}"),
        )),
        SubjectKind::Device if device.contains(':') => Some(look(
            "Identify the device",
            format!("sudo lspci -vv -s {device}"),
        )),
        SubjectKind::Device if !device.starts_with("MC") => None,
        _ => Some(look(
            "Print the memory controllers' error counters",
            "sudo ras-mc-ctl --errors".into(),
        )),
    };
    let log = look(
        "Read the lines in the kernel log",
        "journalctl -k -p warning".into(),
    );
    let prevent = Remedy::advice(
        RemedyKind::Prevent,
        "Drain the node and replace the device if errors continue",
    );
    own.into_iter().chain([log, prevent]).collect()
}

fn touched(place: &Subject, lines: &[Line<'_>]) -> Vec<Subject> {
    let mut touched = vec![place.clone()];
    for core in lines.iter().filter_map(|line| line.core()) {
        if !touched.contains(&core) {
            touched.push(core);
        }
    }
    touched
}

fn episode(place: &Subject, line: Line<'_>) -> Episode {
    Episode {
        from: line.at(),
        to: line.at(),
        touched: [Some(place.clone()), line.core()]
            .into_iter()
            .flatten()
            .collect(),
    }
}

#[cfg(test)]
mod tests;
