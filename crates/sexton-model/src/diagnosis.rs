//! The judgement of a node: findings, how they hang together, and what was not judged.

use std::ops::RangeInclusive;

use crate::fact::sexton::StepDown;
use crate::finding::{Confidence, Evidence, Finding, FindingId};
use crate::gap::Gap;
use crate::moment::Moment;

/// What the judgement comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Something is wrong and what causes it is known.
    CauseFound,
    /// Something is wrong; what causes it is not known.
    SymptomsOnly,
    /// Nothing is wrong, and enough was seen to say so.
    Healthy,
    /// Nothing was found, and not enough was seen to say more.
    Blind,
}

impl State {
    /// Its name in JSON and text.
    pub fn name(self) -> &'static str {
        match self {
            Self::CauseFound => "cause-found",
            Self::SymptomsOnly => "symptoms-only",
            Self::Healthy => "healthy",
            Self::Blind => "blind",
        }
    }
}

/// One finding causes another.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// What causes.
    pub cause: FindingId,
    /// What is caused.
    pub effect: FindingId,
    /// How sure that is.
    pub confidence: Confidence,
    /// Where their evidence meets, what speaks against it, what is missing.
    pub evidence: Vec<Evidence>,
}

/// Two findings that are often cause and effect, and are not here.
#[derive(Debug, Clone, PartialEq)]
pub struct Separation {
    /// What would cause.
    pub cause: FindingId,
    /// What would be caused.
    pub effect: FindingId,
    /// What speaks against it, or is missing.
    pub evidence: Vec<Evidence>,
}

/// Another explanation that comes to mind, and what was seen of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// What it would be: `cpu throttling by quota`.
    pub name: &'static str,
    /// What became of it.
    pub outcome: Outcome,
    /// Why.
    pub evidence: Vec<Evidence>,
}

/// What became of another explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It is not that.
    RuledOut,
    /// It plays a part.
    PlaysAPart,
    /// It cannot be told.
    NotSeen,
}

impl Outcome {
    /// Its name in JSON and text.
    pub fn name(self) -> &'static str {
        match self {
            Self::RuledOut => "ruled-out",
            Self::PlaysAPart => "plays-a-part",
            Self::NotSeen => "not-seen",
        }
    }
}

/// A rule that could not judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotJudged {
    /// Its code.
    pub code: &'static str,
    /// What is not seen for that reason: `hung tasks`.
    pub what: &'static str,
    /// Why it could not.
    pub because: String,
    /// The sensor that it needs and that was not at work, if that is why.
    pub silent: Option<&'static str>,
}

/// When something will pass a limit if it goes on like this.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// What grows: `dying memory cgroups`.
    pub what: String,
    /// How much a day.
    pub per_day: f64,
    /// The standard error of that.
    pub per_day_error: f64,
    /// From so many points.
    pub n_points: u64,
    /// When which limit is passed.
    pub passes: Vec<Passing>,
}

/// When one limit is passed.
#[derive(Debug, Clone, PartialEq)]
pub struct Passing {
    /// The limit: `one read of memory.stat takes 5 s`.
    pub limit: String,
    /// In so many days from the end of the window; `None` when it never does at this rate.
    pub in_days: Option<f64>,
    /// The earliest and the latest, with the error of the rate.
    pub range_days: Option<(f64, f64)>,
}

/// The judgement of a node.
#[derive(Debug, Clone)]
pub struct Diagnosis {
    /// The time of the watch.
    pub window: Option<RangeInclusive<Moment>>,
    /// What it comes to.
    pub state: State,
    /// That, in one sentence.
    pub headline: String,
    /// How sure we are of the gravest chain.
    pub confidence: Option<Confidence>,
    /// Chains from cause to symptom, gravest first. Each finding is in one at least.
    pub chains: Vec<Vec<FindingId>>,
    /// All findings, by code and subject.
    pub findings: Vec<Finding>,
    /// Those that `sexton fix` acts on by itself.
    pub fixable: Vec<FindingId>,
    /// How they hang together.
    pub links: Vec<Link>,
    /// What was looked at and does not hang together.
    pub separations: Vec<Separation>,
    /// Other explanations.
    pub explanations: Vec<Explanation>,
    /// What will happen if nobody does anything.
    pub forecasts: Vec<Forecast>,
    /// Rules that could not judge.
    pub not_judged: Vec<NotJudged>,
    /// What was seen by lesser means than the best, each once.
    pub step_downs: Vec<StepDown>,
    /// What could not be seen, each thing once.
    pub gaps: Vec<Gap>,
}

impl Diagnosis {
    /// The finding of that name.
    pub fn finding(&self, id: &FindingId) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.id() == *id)
    }

    /// The cause that the gravest chain begins with, when there is one.
    pub fn root(&self) -> Option<&FindingId> {
        match self.state {
            State::CauseFound => self.chains.first()?.first(),
            _ => None,
        }
    }

    /// Whether a finding was over before the watch began: worth knowing, but not what is wrong now.
    pub fn is_history(&self, finding: &Finding) -> bool {
        let began = self.window.as_ref().map(|window| *window.start());
        began.is_some_and(|began| finding.was_over(began))
    }

    /// What causes a finding, as far as is known.
    pub fn causes_of<'a>(&'a self, effect: &'a FindingId) -> impl Iterator<Item = &'a Link> {
        self.links.iter().filter(move |link| link.effect == *effect)
    }
}
