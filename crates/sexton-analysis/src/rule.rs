//! What a rule is made of.

use sexton_model::diagnosis::{Forecast, NotJudged};
use sexton_model::fact::Measure;
use sexton_model::family::Family;
use sexton_model::finding::Finding;
use sexton_model::subject::SubjectKind;

use crate::case::Case;
use crate::rules;

/// Looks for one trouble.
#[derive(Debug)]
pub struct Rule {
    /// Its code, `MCG001`; never used again for another.
    pub code: &'static str,
    /// What it is told as outside of the node.
    pub family: Family,
    /// The trouble, in a few words.
    pub title: &'static str,
    /// The blind spot when it cannot judge, in a few words.
    pub sees: &'static str,
    /// The sensors without which it cannot judge: all of them must have been at work.
    pub needs: &'static [&'static str],
    /// Sensors that make it see more.
    pub uses: &'static [&'static str],
    /// Whether "healthy" cannot be said without it.
    pub is_essential: bool,
    /// Whether a finding of it can be a root cause.
    pub cause: Cause,
    /// What its judgement depends on, each with its reason.
    pub thresholds: &'static [&'static Threshold],
    /// The source file of the rule, whose head is its manual page.
    pub source: &'static str,
    /// Judges.
    pub judge: fn(&Case<'_>, &mut Findings),
}

/// Whether findings of a rule can be root causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// They are symptoms.
    Never,
    /// If they name who: one about the node as a whole is a symptom.
    WhenNamed,
    /// If they name a program: a device is where the trouble shows, not who makes it.
    WhenProgram,
    /// Always: what is behind them lies outside the node's own work.
    Always,
}

impl Rule {
    /// Whether this finding of it can be a root cause.
    pub(crate) fn explains(&self, finding: &Finding) -> bool {
        match self.cause {
            Cause::Never => false,
            Cause::WhenNamed => finding.subject.kind != SubjectKind::Node,
            Cause::WhenProgram => matches!(
                finding.subject.kind,
                SubjectKind::Process
                    | SubjectKind::Task
                    | SubjectKind::Unit
                    | SubjectKind::Container
                    | SubjectKind::Cgroup
            ),
            Cause::Always => true,
        }
    }

    /// Judges, or says why it cannot.
    pub(crate) fn apply(&self, case: &Case<'_>, out: &mut Findings) {
        match self.needs.iter().find(|sensor| !case.heard(sensor)) {
            Some(sensor) => out.blind(self.code, sensor, case.why_silent(sensor)),
            None => (self.judge)(case, out),
        }
    }

    /// Whether it could not judge only because the sexton that recorded was older than a sensor
    /// that it needs. That does not make a recording blind; it is said beside "healthy".
    pub(crate) fn is_newer_than(&self, case: &Case<'_>) -> bool {
        let wanted = match self.needs {
            [] => self.uses,
            needs => needs,
        };
        let mut missing = wanted
            .iter()
            .filter(|sensor| !case.heard(sensor))
            .peekable();
        missing.peek().is_some() && missing.all(|sensor| !case.had(sensor))
    }

    /// Its manual page: the comment at the head of its file.
    pub fn manual(&self) -> String {
        manual(self.source)
    }
}

/// The manual at the head of a source file: its module documentation.
pub fn manual(source: &str) -> String {
    let head = source.lines().take_while(|line| line.starts_with("//!"));
    let text: Vec<&str> = head
        .map(|line| line.trim_start_matches("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    text.join("\n")
}

/// A number that a judgement depends on.
#[derive(Debug, PartialEq)]
pub struct Threshold {
    /// The rule's code.
    pub rule: &'static str,
    /// Its name in a policy file: `[rules.MCG001] floor = 1000`.
    pub name: &'static str,
    /// Its value unless a policy says otherwise.
    pub default: f64,
    /// The least and the greatest that make sense.
    pub range: (f64, f64),
    /// Its unit.
    pub unit: Measure,
    /// What it means and where the value comes from.
    pub why: &'static str,
}

/// What rules say.
#[derive(Debug, Default)]
pub struct Findings {
    pub(crate) findings: Vec<Finding>,
    pub(crate) not_judged: Vec<NotJudged>,
    pub(crate) forecasts: Vec<Forecast>,
}

impl Findings {
    /// Something is wrong.
    pub fn found(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// It could not be judged.
    pub fn not_judged(&mut self, code: &'static str, because: impl Into<String>) {
        self.not_judged.push(NotJudged {
            code,
            what: rules::by_code(code).map_or(code, |rule| rule.sees),
            because: because.into(),
            silent: None,
        });
    }

    /// It could not be judged, because a sensor that it needs was not at work.
    fn blind(&mut self, code: &'static str, sensor: &'static str, because: String) {
        self.not_judged(code, because);
        if let Some(last) = self.not_judged.last_mut() {
            last.silent = Some(sensor);
        }
    }

    /// What will happen.
    pub fn forecast(&mut self, forecast: Forecast) {
        self.forecasts.push(forecast);
    }
}
