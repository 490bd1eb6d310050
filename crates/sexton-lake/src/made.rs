//! Makes a report of what was recorded and what was found.

use std::collections::{BTreeMap, HashMap};

use sexton_model::diagnosis::Diagnosis;
use sexton_model::fact::nic::NIC_IDENTITY;
use sexton_model::fact::unit::{
    UNIT_CHANGED, UNIT_CONTEXT, UNIT_FAILED, UNIT_FILE, UNIT_SEEN, UNIT_SHAPE, UNIT_STARTED,
    UNIT_STOPPED,
};
use sexton_model::fact::{Fact, FactKind};
use sexton_model::finding::{Finding, Severity};
use sexton_model::moment::Moment;
use sexton_model::node::Node;
use sexton_model::record::Body;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::timeline::Timeline;
use sexton_model::wall::WallClock;

use crate::column;
use crate::error::LakeError;
use crate::layout::digest_of;
use crate::report::{FindingRow, Report};
use crate::set::{Kind, Set};

/// Findings of a report, at most.
const MAX_FINDINGS: usize = 64;
/// Facts of a report, at most.
const MAX_FACTS: usize = 400;
/// Bytes of a text, at most.
const MAX_TEXT: usize = 256;

/// What a report is made of.
pub struct Made<'a> {
    /// Which node.
    pub node: &'a Node,
    /// Its wall clock.
    pub clock: &'a WallClock,
    /// What was recorded.
    pub timeline: &'a dyn Timeline,
    /// What was found.
    pub diagnosis: &'a Diagnosis,
    /// The version of sexton.
    pub sexton: &'a str,
    /// Labels that were given to the node: `zone`, `image`, or names of one's own.
    pub labels: &'a BTreeMap<String, String>,
    /// What to leave out.
    pub redact: Redact,
}

/// What a report leaves out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Redact {
    /// The node's name becomes a digest of it.
    pub node: bool,
    /// Titles, and subjects that are not units, images or devices, are left out.
    pub subjects: bool,
}

/// The report.
pub fn report_of(made: &Made<'_>) -> Result<Report, LakeError> {
    let span = made.timeline.watched().ok_or(LakeError::Empty)?;
    let end_us = wall_us(made.clock, *span.end()).ok_or(LakeError::NoClock)?;
    let mut report = Report {
        node: match made.redact.node {
            true => format!("node-{}", digest_of(made.node.name.as_bytes(), 6)),
            false => cut(&made.node.name),
        },
        boot: digest_of(made.node.boot_id.as_bytes(), 8),
        at_us: crate::layout::hour_of(end_us),
        ..Report::default()
    };
    attributes(made, &mut report);
    verdict(made.diagnosis, &mut report);
    let watched = span.end().since(*span.start());
    let seconds = watched.as_secs_f64();
    report.numbers = facts(made.timeline);
    while report.numbers.len() > MAX_FACTS {
        report.numbers.pop_last();
        report.n_left_out += 1;
    }
    report
        .numbers
        .insert(column::WATCHED_SECONDS.to_owned(), rounded(seconds));
    report.numbers.insert(
        column::SEVERITY_RANK.to_owned(),
        worst(made.diagnosis).map_or(0.0, rank),
    );
    let findings = made.diagnosis.findings.iter();
    report.findings = findings
        .take(MAX_FINDINGS)
        .map(|finding| finding_row(made, finding))
        .collect();
    report.n_left_out += made.diagnosis.findings.len().saturating_sub(MAX_FINDINGS);
    report.units = units(made.timeline);
    report.software = software(made.timeline);
    Ok(report)
}

fn wall_us(clock: &WallClock, moment: Moment) -> Option<i64> {
    i64::try_from(clock.ns(moment)? / 1000).ok()
}

