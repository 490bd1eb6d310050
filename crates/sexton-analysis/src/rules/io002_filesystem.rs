//! IO002: a filesystem is full, or read-only after an error
//!
//! Means: users other than root can write nothing more, because no space or no inode is left,
//! or because the kernel stopped all writes after an error of the disk or of the filesystem.
//! Programs fail with "No space left on device" or "Read-only file system"; logs, container
//! starts and databases are first.
//! Not this: a large filesystem with little left in percent but room for more; one that was
//! mounted read-only (an image, a DVD, a read-only bind mount); network filesystems, which
//! are not asked.
//! By hand: `df -h`, `df -i`, `journalctl -k -g 'read-only|Shutting down filesystem|forced readonly'`.
//! Next: `du -x` of the mount point for what fills it; files that are deleted but still open
//! (`lsof +L1`) use space too. After an error check the disk first (HW001), then `fsck`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sexton_model::fact::filesystem::{self as fact, FilesystemSeen};
use sexton_model::fact::{Fact, Measure};
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::moment::Moment;
use sexton_model::record::Event;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::shell_word;

use crate::case::Case;
use crate::evidence::kernel_log::{self, Line};
use crate::evidence::span::earlier;
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures::{before, bytes, count};

const CODE: &str = "IO002";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::Storage,
    title: "a filesystem is full, or read-only after an error",
    sees: "full filesystems",
    needs: &[],
    uses: &["filesystems", "klog"],
    is_essential: true,
    least: None,
    cause: Cause::WhenNamed,
    offer: Offer::NOTHING,
    thresholds: &[&FULL, &LEAST_BYTES, &LEAST_INODES, &BEFORE],
    source: include_str!("io002_filesystem.rs"),
    judge,
};

static FULL: Threshold = Threshold {
    rule: CODE,
    name: "full",
    default: 0.98,
    range: (0.5, 1.0),
    unit: Measure::Ratio,
    why: "this part of what users other than root may use is in use; the kubelet evicts pods at \
          0.90 (nodefs.available<10%), so what passes 0.98 was not saved by that",
};

static LEAST_BYTES: Threshold = Threshold {
    rule: CODE,
    name: "least_bytes",
    default: 1_073_741_824.0,
    range: (0.0, 1e15),
    unit: Measure::Bytes,
    why: "with more left than this it is not full, whatever the part: 2 % of a large disk are \
          room for days, while 1 GiB is less than one container image",
};

static LEAST_INODES: Threshold = Threshold {
    rule: CODE,
    name: "least_inodes",
    default: 10_000.0,
    range: (0.0, 1e12),
    unit: Measure::Count,
    why: "with more inodes left than this they are not used up, whatever the part: an image of a \
          distribution unpacks to some 10,000 files",
};

static BEFORE: Threshold = Threshold {
    rule: CODE,
    name: "before",
    default: 600.0,
    range: (0.0, 604_800.0),
    unit: Measure::Seconds,
    why: "an error so long before the watch counts even if the filesystem does not show that it \
          is read-only, as XFS does not; an older one may have been repaired",
};

/// From here on the next write may be the one that fails.
const NOTHING_LEFT: f64 = 0.995;

/// Filesystems that get a finding; more of them have one cause.
const MAX_FINDINGS: usize = 16;

fn judge(case: &Case<'_>, out: &mut Findings) {
    let mut findings = after_errors(case);
    let stopped: BTreeSet<Subject> = findings.iter().map(|one| one.subject.clone()).collect();
    let mounts = case.by_subject(&fact::FS_USED_RATIO);
    let others = mounts.keys().filter(|mount| !stopped.contains(**mount));
    findings.extend(others.filter_map(|mount| full(case, mount)));
    if findings.is_empty() && !case.heard("filesystems") {
        return out.not_judged(CODE, case.why_silent("filesystems"));
    }
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.id()));
    findings.truncate(MAX_FINDINGS);
    findings.into_iter().for_each(|finding| out.found(finding));
}

/// What is used up on a filesystem.
struct Scarce {
    fact: &'static Fact,
    used: f64,
    left: String,
    what: &'static str,
    command: String,
}

