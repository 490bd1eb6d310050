//! JOB001: a workload failed after a NIC reset
//!
//! Means: processes of containers, pods or Ray ended badly within seconds after a network
//! device was reset or got stuck. Their connections went with it.
//! Not this: what failed just as often before; what was killed for want of memory; what
//! failed before the device did; what failed after a line that a program wrote to the log, which
//! is a note.
//! By hand: `kubectl get events`, `ray status`, exit codes of containers, against the times
//! of the lines in `dmesg -T`.
//! Next: the cause of NIC001. The workload itself is not at fault.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sexton_model::fact::Measure;
use sexton_model::fact::container::{CONTAINER_EXITED, ContainerExited, OutOfMemory};
use sexton_model::fact::exit::{PROCESS_FAILED, ProcessExit};
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::moment::Moment;
use sexton_model::record::Event;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::nic_troubles::Trouble;
use crate::evidence::span::{self, earlier};
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures::{plural, time};

const CODE: &str = "JOB001";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::WorkLost,
    title: "a workload failed after a NIC reset",
    sees: "lost work",
    needs: &[],
    uses: &["exits", "containers", "klog", "nics"],
    is_essential: false,
    least: None,
    cause: Cause::Never,
    offer: Offer::NOTHING,
    thresholds: &[&WITHIN],
    source: include_str!("job001_lost_work.rs"),
    judge,
};

static WITHIN: Threshold = Threshold {
    rule: CODE,
    name: "within",
    default: 30.0,
    range: (1.0, 600.0),
    unit: Measure::Seconds,
    why: "what ends badly so soon after a device was reset counts; Ray calls a node dead after 5 \
          health checks that fail, 3 s apart (ray_config_def.h), and workers end after that",
};

/// Workloads that get a finding of their own; the rest is counted on the last of them.
const MAX_FINDINGS: usize = 16;

/// A process or a container that ended badly.
struct Failure<'a> {
    at: Moment,
    /// What failed: a container, or a task of Ray.
    subject: Subject,
    /// What it is an instance of, to know whether that failed before.
    sort: &'a str,
    name: &'a str,
    how: String,
    unit: Option<&'a str>,
}

fn judge(case: &Case<'_>, out: &mut Findings) {
    if !case.heard("exits") && !case.heard("containers") {
        return out.not_judged(CODE, case.why_silent("exits"));
    }
    let troubles = case.nic_troubles();
    if troubles.is_empty() && !case.heard("klog") {
        return out.not_judged(CODE, case.why_silent("klog"));
    }
    let mut resets: Vec<Reset<'_>> = troubles
        .iter()
        .flat_map(|(device, trouble)| resets(device, trouble))
        .collect();
    resets.sort_unstable();
    let within = Duration::from_secs_f64(case.limit(&WITHIN));
    let failures = failures(case);
    let mut lost: BTreeMap<Subject, Vec<Loss<'_>>> = BTreeMap::new();
    for failure in &failures {
        let after =
            |reset: &&Reset<'_>| reset.at <= failure.at && failure.at.since(reset.at) <= within;
        let last = resets.iter().filter(after);
        let Some(reset) = last.max_by_key(|reset| (reset.is_sure, reset.at)) else {
            continue;
        };
        if failed_before(&failures, failure, reset.at, within) == 0 {
            lost.entry(failure.subject.clone())
                .or_default()
                .push((failure, *reset));
        }
    }
    let n_more = lost.len().saturating_sub(MAX_FINDINGS);
    for (subject, deaths) in lost.iter().take(MAX_FINDINGS) {
        out.found(finding(subject, deaths, n_more));
    }
}

/// A moment at which a device was reset or got stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Reset<'a> {
    at: Moment,
    device: &'a Subject,
    /// By a counter or the kernel; who may write to the log can make up one.
    is_sure: bool,
}

/// A failure, and the reset before it.
type Loss<'a> = (&'a Failure<'a>, Reset<'a>);

fn resets<'a>(device: &'a Subject, trouble: &'a Trouble<'_>) -> impl Iterator<Item = Reset<'a>> {
    let reset = move |at, is_sure| Reset {
        at,
        device,
        is_sure,
    };
    let lines = trouble.lines.iter();
    let lines = lines.map(move |line| reset(line.at(), line.is_of_kernel()));
    let growths = trouble.growths.iter();
    lines.chain(growths.map(move |growth| reset(growth.to, true)))
}

/// How often the same sort of thing failed in as long a time before.
fn failed_before(
    failures: &[Failure<'_>],
    one: &Failure<'_>,
    reset: Moment,
    within: Duration,
) -> usize {
    let from = earlier(reset, within);
    let before = failures
        .iter()
        .filter(|failure| failure.sort == one.sort && from <= failure.at && failure.at < reset);
    before.count()
}

/// What ended badly of containers, pods and Ray, not for want of memory.
fn failures<'a>(case: &Case<'a>) -> Vec<Failure<'a>> {
    let processes = case.events(&PROCESS_FAILED).filter_map(process);
    let containers = case.events(&CONTAINER_EXITED).filter_map(container);
    let mut all: Vec<Failure<'a>> = processes.chain(containers).collect();
    all.sort_by(|a, b| (a.at, &a.subject, &a.how).cmp(&(b.at, &b.subject, &b.how)));
    all
}