fn attributes(made: &Made<'_>, report: &mut Report) {
    let described = &made.node.description;
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
        (column::NIC_DRIVER, nic_driver(made.timeline)),
        (column::CGROUP_LAYOUT, first(&["cgroup_layout"])),
        (column::PROFILE, profile(made.timeline)),
        (column::SEXTON, Some(cut(made.sexton))),
    ];
    for (name, value) in known {
        if let Some(value) = value {
            report.texts.insert(name.to_owned(), value);
        }
    }
    for (name, value) in made.labels {
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

/// The drivers of the network devices, each once.
fn nic_driver(timeline: &dyn Timeline) -> Option<String> {
    let said = timeline.of(&NIC_IDENTITY);
    let drivers = said.filter_map(|record| record.says(&NIC_IDENTITY)?.driver.clone());
    let mut drivers: Vec<String> = drivers
        .filter(|driver| !matches!(&**driver, "bridge" | "veth" | "tun" | "dummy"))
        .collect();
    drivers.sort();
    drivers.dedup();
    (!drivers.is_empty()).then(|| cut(&drivers.join("+")))
}

fn profile(timeline: &dyn Timeline) -> Option<String> {
    let last = timeline.of(&UNIT_SHAPE).last()?;
    last.says(&UNIT_SHAPE)?.shape.clone()
}

fn verdict(diagnosis: &Diagnosis, report: &mut Report) {
    let state = diagnosis.state.name().to_owned();
    report.texts.insert(column::STATE.to_owned(), state);
    if let Some(root) = diagnosis.root() {
        let root = cut(root.as_str());
        report.texts.insert(column::ROOT.to_owned(), root);
    }
    if let Some(worst) = worst(diagnosis) {
        let worst = worst.name().to_owned();
        report.texts.insert(column::SEVERITY.to_owned(), worst);
    }
}

fn worst(diagnosis: &Diagnosis) -> Option<Severity> {
    let findings = diagnosis.findings.iter();
    findings.map(|finding| finding.severity).max()
}

fn rank(severity: Severity) -> f64 {
    match severity {
        Severity::Note => 1.0,
        Severity::Warning => 2.0,
        Severity::Serious => 3.0,
        Severity::Critical => 4.0,
    }
}

fn finding_row(made: &Made<'_>, finding: &Finding) -> FindingRow {
    let is_public = matches!(
        finding.subject.kind,
        SubjectKind::Node | SubjectKind::Unit | SubjectKind::Image | SubjectKind::Device
    );
    let hidden = made.redact.subjects && !is_public;
    let subject = match hidden {
        true => format!("#{}", digest_of(finding.subject.name.as_bytes(), 4)),
        false => cut(&finding.subject.name),
    };
    let id = match hidden {
        true => format!("{}:{subject}", finding.code),
        false => cut(finding.id().as_str()),
    };
    let own_id = finding.id();
    let caused_by = made.diagnosis.causes_of(&own_id).next();
    let mut texts = BTreeMap::from([
        (column::FINDING, id),
        (column::CODE, finding.code.to_owned()),
        (column::SUBJECT_KIND, finding.subject.kind.name().to_owned()),
        (column::SUBJECT, subject),
        (column::SEVERITY, finding.severity.name().to_owned()),
        (column::LIFE, "open".to_owned()),
    ]);
    if !made.redact.subjects {
        texts.insert(column::TITLE, cut(&finding.title));
        if let Some(link) = caused_by {
            texts.insert(column::CAUSED_BY, cut(link.cause.as_str()));
        }
    }
    FindingRow {
        texts,
        numbers: BTreeMap::from([
            (column::SEVERITY_RANK, rank(finding.severity)),
            (column::CONFIDENCE, finding.confidence.ratio()),
        ]),
        since_us: finding.since.and_then(|since| wall_us(made.clock, since)),
    }
}

/// One number for each fact that was seen: the mean of a gauge, and its largest value as
/// `_max`; how much counters grew; how many events there were.
fn facts(timeline: &dyn Timeline) -> BTreeMap<String, f64> {
    let mut facts: BTreeMap<&'static str, Summary<'_>> = BTreeMap::new();
    for record in timeline.all() {
        let (fact, value) = match &record.body {
            Body::Sample { fact, value } => (*fact, Some(*value)),
            Body::Event { fact, .. } => (*fact, None),
            Body::Gap(_) => continue,
        };
        let summary = facts.entry(fact.name).or_insert_with(|| Summary::of(fact));
        summary.add(&record.subject, value);
    }
    let mut columns = BTreeMap::new();
    for (name, summary) in facts {
        match summary.fact.kind {
            FactKind::Gauge if summary.n > 0 => {
                let mean = summary.sum / summary.n as f64;
                columns.insert(name.to_owned(), rounded(mean));
                columns.insert(format!("{name}_max"), rounded(summary.max));
            }
            FactKind::Gauge => {}
            FactKind::Counter => {
                let grown = summary.counters.values().map(|counter| counter.grown);
                columns.insert(name.to_owned(), rounded(grown.sum()));
            }
            FactKind::Event => {
                columns.insert(name.to_owned(), summary.n as f64);
            }
        }
    }
    columns
}

struct Summary<'a> {
    fact: &'static Fact,
    n: u64,
    sum: f64,
    max: f64,
    counters: HashMap<&'a Subject, Counter>,
}

