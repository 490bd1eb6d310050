//! Makes a report of what was recorded and what was found.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_model::diagnosis::Diagnosis;
use sexton_model::finding::{Finding, FindingId, Severity};
use sexton_model::moment::Moment;
use sexton_model::node::Node;
use sexton_model::subject::SubjectKind;
use sexton_model::timeline::Timeline;
use sexton_model::wall::WallClock;

use crate::column;
use crate::error::LakeError;
use crate::gathered::{Gathered, rounded};
use crate::layout::{digest_of, hour_of, redacted_name};
use crate::report::{FindingRow, Report};

/// Findings of a report, at most.
const MAX_FINDINGS: usize = 64;
/// Facts of a report, at most.
const MAX_FACTS: usize = 400;
/// Bytes of a text, at most.
const MAX_TEXT: usize = 256;

/// A recording that a report is made of.
pub struct Recording<'a> {
    /// Which node.
    pub node: &'a Node,
    /// Its wall clock.
    pub clock: &'a WallClock,
    /// What was recorded.
    pub timeline: &'a dyn Timeline,
    /// What was found.
    pub diagnosis: &'a Diagnosis,
    /// What the node is called by, and what is left out.
    pub given: &'a Given,
}

/// What is given to a report beside what was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// The version of sexton.
    pub sexton: String,
    /// Labels that were given to the node: `zone`, `image`, or names of one's own.
    pub labels: BTreeMap<String, String>,
    /// What to leave out.
    pub redact: Redact,
}

/// What a report is made of.
pub struct Made<'a> {
    /// Which node.
    pub node: &'a Node,
    /// Its wall clock.
    pub clock: &'a WallClock,
    /// When the reported time begins, in microseconds since 1970.
    pub at_us: i64,
    /// How much of it was watched.
    pub watched: Duration,
    /// What was seen.
    pub gathered: &'a Gathered,
    /// The last verdict; none when there was none yet.
    pub diagnosis: Option<&'a Diagnosis>,
    /// Findings that were open in that time.
    pub findings: &'a [Told<'a>],
    /// What the node is called by, and what is left out.
    pub given: &'a Given,
}

/// A finding, and what is known of its life.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    /// The finding, as it was last seen.
    pub finding: &'a Finding,
    /// The worst that it was in the reported time.
    pub worst: Severity,
    /// When it opened, where an agent followed it.
    pub opened: Option<Moment>,
    /// When it was resolved, if it was.
    pub resolved: Option<Moment>,
}

/// What a report leaves out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Redact {
    /// The node's name becomes a digest of it.
    pub node: bool,
    /// Titles, and subjects that are not units, images or devices, are left out.
    pub subjects: bool,
}

/// The report of a recording, for the hour in which it ends.
pub fn report_of_recording(recording: &Recording<'_>) -> Result<Report, LakeError> {
    let span = recording.timeline.watched().ok_or(LakeError::Empty)?;
    let end_us = wall_us(recording.clock, *span.end()).ok_or(LakeError::NoClock)?;
    let mut gathered = Gathered::default();
    recording
        .timeline
        .all()
        .for_each(|record| gathered.take(record));
    let findings = recording.diagnosis.findings.iter().map(|finding| Told {
        finding,
        worst: finding.severity,
        opened: None,
        resolved: None,
    });
    let findings: Vec<Told<'_>> = findings.collect();
    Ok(report_of(&Made {
        node: recording.node,
        clock: recording.clock,
        at_us: hour_of(end_us),
        watched: span.end().since(*span.start()),
        gathered: &gathered,
        diagnosis: Some(recording.diagnosis),
        findings: &findings,
        given: recording.given,
    }))
}

/// The report.
pub fn report_of(made: &Made<'_>) -> Report {
    let redact = made.given.redact;
    let mut report = Report {
        node: match redact.node {
            true => redacted_name(&made.node.name),
            false => cut(&made.node.name),
        },
        boot: digest_of(made.node.boot_id.as_bytes(), 8),
        at_us: made.at_us,
        ..Report::default()
    };
    attributes(made, &mut report);
    report.numbers = made.gathered.facts();
    while report.numbers.len() > MAX_FACTS {
        report.numbers.pop_last();
        report.n_left_out += 1;
    }
    let seconds = rounded(made.watched.as_secs_f64());
    let numbers = &mut report.numbers;
    numbers.insert(column::WATCHED_SECONDS.to_owned(), seconds);
    verdict(made, &mut report);
    // The gravest first: they are what a full report must not lose.
    let mut findings: Vec<&Told<'_>> = made.findings.iter().collect();
    findings.sort_by_key(|told| std::cmp::Reverse(told.worst));
    let rows = findings.iter().take(MAX_FINDINGS);
    report.findings = rows.map(|told| finding_row(made, told)).collect();
    report.n_left_out += findings.len().saturating_sub(MAX_FINDINGS);
    report.units = made.gathered.units();
    report.software = made.gathered.software();
    report
}

fn wall_us(clock: &WallClock, moment: Moment) -> Option<i64> {
    i64::try_from(clock.ns(moment)? / 1000).ok()
}