fn full(case: &Case<'_>, mount: &Subject) -> Option<Finding> {
    if case.latest(&fact::FS_READ_ONLY, mount) == Some(1.0) {
        // No one can write to it anyway.
        return None;
    }
    let scarce = space(case, mount).or_else(|| inodes(case, mount))?;
    let is_over = |(_, used): &(Moment, f64)| *used >= case.limit(&FULL);
    let since = case.samples(scarce.fact, mount).find(is_over);
    let is_out = scarce.used >= NOTHING_LEFT;
    let point = &mount.name;
    let percent = format!("{:.1} %", scarce.used * 100.0);
    let text = format!(
        "{percent} of its {} in use, {} left",
        scarce.what, scarce.left
    );
    Some(Finding {
        code: CODE,
        subject: mount.clone(),
        severity: match is_out {
            true => Severity::Serious,
            false => Severity::Warning,
        },
        confidence: Confidence::CERTAIN,
        title: format!(
            "filesystem {point} {}: {percent} of its {} in use, {} left",
            if is_out { "is full" } else { "is almost full" },
            scarce.what,
            scarce.left
        ),
        figure: format!("{percent} of {} used", scarce.what),
        since: since.map(|(at, _)| at),
        evidence: vec![
            Evidence::speaks_for("filesystems: statfs", text).value(scarce.used * 100.0),
            Evidence::missing("filesystems", "what fills it: sexton does not scan files"),
        ],
        remedies: vec![
            Remedy::command(RemedyKind::Look, "List what fills it", scarce.command),
            Remedy::command(
                RemedyKind::Look,
                "List deleted files that are still open",
                format!("sudo lsof +L1 {}", shell_word(point)),
            ),
        ],
        touched: touched(mount, seen(case, mount)),
        episodes: vec![Episode {
            from: since.map_or(case.now(), |(at, _)| at),
            to: case.now(),
            touched: vec![mount.clone()],
        }],
    })
}

fn space(case: &Case<'_>, mount: &Subject) -> Option<Scarce> {
    let used = case.latest(&fact::FS_USED_RATIO, mount)?;
    let left = case.latest(&fact::FS_AVAILABLE_BYTES, mount)?;
    let is_scarce = used >= case.limit(&FULL) && left < case.limit(&LEAST_BYTES);
    let point = shell_word(&mount.name);
    is_scarce.then(|| Scarce {
        fact: &fact::FS_USED_RATIO,
        used,
        left: bytes(left),
        what: "space",
        command: format!("sudo du -xh --max-depth=2 {point} | sort -h | tail -n 20"),
    })
}

fn inodes(case: &Case<'_>, mount: &Subject) -> Option<Scarce> {
    let used = case.latest(&fact::FS_INODES_USED_RATIO, mount)?;
    let left = case.latest(&fact::FS_INODES_AVAILABLE, mount)?;
    let is_scarce = used >= case.limit(&FULL) && left < case.limit(&LEAST_INODES);
    let point = shell_word(&mount.name);
    is_scarce.then(|| Scarce {
        fact: &fact::FS_INODES_USED_RATIO,
        used,
        left: format!("{} inodes", count(left as u64)),
        what: "inodes",
        command: format!("sudo du -x --inodes --max-depth=2 {point} | sort -n | tail -n 20"),
    })
}

/// What is known of a filesystem, as it was last told.
fn seen<'a>(case: &Case<'a>, mount: &Subject) -> Option<&'a FilesystemSeen> {
    let mut events = case.events(&fact::FS_SEEN).rev();
    events
        .find(|event| event.subject == mount)
        .map(|event| event.says)
}

fn touched(mount: &Subject, seen: Option<&FilesystemSeen>) -> Vec<Subject> {
    let device = seen.and_then(|seen| seen.device.as_deref());
    let device = device.map(|device| Subject::new(SubjectKind::Device, device));
    [Some(mount.clone()), device]
        .into_iter()
        .flatten()
        .collect()
}

/// Filesystems that the kernel stopped: by the lines about their devices.
fn after_errors(case: &Case<'_>) -> Vec<Finding> {
    let mut by_device: BTreeMap<&Subject, Vec<Line<'_>>> = BTreeMap::new();
    for line in kernel_log::lines(case, &["fs_read_only"]) {
        by_device.entry(line.subject()).or_default().push(line);
    }
    let devices = by_device.iter();
    devices
        .filter_map(|(device, lines)| stopped(case, device, lines))
        .collect()
}

