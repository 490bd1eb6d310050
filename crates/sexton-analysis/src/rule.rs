//! What a rule is made of.

use std::time::Duration;

use sexton_model::diagnosis::{Forecast, NotJudged};
use sexton_model::fact::Measure;
use sexton_model::family::Family;
use sexton_model::finding::Finding;
use sexton_model::fix::Offer;
use sexton_model::subject::SubjectKind;

use crate::case::Case;
use crate::rules;
use crate::words::figures::time;

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
    /// The shortest watch that can show the trouble, where it takes a while to tell.
    pub least: Option<&'static Threshold>,
    /// Whether a finding of it can be a root cause.
    pub cause: Cause,
    /// What sexton can do about it by itself.
    pub offer: Offer,
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
        if let Some(sensor) = self.needs.iter().find(|sensor| !case.heard(sensor)) {
            return out.blind(self.code, sensor, case.why_silent(sensor));
        }
        let told = out.len();
        (self.judge)(case, out);
        // What was found was seen. That nothing was found says something only after a long look.
        if out.len() == told {
            self.tell_short_look(case, out);
        }
    }

    /// Says that it found nothing because it could not look, or not for long enough.
    fn tell_short_look(&self, case: &Case<'_>, out: &mut Findings) {
        let ended = self
            .needs
            .iter()
            .find_map(|sensor| Some((sensor, case.went_silent(sensor)?)));
        if let Some((sensor, gap)) = ended.filter(|_| self.is_essential) {
            return out.blind(self.code, sensor, gap.text.clone());
        }
        let Some(least) = self.least else {
            return;
        };
        let watched = self.needs.iter().map(|sensor| case.watched(sensor)).min();
        let watched = watched.unwrap_or_else(|| case.length());
        let wanted = Duration::from_secs_f64(case.limit(least));
        if watched + MOMENT < wanted {
            let text = format!(
                "watched for {}, it takes {} to show",
                time(watched),
                time(wanted)
            );
            out.not_judged(self.code, text);
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

/// The first look comes, and the last goes, within this time.
pub(crate) const MOMENT: Duration = Duration::from_secs(1);

/// What rules say.
#[derive(Debug, Default)]
pub struct Findings {
    pub(crate) findings: Vec<Finding>,
    pub(crate) not_judged: Vec<NotJudged>,
    pub(crate) forecasts: Vec<Forecast>,
}

impl Findings {
    /// How much was said so far.
    fn len(&self) -> usize {
        self.findings.len() + self.not_judged.len()
    }

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
