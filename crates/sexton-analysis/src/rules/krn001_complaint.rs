//! KRN001: the kernel reported a lockup, stall or hung task
//!
//! Means: the kernel reported a CPU that did not schedule (soft lockup after 20 s, hard lockup
//! after 10 s), an RCU stall (after 21 s), a task in D state (after 120 s), or a work item that
//! hogged its worker. These limits are high: a stall of 5 s resets a NIC and is not reported.
//! Not this: a line that a program wrote to the log, which is marked and only possible; lines
//! older than the watch, which are notes.
//! By hand: `dmesg -T | grep -E 'lockup|stall|blocked for|hogged|NOHZ'`.
//! Next: the stack that the kernel printed below the line.

use std::collections::{BTreeMap, BTreeSet};

use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::moment::Moment;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::kernel_log::{self, Line};
use crate::evidence::span::{self, earlier};
use crate::rule::{Cause, Findings, Rule};
use crate::words::figures::{before, count, plural, times};

const CODE: &str = "KRN001";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::Kernel,
    title: "the kernel reported a lockup, stall or hung task",
    sees: "kernel complaints",
    needs: &["klog"],
    uses: &[],
    is_essential: false,
    least: None,
    cause: Cause::Never,
    offer: Offer::NOTHING,
    thresholds: &[],
    source: include_str!("krn001_complaint.rs"),
    judge,
};

/// What the kernel complains of, how bad that is, in words, and how long it had been so by
/// the kernel's defaults when the line does not say.
static COMPLAINTS: [(&str, Severity, &str, u64); 9] = [
    ("soft_lockup", Severity::Serious, "a soft lockup", 20),
    ("hard_lockup", Severity::Serious, "a hard lockup", 10),
    ("rcu_stall", Severity::Serious, "an RCU stall", 21),
    (
        "workqueue_lockup",
        Severity::Serious,
        "a workqueue lockup",
        30,
    ),
    ("resched_late", Severity::Warning, "a late reschedule", 0),
    (
        "irq_nobody_cared",
        Severity::Warning,
        "an unhandled interrupt",
        0,
    ),
    ("hung_task", Severity::Warning, "a hung task", 120),
    ("workqueue_hog", Severity::Note, "a workqueue hog", 0),
    (
        "softirq_pending",
        Severity::Note,
        "pending softirqs on an idle core",
        0,
    ),
];

/// Findings that are made; the rest is counted on the last of them.
const MAX_FINDINGS: usize = 16;

fn judge(case: &Case<'_>, out: &mut Findings) {
    let classes: Vec<&str> = COMPLAINTS.iter().map(|(class, ..)| *class).collect();
    let mut by_place: BTreeMap<Subject, Vec<Line<'_>>> = BTreeMap::new();
    for line in kernel_log::lines(case, &classes) {
        by_place.entry(place(line)).or_default().push(line);
    }
    let mut findings: Vec<Finding> = by_place
        .iter()
        .map(|(place, lines)| finding(case, place, lines))
        .collect();
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.id()));
    let n_left = findings.len().saturating_sub(MAX_FINDINGS);
    findings.truncate(MAX_FINDINGS);
    if let Some(last) = findings.last_mut().filter(|_| n_left > 0) {
        let text = format!("such lines in {} too", plural(n_left as u64, "more place"));
        last.evidence.push(Evidence::speaks_for("klog", text));
    }
    findings.into_iter().for_each(|finding| out.found(finding));
}

/// Where it happened. Tasks that hang for one reason are one finding, however many they are.
fn place(line: Line<'_>) -> Subject {
    match line.class() {
        "hung_task" => Subject::node(),
        _ => line.subject().clone(),
    }
}

fn complaint(line: Line<'_>) -> (Severity, &'static str, u64) {
    let known = COMPLAINTS.iter().find(|(class, ..)| *class == line.class());
    known.map_or(
        (Severity::Note, "something", 0),
        |(_, severity, words, seconds)| (*severity, words, *seconds),
    )
}

/// The line that decides: the gravest that the kernel wrote during the watch. Other lines decide
/// only where there is none: what was reported yesterday is not what is reported now.
fn deciding<'a>(case: &Case<'_>, lines: &[Line<'a>]) -> Option<Line<'a>> {
    let rank = |line: &Line<'_>| {
        let (is_recent, is_of_kernel) = (!is_over(case, line.at()), line.is_of_kernel());
        let is_both = is_recent && is_of_kernel;
        let severity = complaint(*line).0;
        (is_both, is_recent, is_of_kernel, severity, line.at())
    };
    lines.iter().copied().max_by_key(rank)
}

