//! The findings log: turns in the lives of findings, kept as records in a bundle of their own
//! beside the ring. What was open when an agent ended is open when the next one starts.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use sexton_analysis::live::{Change, Life, Turn};
use sexton_analysis::rules;
use sexton_model::diagnosis::Diagnosis;
use sexton_model::fact::finding::{
    EvidenceNote, FINDING_TURN, FindingTurn, REMEDY_ACT, RemedyAct, TurnKind,
};
use sexton_model::fact::sexton::SEXTON_WALL_CLOCK_NS;
use sexton_model::finding::{Confidence, Evidence, Finding, Severity, Stance};
use sexton_model::moment::Moment;
use sexton_model::record::{Event, Record, Sink};
use sexton_model::subject::Subject;
use sexton_model::timeline::{Records, Timeline as _};
use sexton_store::{Bundle, BundleWriter, Limits, Node, StoreError};

use crate::status::ActStatus;

/// Who writes these records.
const SENSOR: &str = "judge";

/// The log is a small part of the ring.
const MAX_BYTES: u64 = 16 << 20;
const SEGMENT_AGE: Duration = Duration::from_secs(600);

/// The most evidence of a turn that is kept.
const MAX_EVIDENCE: usize = 16;

/// The log, as it is written.
#[derive(Debug)]
pub struct FindingsLog {
    writer: BundleWriter,
}

impl FindingsLog {
    /// Begins one, or goes on with the one of this boot.
    pub fn open(
        folder: &Path,
        max_age: Duration,
        node: Node,
        now: Moment,
    ) -> Result<Self, StoreError> {
        let limits = Limits {
            max_bytes: MAX_BYTES,
            max_age,
            segment_bytes: MAX_BYTES / 16,
            segment_age: SEGMENT_AGE.min(max_age / 4),
        };
        let writer = BundleWriter::create(folder, limits, node, now)?;
        Ok(Self { writer })
    }

    /// Keeps what changed, and makes it safe.
    pub fn add(
        &mut self,
        changes: &[Change],
        diagnosis: &Diagnosis,
        now: Moment,
        wall_ns: u64,
    ) -> Result<(), StoreError> {
        if changes.is_empty() {
            return self.writer.seal_if_due(now).map(|_| ());
        }
        let mut out = Sink::new(SENSOR, now);
        // So that each turn has its time of day.
        out.sample(&Subject::node(), &SEXTON_WALL_CLOCK_NS, wall_ns as f64);
        for change in changes {
            let subject = &change.life.finding.subject;
            out.event(change.at, subject, &FINDING_TURN, turn(change, diagnosis));
        }
        self.writer.append(&out.into_records())?;
        self.writer.sync(now)?;
        self.writer.seal_if_due(now).map(|_| ())
    }

    /// Keeps what was done without a person, and makes it safe.
    pub fn add_act(
        &mut self,
        subject: &Subject,
        act: &ActStatus,
        now: Moment,
    ) -> Result<(), StoreError> {
        let mut out = Sink::new(SENSOR, now);
        out.sample(&Subject::node(), &SEXTON_WALL_CLOCK_NS, act.wall_ns as f64);
        let says = RemedyAct {
            code: act.code.clone(),
            outcome: act.outcome.clone(),
            acts: act.acts.clone(),
            text: act.text.clone(),
            undo_file: act.undo_file.as_ref().map(|it| it.display().to_string()),
        };
        out.event(now, subject, &REMEDY_ACT, says);
        self.writer.append(&out.into_records())?;
        self.writer.sync(now).map(|_| ())
    }

    /// Seals it.
    pub fn finish(self, now: Moment) -> Result<(), StoreError> {
        self.writer.finish(now).map(|_| ())
    }
}

