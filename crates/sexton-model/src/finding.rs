//! Findings: what a rule says is wrong, with what speaks for it, against it, and what is
//! missing to know.

use std::fmt::{self, Display};
use std::time::Duration;

use crate::moment::Moment;
use crate::subject::{Subject, SubjectKind};

/// How bad it is, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing suffers.
    Note,
    /// It will hurt if it goes on.
    Warning,
    /// It hurts now.
    Serious,
    /// Work was lost.
    Critical,
}

impl Severity {
    /// Its name in JSON and text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Serious => "serious",
            Self::Critical => "critical",
        }
    }
}

/// How sure we are, from 0 to 100 of 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Confidence(u8);

impl Confidence {
    /// Measured on this node, and nothing speaks against it.
    pub const CERTAIN: Self = Self(95);
    /// Several independent signs, or one strong one.
    pub const LIKELY: Self = Self(75);
    /// One sign that has other explanations.
    pub const POSSIBLE: Self = Self(50);
    /// Only a coincidence in time or name.
    pub const WEAK: Self = Self(25);

    /// So many of 100; more is 100.
    pub fn percent(percent: u8) -> Self {
        Self(percent.min(100))
    }

    /// From 0 to 1.
    pub fn ratio(self) -> f64 {
        f64::from(self.0) / 100.0
    }

    /// In a word.
    pub fn word(self) -> &'static str {
        match self.0 {
            90.. => "certain",
            70.. => "likely",
            _ => "possible",
        }
    }

    /// As sure as this, but no surer than `other`.
    #[must_use]
    pub fn at_most(self, other: Self) -> Self {
        self.min(other)
    }
}

/// Which way a piece of evidence speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stance {
    /// It speaks for the finding.
    For,
    /// It speaks against the finding.
    Against,
    /// It would tell, but it was not seen.
    Missing,
}

impl Stance {
    /// Its name in JSON and text.
    pub fn name(self) -> &'static str {
        match self {
            Self::For => "for",
            Self::Against => "against",
            Self::Missing => "missing",
        }
    }
}

/// One thing that was seen, or was not.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Which way it speaks.
    pub stance: Stance,
    /// What was seen, in one sentence with its figure.
    pub text: String,
    /// Who says so: a sensor and what it read, `memcg: kernel's own tree`.
    pub source: String,
    /// The figure, in the unit that the text names.
    pub value: Option<f64>,
    /// When it was seen, if at one moment.
    pub at: Option<Moment>,
    /// The words of the accused itself that say most, for where there is room for one line.
    pub quote: Option<String>,
}

impl Evidence {
    /// What speaks for it.
    pub fn speaks_for(source: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Stance::For, source.into(), text.into())
    }

    /// What speaks against it.
    pub fn against(source: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Stance::Against, source.into(), text.into())
    }

    /// What is missing to know.
    pub fn missing(source: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Stance::Missing, source.into(), text.into())
    }

    /// The same, with its figure.
    #[must_use]
    pub fn value(mut self, value: f64) -> Self {
        self.value = Some(value);
        self
    }

    /// The same, with its moment.
    #[must_use]
    pub fn at(mut self, at: Moment) -> Self {
        self.at = Some(at);
        self
    }

    /// The same, with words that say most.
    #[must_use]
    pub fn quoting(mut self, words: &str) -> Self {
        self.quote = Some(words.to_owned());
        self
    }

    fn new(stance: Stance, source: String, text: String) -> Self {
        Self {
            stance,
            text,
            source,
            value: None,
            at: None,
            quote: None,
        }
    }
}

/// What a remedy is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RemedyKind {
    /// Ends it now.
    Stop,
    /// Clears what it left behind.
    CleanUp,
    /// Keeps it from coming back.
    Prevent,
    /// Changes nothing: shows more.
    Look,
}

impl RemedyKind {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::CleanUp => "clean-up",
            Self::Prevent => "prevent",
            Self::Look => "look",
        }
    }
}

/// What to do about a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedy {
    /// What it is for.
    pub kind: RemedyKind,
    /// What it does, in one line.
    pub text: String,
    /// What to type.
    pub command: Option<String>,
    /// The process whose number is in the command: once it has ended, the number may be another's.
    pub pid: Option<u32>,
}

impl Remedy {
    /// Something to type.
    pub fn command(kind: RemedyKind, text: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            command: Some(command.into()),
            pid: None,
        }
    }

    /// Something that no command does.
    pub fn advice(kind: RemedyKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            command: None,
            pid: None,
        }
    }

    /// The same, with the number of this process in its command.
    #[must_use]
    pub fn of_process(self, pid: impl Display) -> Self {
        Self {
            pid: pid.to_string().parse().ok(),
            ..self
        }
    }
}

/// A stretch of time in which a finding held, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Episode {
    /// From when.
    pub from: Moment,
    /// Until when.
    pub to: Moment,
    /// What it touched then: a core, a queue, a process.
    pub touched: Vec<Subject>,
}

/// What ended this long before a watch began was over.
const OVER_AFTER: Duration = Duration::from_secs(600);

/// Something is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The rule's code, `MCG001`.
    pub code: &'static str,
    /// What it is about.
    pub subject: Subject,
    /// How bad it is.
    pub severity: Severity,
    /// How sure we are.
    pub confidence: Confidence,
    /// What is wrong, in one line that stands by itself.
    pub title: String,
    /// The decisive figure in a few words: `68,440 dying`.
    pub figure: String,
    /// Since when it is so, as far back as is known.
    pub since: Option<Moment>,
    /// What speaks for it, against it, and what is missing.
    pub evidence: Vec<Evidence>,
    /// What to do, most urgent first.
    pub remedies: Vec<Remedy>,
    /// What its evidence touches: the unit, image, cgroup, process, core or queue by which
    /// it may meet other findings. The subject is always one of them.
    pub touched: Vec<Subject>,
    /// When it was seen, in the order of time; at most a few dozen.
    pub episodes: Vec<Episode>,
}

impl Finding {
    /// Its name in JSON: `UNIT002:ecs.service`.
    pub fn id(&self) -> FindingId {
        FindingId::of(self.code, &self.subject)
    }

    /// Whether it was over when a watch began. A node is often looked at minutes after it failed,
    /// and then the failure is the answer. What is a state and not an event is never over.
    pub fn was_over(&self, began: Moment) -> bool {
        let Some(last) = self.episodes.iter().map(|episode| episode.to).max() else {
            return false;
        };
        // A finding keeps its longest episodes, which need not be its last.
        let shown = self.evidence.iter().filter_map(|piece| piece.at).max();
        let last = shown.map_or(last, |at| at.max(last));
        last.after(OVER_AFTER) < began
    }

    /// Whether its evidence touches that thing.
    pub fn touches(&self, subject: &Subject) -> bool {
        self.subject == *subject || self.touched.contains(subject)
    }

    /// What its evidence touches of one kind.
    pub fn touched_of(&self, kind: SubjectKind) -> impl Iterator<Item = &Subject> {
        let own = (self.subject.kind == kind).then_some(&self.subject);
        let others = self.touched.iter();
        own.into_iter()
            .chain(others.filter(move |touched| touched.kind == kind && **touched != self.subject))
    }
}

/// The name of a finding, `CODE:subject`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FindingId(String);

impl FindingId {
    /// What a rule says of a subject.
    pub fn of(code: &str, subject: &Subject) -> Self {
        match subject.kind {
            SubjectKind::Node => Self(format!("{code}:node")),
            _ => Self(format!("{code}:{}", subject.name)),
        }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