/// The lines of the same complaint, as trustworthy as that one.
fn alike<'a>(lines: &[Line<'a>], one: Option<Line<'_>>) -> Vec<Line<'a>> {
    let is_alike = |line: &&Line<'_>| {
        one.is_some_and(|one| {
            (one.class(), one.is_of_kernel()) == (line.class(), line.is_of_kernel())
        })
    };
    lines.iter().filter(is_alike).copied().collect()
}

fn finding(case: &Case<'_>, place: &Subject, lines: &[Line<'_>]) -> Finding {
    let gravest = deciding(case, lines);
    let (severity, words, _) = gravest.map_or((Severity::Note, "something", 0), complaint);
    let alike = alike(lines, gravest);
    let confidence = kernel_log::trust(&alike);
    let is_hung = gravest.is_some_and(|line| line.class() == "hung_task");
    let (title, figure) = match is_hung {
        true => {
            let hung = format!("{} hung in D state", plural(n_tasks(&alike) as u64, "task"));
            (hung.clone(), hung)
        }
        false => reported(words, place, (gravest, alike.len())),
    };
    let mut touched = vec![place.clone()];
    for line in lines {
        for subject in [line.core(), line.process(), task(*line)]
            .into_iter()
            .flatten()
        {
            if !touched.contains(&subject) {
                touched.push(subject);
            }
        }
    }
    let last = alike.iter().map(|line| line.at()).max().unwrap_or_default();
    Finding {
        code: CODE,
        subject: place.clone(),
        severity: match confidence > Confidence::WEAK {
            // It is over: history.
            true if is_over(case, last) => Severity::Note,
            true => severity,
            false => severity.min(Severity::Warning),
        },
        confidence,
        title: format!("{title}, last {}", before(case.now(), last)),
        figure,
        since: alike.iter().map(|line| line.at()).min(),
        evidence: evidence(lines, &alike),
        remedies: vec![Remedy::command(
            RemedyKind::Look,
            "Read the stacks that the kernel printed",
            "dmesg -T",
        )],
        episodes: span::longest(lines.iter().map(|line| episode(*line)).collect()),
        touched,
    }
}

/// The lines that decide, newest first, and then the others.
fn evidence(lines: &[Line<'_>], alike: &[Line<'_>]) -> Vec<Evidence> {
    let is_other = |line: &&Line<'_>| {
        alike.first().is_some_and(|one| {
            (one.class(), one.is_of_kernel()) != (line.class(), line.is_of_kernel())
        })
    };
    let others = lines.iter().rev().filter(is_other);
    let shown = alike.iter().rev().chain(others).take(4);
    let mut evidence: Vec<Evidence> = shown.map(|line| line.evidence()).collect();
    if lines.len() > 4 {
        let text = format!("{} such lines in all", count(lines.len() as u64));
        evidence.push(Evidence::speaks_for("klog", text));
    }
    evidence
}

/// Title and figure of what the kernel reported, with how often.
fn reported(
    words: &str,
    place: &Subject,
    (gravest, n): (Option<Line<'_>>, usize),
) -> (String, String) {
    let who = gravest
        .and_then(|line| line.says().comm.as_deref())
        .map_or(String::new(), |comm| format!(" ({comm})"));
    let often = match place.kind {
        SubjectKind::Node => times(n),
        _ => format!("on {place} {}", times(n)),
    };
    let title = format!("the kernel reported {words}{who} {often}");
    (title, format!("{words}, {}", times(n)))
}

/// Whether the last line is older than the watch.
fn is_over(case: &Case<'_>, last: Moment) -> bool {
    case.window().is_some_and(|window| last < *window.start())
}

/// Tasks that lines name, each once however often it is named.
fn n_tasks(lines: &[Line<'_>]) -> usize {
    let tasks: BTreeSet<_> = lines
        .iter()
        .map(|line| (line.says().pid, line.says().comm.as_deref()))
        .collect();
    tasks.len()
}

/// The task that a line names.
fn task(line: Line<'_>) -> Option<Subject> {
    Some(Subject::new(
        SubjectKind::Task,
        line.says().comm.as_deref()?,
    ))
}

fn episode(line: Line<'_>) -> Episode {
    let seconds = ["stuck_seconds", "blocked_seconds", "seconds"];
    let seconds = seconds.into_iter().find_map(|key| line.captured(key));
    let seconds = seconds.unwrap_or(complaint(line).2);
    let places = [line.core(), line.process(), task(line)];
    Episode {
        from: earlier(line.at(), std::time::Duration::from_secs(seconds)),
        to: line.at(),
        touched: places.into_iter().flatten().collect(),
    }
}

#[cfg(test)]
mod tests;