fn turn(change: &Change, diagnosis: &Diagnosis) -> FindingTurn {
    let life = &change.life;
    let finding = &life.finding;
    let evidence = finding.evidence.iter().take(MAX_EVIDENCE);
    FindingTurn {
        turn: Some(match change.turn {
            Turn::Opened => TurnKind::Opened,
            Turn::Worsened => TurnKind::Worsened,
            Turn::Resolved => TurnKind::Resolved,
            Turn::Reopened => TurnKind::Reopened,
        }),
        code: finding.code.to_owned(),
        severity: finding.severity.name().to_owned(),
        worst: life.worst.name().to_owned(),
        confidence: Some((finding.confidence.ratio() * 100.0).round() as u64),
        title: finding.title.clone(),
        figure: finding.figure.clone(),
        since_ns: finding.since.map(Moment::as_ns),
        opened_ns: Some(life.opened.as_ns()),
        worst_ns: Some(life.worst_at.as_ns()),
        last_seen_ns: Some(life.last_seen.as_ns()),
        state: diagnosis.state.name().to_owned(),
        headline: diagnosis.headline.clone(),
        evidence: evidence
            .map(|evidence| EvidenceNote {
                stance: evidence.stance.name().to_owned(),
                text: evidence.text.clone(),
                source: evidence.source.clone(),
            })
            .collect(),
    }
}

/// A life as the log tells it.
#[derive(Debug, Clone)]
pub struct Lived {
    /// The life.
    pub life: Life,
    /// The verdict at its last turn, in one sentence.
    pub headline: String,
}

/// The lives that a log tells, by the order in which they opened. A log of a newer version may
/// speak of rules that are not known here: those are left out.
pub fn lives_of(folder: &Path) -> Result<(Vec<Lived>, Records), StoreError> {
    let bundle = Bundle::open(folder)?;
    let records = bundle.load(None, Some(&[&FINDING_TURN.fact, &SEXTON_WALL_CLOCK_NS]));
    let mut lives: BTreeMap<(u64, String), Lived> = BTreeMap::new();
    for record in records.of(&FINDING_TURN) {
        if let Some(lived) =
            Event::of(record, &FINDING_TURN).and_then(|event| lived(record, &event))
        {
            let key = (
                lived.life.opened.as_ns(),
                lived.life.finding.id().to_string(),
            );
            lives.insert(key, lived);
        }
    }
    Ok((lives.into_values().collect(), records))
}

fn lived(record: &Record, event: &Event<'_, FindingTurn>) -> Option<Lived> {
    let says = event.says;
    let is_over = says.turn? == TurnKind::Resolved;
    let moment = |ns: Option<u64>| ns.map_or(record.at, Moment::from_ns);
    let finding = Finding {
        code: rules::by_code(&says.code)?.code,
        subject: record.subject.clone(),
        severity: severity(&says.severity)?,
        confidence: Confidence::percent(u8::try_from(says.confidence?).ok()?),
        title: says.title.clone(),
        figure: says.figure.clone(),
        since: says.since_ns.map(Moment::from_ns),
        evidence: says.evidence.iter().map(evidence).collect(),
        remedies: Vec::new(),
        touched: Vec::new(),
        episodes: Vec::new(),
    };
    Some(Lived {
        life: Life {
            finding,
            opened: moment(says.opened_ns),
            worst: severity(&says.worst)?,
            worst_at: moment(says.worst_ns),
            last_seen: moment(says.last_seen_ns),
            resolved: is_over.then_some(record.at),
        },
        headline: says.headline.clone(),
    })
}

fn severity(name: &str) -> Option<Severity> {
    let all = [
        Severity::Note,
        Severity::Warning,
        Severity::Serious,
        Severity::Critical,
    ];
    all.into_iter().find(|severity| severity.name() == name)
}

fn evidence(note: &EvidenceNote) -> Evidence {
    let (source, text) = (note.source.as_str(), note.text.as_str());
    match note.stance.as_str() {
        name if name == Stance::Against.name() => Evidence::against(source, text),
        name if name == Stance::Missing.name() => Evidence::missing(source, text),
        _ => Evidence::speaks_for(source, text),
    }
}