fn attributes(made: &Made<'_>, report: &mut Report) {
    let described = made.gathered.description();
    let first = |names: &[&str]| {
        let found = names.iter().find_map(|name| described.get(*name));
        found.map(|text| cut(text))
    };
    let kernel = (!made.node.kernel.is_empty()).then(|| cut(&made.node.kernel));
    let known = [
        (column::KERNEL, kernel),
        (
            column::OS,
            first(&["distribution_pretty_name", "distribution_id"]),
        ),
        (
            column::IMAGE,
            first(&[
                "image_ami_id",
                "image_image_id",
                "distribution_image_id",
                "image_eks_release",
            ]),
        ),
        (
            column::IMAGE_BUILD,
            first(&[
                "image_cloud_build_info",
                "distribution_image_version",
                "distribution_build_id",
            ]),
        ),
        (column::INSTANCE_TYPE, first(&["machine_product"])),
        (
            column::NIC_DRIVER,
            made.gathered.nic_driver().map(|text| cut(&text)),
        ),
        (column::CGROUP_LAYOUT, first(&["cgroup_layout"])),
        (column::PROFILE, made.gathered.profile().map(cut)),
        (column::SEXTON, Some(cut(&made.given.sexton))),
    ];
    for (name, value) in known {
        if let Some(value) = value {
            report.texts.insert(name.to_owned(), value);
        }
    }
    for (name, value) in &made.given.labels {
        let name: String = name.chars().map(plain).take(60).collect();
        let is_attribute = column::ATTRIBUTES.contains(&&*name);
        let name = match is_attribute {
            true => name,
            false => format!("{}{name}", column::LABEL_PREFIX),
        };
        report.texts.insert(name, cut(value));
    }
}

/// As part of the name of a column.
fn plain(c: char) -> char {
    match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() => c,
        _ => '_',
    }
}

fn verdict(made: &Made<'_>, report: &mut Report) {
    let worst = made.findings.iter().map(|told| told.worst).max();
    if let Some(worst) = worst {
        let name = worst.name().to_owned();
        report.texts.insert(column::SEVERITY.to_owned(), name);
    }
    // Before the first verdict nothing is known: that is not the same as no finding.
    if made.diagnosis.is_some() || worst.is_some() {
        let rank = worst.map_or(0.0, rank);
        report
            .numbers
            .insert(column::SEVERITY_RANK.to_owned(), rank);
    }
    let Some(diagnosis) = made.diagnosis else {
        return;
    };
    let state = diagnosis.state.name().to_owned();
    report.texts.insert(column::STATE.to_owned(), state);
    if let Some(root) = diagnosis.root() {
        let root = match diagnosis.finding(root) {
            Some(finding) => id_of(finding, made.given.redact),
            None => cut(root.as_str()),
        };
        report.texts.insert(column::ROOT.to_owned(), root);
    }
}

fn rank(severity: Severity) -> f64 {
    match severity {
        Severity::Note => 1.0,
        Severity::Warning => 2.0,
        Severity::Serious => 3.0,
        Severity::Critical => 4.0,
    }
}

/// Whether a subject may name a user's things.
fn is_hidden(finding: &Finding, redact: Redact) -> bool {
    let is_public = matches!(
        finding.subject.kind,
        SubjectKind::Node | SubjectKind::Unit | SubjectKind::Image | SubjectKind::Device
    );
    redact.subjects && !is_public
}

fn subject_of(finding: &Finding, redact: Redact) -> String {
    match is_hidden(finding, redact) {
        true => format!("#{}", digest_of(finding.subject.name.as_bytes(), 4)),
        false => cut(&finding.subject.name),
    }
}

fn id_of(finding: &Finding, redact: Redact) -> String {
    match is_hidden(finding, redact) {
        true => format!("{}:{}", finding.code, subject_of(finding, redact)),
        false => cut(finding.id().as_str()),
    }
}

fn finding_row(made: &Made<'_>, told: &Told<'_>) -> FindingRow {
    let (finding, redact) = (told.finding, made.given.redact);
    let life = match told.resolved {
        Some(_) => "resolved",
        None => "open",
    };
    let mut texts = BTreeMap::from([
        (column::FINDING, id_of(finding, redact)),
        (column::CODE, finding.code.to_owned()),
        (column::SUBJECT_KIND, finding.subject.kind.name().to_owned()),
        (column::SUBJECT, subject_of(finding, redact)),
        (column::SEVERITY, told.worst.name().to_owned()),
        (column::LIFE, life.to_owned()),
    ]);
    if !redact.subjects {
        texts.insert(column::TITLE, cut(&finding.title));
    }
    if let Some(cause) = cause_of(made, &finding.id()) {
        texts.insert(column::CAUSED_BY, cause);
    }
    let time = |moment: Option<Moment>| wall_us(made.clock, moment?);
    FindingRow {
        texts,
        numbers: BTreeMap::from([
            (column::SEVERITY_RANK, rank(told.worst)),
            (column::CONFIDENCE, finding.confidence.ratio()),
        ]),
        since_us: time(finding.since),
        opened_us: time(told.opened),
        resolved_us: time(told.resolved),
    }
}

fn cause_of(made: &Made<'_>, id: &FindingId) -> Option<String> {
    let diagnosis = made.diagnosis?;
    let cause = &diagnosis.causes_of(id).next()?.cause;
    Some(id_of(diagnosis.finding(cause)?, made.given.redact))
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_fact_is_called_like_another_column() {
        let others = [
            column::ATTRIBUTES,
            column::OTHER_TEXT,
            column::OTHER_NUMBERS,
            column::TIMES,
        ]
        .concat();
        for fact in sexton_model::fact::all() {
            assert!(!others.contains(&fact.name), "{}", fact.name);
            assert!(
                !fact.name.starts_with(column::LABEL_PREFIX),
                "{}",
                fact.name
            );
        }
    }
}