#[derive(Default)]
struct Counter {
    last: Option<f64>,
    grown: f64,
}

impl<'a> Summary<'a> {
    fn of(fact: &'static Fact) -> Self {
        Self {
            fact,
            n: 0,
            sum: 0.0,
            max: f64::NEG_INFINITY,
            counters: HashMap::new(),
        }
    }

    fn add(&mut self, subject: &'a Subject, value: Option<f64>) {
        self.n += 1;
        let Some(value) = value.filter(|value| value.is_finite()) else {
            return;
        };
        self.sum += value;
        self.max = self.max.max(value);
        if self.fact.kind == FactKind::Counter {
            let counter = self.counters.entry(subject).or_default();
            // A counter that fell was reset, and began anew at 0.
            let grown = match counter.last {
                Some(last) if value >= last => value - last,
                Some(_) => value,
                None => 0.0,
            };
            counter.grown += grown;
            counter.last = Some(value);
        }
    }
}

/// To four significant digits: what many nodes say alike is kept once.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    if digits <= 0 {
        let scale = 10f64.powi(-digits);
        return (value / scale).round() * scale;
    }
    let scale = 10f64.powi(digits.min(300));
    (value * scale).round() / scale
}

/// Units and the state that each was in last. Units that are made at run time, and are of
/// this node alone, are left out.
fn units(timeline: &dyn Timeline) -> Option<Set> {
    let mut states: BTreeMap<&str, String> = BTreeMap::new();
    for record in timeline.all() {
        let name = &*record.subject.name;
        let seen = record
            .says(&UNIT_SEEN)
            .or_else(|| record.says(&UNIT_CHANGED));
        let state = if let Some(seen) = seen {
            seen.active.clone()
        } else if record.says(&UNIT_STARTED).is_some() {
            Some("active".to_owned())
        } else if record.fact() == Some(&UNIT_FAILED.fact) {
            Some("failed".to_owned())
        } else if record.says(&UNIT_STOPPED).is_some() {
            Some("inactive".to_owned())
        } else {
            None
        };
        if let Some(state) = state
            && is_common(name)
        {
            states.insert(name, state);
        }
    }
    let mut set = Set::default();
    for (unit, state) in &states {
        set.add(Kind::Unit, unit, state);
    }
    (!set.is_empty()).then_some(set)
}

/// Whether other nodes may have a unit of that name too.
fn is_common(unit: &str) -> bool {
    let of_the_image = [".service", ".socket", ".timer", ".path", ".target"];
    let is_transient = ["run-", "user@", "user-runtime-dir@", "session-", "krun-"];
    of_the_image.iter().any(|suffix| unit.ends_with(suffix))
        && !is_transient.iter().any(|prefix| unit.starts_with(prefix))
}

/// Packages, and files of units with their states.
fn software(timeline: &dyn Timeline) -> Option<Set> {
    let mut set = Set::default();
    for record in timeline.of(&UNIT_FILE) {
        let Some(file) = record.says(&UNIT_FILE) else {
            continue;
        };
        if is_common(&record.subject.name) {
            let state = file.state.as_deref().unwrap_or_default();
            set.add(Kind::UnitFile, &record.subject.name, state);
        }
    }
    for record in timeline.of(&UNIT_CONTEXT) {
        let Some(context) = record.says(&UNIT_CONTEXT) else {
            continue;
        };
        for unit in context.units.iter().filter(|unit| is_common(&unit.name)) {
            set.add(Kind::UnitFile, &unit.name, &unit.state);
        }
        for package in &context.packages {
            set.add(Kind::Package, package, "");
        }
    }
    (!set.is_empty()).then_some(set)
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits() {
        let check = |value, expected| assert_eq!(rounded(value), expected);
        check(0.0, 0.0);
        check(68_681.0, 68_680.0);
        check(0.123_456, 0.1235);
        check(-3.0, -3.0);
        check(1e15 + 7.0, 1e15);
    }

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

    #[test]
    fn units_of_one_node_alone_are_left_out() {
        assert!(is_common("ecs.service"));
        assert!(!is_common("run-r12ab.service"));
        assert!(!is_common("docker-0123.scope"));
        assert!(!is_common("user@1000.service"));
    }
}
