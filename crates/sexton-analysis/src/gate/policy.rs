//! The limits of the gate, as a node's owner wants them.

use std::collections::{BTreeMap, BTreeSet};

/// The most of something that passes.
#[derive(Debug, PartialEq)]
pub struct Limit {
    /// Its name in a policy file: `[check] memory_cgroups = 1000`.
    pub name: &'static str,
    /// Its value unless a policy says otherwise.
    pub default: f64,
    /// The least and the greatest that make sense.
    pub range: (f64, f64),
    /// What it counts, in a few words.
    pub title: &'static str,
    /// The rule that looks closer.
    pub code: &'static str,
    /// Where the value comes from.
    pub why: &'static str,
}

/// What passes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GatePolicy {
    pub(crate) limits: BTreeMap<&'static str, f64>,
    pub(crate) skipped: BTreeSet<&'static str>,
    pub(crate) ignored_units: BTreeSet<String>,
    /// What the node is for, where that is not to be told by its files.
    pub shape: Option<String>,
}

impl GatePolicy {
    pub(crate) fn limit(&self, limit: &Limit) -> f64 {
        self.limits
            .get(limit.name)
            .copied()
            .unwrap_or(limit.default)
    }

    pub(crate) fn skips(&self, limit: &Limit) -> bool {
        self.skipped.contains(limit.name)
    }

    pub(crate) fn ignores_unit(&self, name: &str) -> bool {
        self.ignored_units.contains(name)
    }

    /// Whether some check wants to be skipped, so that nobody need look.
    pub fn is_skipped(&self, name: &str) -> bool {
        self.skipped.contains(name)
    }
}