/// What the mount table shows of a filesystem since the kernel stopped it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    ReadOnly,
    /// It was read-only, and is writable again.
    Repaired,
    /// It is writable, and was not seen otherwise.
    Writable,
    Nothing,
}

impl Shown {
    fn evidence(self) -> Option<Evidence> {
        const SOURCE: &str = "filesystems: mount table";
        match self {
            Self::ReadOnly => {
                let text = "the filesystem is read-only now";
                Some(Evidence::speaks_for(SOURCE, text))
            }
            Self::Writable => {
                let text = "it is mounted read-write now: it was mounted again, or the kernel \
                            (Linux 6.12 to 6.14 of ext4) does not show that it is stopped";
                Some(Evidence::against(SOURCE, text))
            }
            Self::Repaired | Self::Nothing => None,
        }
    }
}

fn shown(case: &Case<'_>, mount: Event<'_, FilesystemSeen>, stopped: Moment) -> Shown {
    if mount.says.read_only {
        return Shown::ReadOnly;
    }
    let since = case.samples(&fact::FS_READ_ONLY, mount.subject);
    let since: Vec<f64> = since
        .filter(|(at, _)| *at > stopped)
        .map(|(_, value)| value)
        .collect();
    match since.contains(&1.0) {
        // XFS never shows it.
        _ if since.is_empty() || mount.says.fs_type == "xfs" => Shown::Nothing,
        true => Shown::Repaired,
        false => Shown::Writable,
    }
}

fn stopped(case: &Case<'_>, device: &Subject, lines: &[Line<'_>]) -> Option<Finding> {
    let is_of_device =
        |event: &Event<'_, FilesystemSeen>| event.says.device.as_deref() == Some(&*device.name);
    let mount = case.events(&fact::FS_SEEN).rev().find(is_of_device);
    let is_read_only = mount.is_some_and(|event| event.says.read_only);
    let last = lines.last()?.at();
    let began = case.window().map_or(case.now(), |window| *window.start());
    let recent = earlier(began, Duration::from_secs_f64(case.limit(&BEFORE)));
    if !is_read_only && last < recent {
        return None;
    }
    let shown = mount.map_or(Shown::Nothing, |mount| shown(case, mount, last));
    if shown == Shown::Repaired {
        return None;
    }
    let subject = mount.map_or(device, |event| event.subject);
    let confidence = match shown {
        Shown::ReadOnly => Confidence::CERTAIN,
        Shown::Writable => Confidence::POSSIBLE.at_most(kernel_log::trust(lines)),
        _ => kernel_log::trust(lines),
    };
    let name = match subject.kind {
        SubjectKind::Mount => format!("{} ({})", subject.name, device.name),
        _ => format!("on {}", device.name),
    };
    let mut evidence: Vec<Evidence> = lines
        .iter()
        .rev()
        .take(4)
        .map(|one| one.evidence())
        .collect();
    evidence.extend(shown.evidence());
    let is = match shown {
        Shown::Writable => "was made read-only",
        _ => "is read-only",
    };
    Some(Finding {
        code: CODE,
        subject: subject.clone(),
        severity: match (confidence > Confidence::WEAK, shown) {
            (true, Shown::Writable) => Severity::Warning,
            (true, _) => Severity::Serious,
            (false, _) => Severity::Note,
        },
        confidence,
        title: format!(
            "filesystem {name} {is} after an I/O error {}",
            before(case.now(), last)
        ),
        figure: "read-only after an error".into(),
        since: lines.first().map(|line| line.at()),
        evidence,
        remedies: remedies_after_error(device),
        touched: vec![subject.clone(), device.clone()],
        episodes: vec![Episode {
            from: lines.first()?.at(),
            to: case.now(),
            touched: vec![subject.clone(), device.clone()],
        }],
    })
}

fn remedies_after_error(device: &Subject) -> Vec<Remedy> {
    vec![
        Remedy::command(
            RemedyKind::Look,
            "see the error that came before",
            format!("journalctl -k -g {}", shell_word(&device.name)),
        ),
        Remedy::advice(
            RemedyKind::CleanUp,
            "check the disk (HW001), unmount the filesystem, repair it with fsck or xfs_repair, \
             and mount it again",
        ),
    ]
}

#[cfg(test)]
mod tests;
