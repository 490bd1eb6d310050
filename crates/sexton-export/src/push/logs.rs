//! Turns of findings, for receivers of logs.

use sexton_model::fact::finding::{FINDING_TURN, TurnKind};
use sexton_model::record::Record;

/// A turn in the life of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Nanoseconds since 1970.
    pub at_ns: u64,
    /// What happened: `opened`, `worsened`, `resolved`, `reopened`.
    pub turn: &'static str,
    /// The code of the rule.
    pub code: String,
    /// What it is about.
    pub subject: String,
    /// `note`, `warning`, `serious`, `critical`.
    pub severity: String,
    /// What is wrong, in one line.
    pub title: String,
    /// The verdict at that moment.
    pub headline: String,
}

impl LogLine {
    /// Of a record of the findings log.
    pub(super) fn of(record: &Record, at_ns: u64) -> Option<Self> {
        let says = record.says(&FINDING_TURN)?;
        let turn = match says.turn? {
            TurnKind::Opened => "opened",
            TurnKind::Worsened => "worsened",
            TurnKind::Resolved => "resolved",
            TurnKind::Reopened => "reopened",
        };
        Some(Self {
            at_ns,
            turn,
            code: says.code.clone(),
            subject: record.subject.to_string(),
            severity: says.severity.clone(),
            title: says.title.clone(),
            headline: says.headline.clone(),
        })
    }

    /// The number of OpenTelemetry. What is over is no trouble, however bad it was.
    pub(super) fn severity_number(&self) -> i32 {
        match (self.turn, self.severity.as_str()) {
            ("resolved", _) | (_, "note") => 9,
            (_, "warning") => 13,
            (_, "serious") => 17,
            (_, "critical") => 21,
            _ => 0,
        }
    }
}
