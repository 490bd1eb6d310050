//! What a check counted, before anyone says how many are too many.

use sexton_model::gate::{Bound, Check, Passed};

use super::policy::{GatePolicy, Limit};

/// How much is known of a count.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Known {
    /// It is this.
    Exactly(f64),
    /// It is this or more: too little to pass, and enough to fail.
    AtLeast(f64),
    /// It is this or less: enough to pass, and too little to fail.
    AtMost(f64),
    /// Whatever it is, it passes.
    Enough(f64),
    /// Nothing.
    Nothing,
}

/// A count, and what it tells of.
#[derive(Debug)]
pub(super) struct Count {
    known: Known,
    bound: Bound,
    why: String,
    subjects: Vec<String>,
    next: Option<String>,
}

impl Count {
    fn new(known: Known, why: impl Into<String>) -> Self {
        let bound = match known {
            Known::AtLeast(_) => Bound::AtLeast,
            Known::AtMost(_) => Bound::AtMost,
            _ => Bound::Exact,
        };
        Self {
            known,
            bound,
            why: why.into(),
            subjects: Vec::new(),
            next: None,
        }
    }

    /// All were counted.
    pub(super) fn of(value: f64, why: impl Into<String>) -> Self {
        Self::new(Known::Exactly(value), why)
    }

    /// There may be more.
    pub(super) fn at_least(value: f64, why: impl Into<String>) -> Self {
        Self::new(Known::AtLeast(value), why)
    }

    /// There may be fewer.
    pub(super) fn at_most(value: f64, why: impl Into<String>) -> Self {
        Self::new(Known::AtMost(value), why)
    }

    /// There is nothing to judge.
    pub(super) fn enough(value: f64, why: impl Into<String>) -> Self {
        Self::new(Known::Enough(value), why)
    }

    /// The value is this or less.
    pub(super) fn upper_bound(mut self) -> Self {
        self.bound = Bound::AtMost;
        self
    }

    /// Nothing could be counted.
    pub(super) fn unknown(why: impl Into<String>) -> Self {
        Self::new(Known::Nothing, why)
    }

    /// What it is about, worst first.
    pub(super) fn about(mut self, subjects: Vec<String>) -> Self {
        self.subjects = subjects;
        self
    }

    /// What to type next.
    pub(super) fn next(mut self, command: impl Into<Option<String>>) -> Self {
        self.next = command.into();
        self
    }

    /// Compares it with its limit.
    pub(super) fn against(self, limit: &'static Limit, policy: &GatePolicy) -> Check {
        let most = policy.limit(limit);
        let (passed, value) = match self.known {
            Known::Exactly(value) if value <= most => (Passed::Yes, Some(value)),
            Known::Exactly(value) => (Passed::No, Some(value)),
            Known::AtLeast(value) if value > most => (Passed::No, Some(value)),
            Known::AtLeast(value) => (Passed::Unknown, Some(value)),
            Known::AtMost(value) if value <= most => (Passed::Yes, Some(value)),
            Known::AtMost(value) => (Passed::Unknown, Some(value)),
            Known::Enough(value) => (Passed::Yes, Some(value)),
            Known::Nothing => (Passed::Unknown, None),
        };
        let was_ended = matches!(self.known, Known::AtMost(_)) && passed == Passed::Unknown;
        Check {
            name: limit.name,
            title: limit.title,
            code: limit.code,
            passed,
            value,
            bound: self.bound,
            limit: most,
            why: match was_ended {
                true => format!("{}; counting was ended there", self.why),
                false => self.why,
            },
            subjects: self.subjects,
            next: self.next,
        }
    }
}