fn process<'a>(event: Event<'a, ProcessExit>) -> Option<Failure<'a>> {
    let says = event.says;
    let is_ray = says.role.as_deref() == Some("ray");
    let container = says.container.as_deref();
    if (!is_ray && container.is_none()) || says.oom == Some(true) {
        return None;
    }
    let comm = says.comm.as_deref().unwrap_or("a process");
    let how = match (says.signal, says.exit_code) {
        (Some(signal), _) => format!("signal {signal}"),
        (_, Some(code)) => format!("exit code {code}"),
        _ => "badly".into(),
    };
    Some(Failure {
        at: event.at,
        subject: match container {
            Some(id) => Subject::new(SubjectKind::Container, id),
            None => Subject::new(SubjectKind::Task, comm),
        },
        sort: comm,
        name: comm,
        how,
        unit: says.unit.as_deref(),
    })
}

fn container<'a>(event: Event<'a, ContainerExited>) -> Option<Failure<'a>> {
    let says = event.says;
    let code = says.exit_code.filter(|code| *code != 0)?;
    if says.oom == Some(OutOfMemory::Yes) {
        return None;
    }
    let name = says.name.as_deref().unwrap_or(&event.subject.name);
    Some(Failure {
        at: event.at,
        subject: event.subject.clone(),
        sort: says.image.as_deref().unwrap_or(name),
        name,
        how: format!("exit code {code}"),
        unit: None,
    })
}

fn finding(subject: &Subject, deaths: &[Loss<'_>], n_more: usize) -> Finding {
    let names: BTreeSet<&str> = deaths.iter().map(|(failure, ..)| failure.name).collect();
    let names = names.into_iter().take(3).collect::<Vec<_>>().join(", ");
    let first = &deaths[0];
    let device = match first.1.device.kind {
        SubjectKind::Node => "a NIC".to_owned(),
        _ => first.1.device.name.to_string(),
    };
    let delay = first.0.at.since(first.1.at);
    let is_sure = deaths.iter().any(|(_, reset)| reset.is_sure);
    let mut touched = vec![subject.clone()];
    for (failure, reset) in deaths {
        let unit = failure
            .unit
            .map(|unit| Subject::new(SubjectKind::Unit, unit));
        for one in unit.into_iter().chain([reset.device.clone()]) {
            if !touched.contains(&one) {
                touched.push(one);
            }
        }
    }
    Finding {
        code: CODE,
        subject: subject.clone(),
        severity: match is_sure {
            true => Severity::Critical,
            false => Severity::Note,
        },
        confidence: match is_sure {
            true => Confidence::LIKELY,
            false => Confidence::WEAK,
        },
        title: format!(
            "{names} failed {} after {device} reset or timed out",
            time(delay)
        ),
        figure: format!(
            "{} within {}",
            plural(deaths.len() as u64, "failure"),
            time(delay)
        ),
        since: Some(first.0.at),
        evidence: evidence(deaths, n_more),
        remedies: vec![Remedy::advice(
            RemedyKind::Prevent,
            "Remove the cause of the reset; a retry alone fails again",
        )],
        episodes: span::longest(
            deaths
                .iter()
                .map(|(failure, reset)| Episode {
                    from: failure.at,
                    to: failure.at,
                    touched: vec![subject.clone(), reset.device.clone()],
                })
                .collect(),
        ),
        touched,
    }
}

fn evidence(deaths: &[Loss<'_>], n_more: usize) -> Vec<Evidence> {
    let mut evidence: Vec<Evidence> = deaths
        .iter()
        .take(4)
        .map(|(failure, reset)| {
            let text = format!(
                "{} ended with {}, {} after the device did",
                failure.name,
                failure.how,
                time(failure.at.since(reset.at))
            );
            Evidence::speaks_for("exits, containers", text).at(failure.at)
        })
        .collect();
    let text = "nothing of that name failed in as long a time before";
    evidence.push(Evidence::speaks_for("exits, containers", text));
    if n_more > 0 {
        let text = format!("{} died so", plural(n_more as u64, "more workload"));
        evidence.push(Evidence::speaks_for("exits, containers", text));
    }
    if !deaths.iter().any(|(_, reset)| reset.is_sure) {
        let text = "only a program wrote to the kernel log that the device was reset";
        evidence.push(Evidence::against("klog: written by a program", text));
    }
    let text = "what the workload itself logged was not read";
    evidence.push(Evidence::missing("exits", text));
    evidence
}

#[cfg(test)]
mod tests;
