//! The form that records have on disk: a series (who says what of whom) and, for each
//! moment, what is said. It keeps facts that this sexton does not know, so that sealing
//! loses nothing of them.

use std::borrow::Cow;
use std::sync::Arc;

use sexton_model::fact::{self, Fact};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::payload::Fields;
use sexton_model::record::{Body, Record};
use sexton_model::subject::{Subject, SubjectKind};

/// The sort of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Sample,
    Event,
    Gap,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Sample, Kind::Event, Kind::Gap];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Sample => "sample",
            Kind::Event => "event",
            Kind::Gap => "gap",
        }
    }

    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Who says what of whom. Its order is the order of rows of one moment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Series {
    pub(crate) kind: Kind,
    /// Empty for gaps.
    pub(crate) fact: Cow<'static, str>,
    pub(crate) subject_kind: Cow<'static, str>,
    pub(crate) subject: Arc<str>,
    pub(crate) sensor: Cow<'static, str>,
    /// Empty for events and gaps.
    pub(crate) unit: Cow<'static, str>,
}

impl Series {
    pub(crate) fn of(record: &Record) -> Self {
        let (kind, fact) = match &record.body {
            Body::Sample { fact, .. } => (Kind::Sample, Some(*fact)),
            Body::Event { fact, .. } => (Kind::Event, Some(*fact)),
            Body::Gap(_) => (Kind::Gap, None),
        };
        Self {
            kind,
            fact: fact.map_or("", |fact| fact.name).into(),
            subject_kind: record.subject.kind.name().into(),
            subject: Arc::clone(&record.subject.name),
            sensor: record.sensor.clone(),
            unit: fact.map_or("", |fact| fact.measure.name()).into(),
        }
    }
}

/// A series, and what this sexton knows of it.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) series: Series,
    fact: Option<&'static Fact>,
    subject: Option<Subject>,
}

impl Known {
    pub(crate) fn new(series: Series) -> Self {
        let kind = SubjectKind::by_name(&series.subject_kind);
        let subject = kind.map(|kind| Subject::new(kind, Arc::clone(&series.subject)));
        Self {
            fact: fact::by_name(&series.fact),
            subject,
            series,
        }
    }

    pub(crate) fn fact(&self) -> Option<&'static Fact> {
        self.fact
    }
}

/// What is said at a moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    Value(f64),
    Fields(Fields),
    Gap(Box<Gap>),
}

/// One record on its way from or to the disk.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) at_ns: u64,
    pub(crate) known: Arc<Known>,
    pub(crate) said: Said,
}

impl Row {
    /// The record, unless it is about something that this sexton has no name for.
    pub(crate) fn into_record(self) -> Option<Record> {
        let known = &self.known;
        let body = match self.said {
            Said::Value(value) => Body::Sample {
                fact: known.fact?,
                value,
            },
            Said::Fields(fields) => Body::read_event(known.fact?, &fields).ok()?,
            Said::Gap(gap) => Body::Gap(gap),
        };
        Some(Record {
            at: Moment::from_ns(self.at_ns),
            sensor: known.series.sensor.clone(),
            subject: known.subject.clone()?,
            body,
        })
    }
}

/// By time; at one moment by series; else as they came.
pub(crate) fn sort_by_time(rows: &mut [Row]) {
    sort_by_series(rows);
    rows.sort_by_key(|row| row.at_ns);
}

/// By series, then by time: names become runs, and alike values lie together.
pub(crate) fn sort_by_series(rows: &mut [Row]) {
    rows.sort_by(|a, b| {
        let series = || a.known.series.cmp(&b.known.series);
        let series = if Arc::ptr_eq(&a.known, &b.known) {
            std::cmp::Ordering::Equal
        } else {
            series()
        };
        series.then(a.at_ns.cmp(&b.at_ns))
    });
}

/// The inverse of the `Display` of `Why`. A reason that only a newer sexton knows is a
/// gap all the same: its text says the rest.
pub(crate) fn parse_why(text: &str) -> Why {
    let lost = text.strip_prefix("lost ").and_then(|n| n.parse().ok());
    let plain = [
        Why::Denied,
        Why::Vanished,
        Why::Unsupported,
        Why::Malformed,
        Why::Lost(0),
        Why::Overrun,
        Why::Bug,
    ];
    lost.map(Why::Lost)
        .or_else(|| plain.into_iter().find(|why| why.to_string() == text))
        .unwrap_or(Why::Malformed)
}
