//! Lives of findings: when each opened, worsened, was resolved and came back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sexton_model::diagnosis::Diagnosis;
use sexton_model::finding::{Finding, FindingId, Severity};
use sexton_model::moment::Moment;

/// A finding that is not seen for this long is resolved; one that comes and goes within it
/// stays open.
const RESOLVED_AFTER: Duration = Duration::from_secs(60);

/// A finding that comes back within this time is the same one, reopened.
const SAME_WITHIN: Duration = Duration::from_secs(6 * 3600);

/// Findings that are open at once, and resolved ones that are remembered.
const MAX_OPEN: usize = 512;
const MAX_RESOLVED: usize = 512;

/// What happened to a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// It was found for the first time, or for the first time in hours.
    Opened,
    /// It is graver than it ever was in this life.
    Worsened,
    /// It is gone.
    Resolved,
    /// It came back.
    Reopened,
}

/// The life of a finding so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Life {
    /// The finding, as it was last seen.
    pub finding: Finding,
    /// When it opened.
    pub opened: Moment,
    /// The worst it ever was.
    pub worst: Severity,
    /// When it was first at its worst.
    pub worst_at: Moment,
    /// When it was last seen.
    pub last_seen: Moment,
    /// Since when it is resolved.
    pub resolved: Option<Moment>,
}

/// A turn in the life of a finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// At which step.
    pub at: Moment,
    /// What happened.
    pub turn: Turn,
    /// The life, after that.
    pub life: Life,
}

/// All lives that are remembered.
#[derive(Debug, Clone, Default)]
pub struct Lives {
    lives: BTreeMap<FindingId, Life>,
    n_untold: u64,
}

impl Lives {
    /// Goes on with lives that were remembered elsewhere.
    pub fn resume(lives: impl IntoIterator<Item = Life>) -> Self {
        let lives = lives.into_iter().map(|life| (life.finding.id(), life));
        Self {
            lives: lives.collect(),
            n_untold: 0,
        }
    }

    /// The findings that are open, by code and subject.
    pub fn open(&self) -> impl Iterator<Item = &Life> {
        self.lives.values().filter(|life| life.resolved.is_none())
    }

    /// Those that are over and still remembered.
    pub fn resolved(&self) -> impl Iterator<Item = &Life> {
        self.lives.values().filter(|life| life.resolved.is_some())
    }

    /// Findings that were not followed, because too many were open.
    pub fn n_untold(&self) -> u64 {
        self.n_untold
    }

    /// Takes what was found at a moment, and says what changed.
    pub fn step(&mut self, at: Moment, diagnosis: &Diagnosis) -> Vec<Change> {
        let mut changes = Vec::new();
        for finding in &diagnosis.findings {
            changes.extend(self.seen(at, finding));
        }
        // A rule that could not look says nothing about what it found before.
        let blind: BTreeSet<&str> = diagnosis.not_judged.iter().map(|rule| rule.code).collect();
        for life in self.lives.values_mut() {
            let is_gone = life.last_seen < at && !blind.contains(life.finding.code);
            if life.resolved.is_none() && is_gone && at.since(life.last_seen) >= RESOLVED_AFTER {
                life.resolved = Some(at);
                changes.push(change(at, Turn::Resolved, life));
            }
        }
        self.forget(at);
        changes
    }

    fn seen(&mut self, at: Moment, finding: &Finding) -> Option<Change> {
        let n_open = self.open().count();
        let known = self.lives.get_mut(&finding.id());
        let Some(life) = known.filter(|life| life.is_same(at)) else {
            if n_open >= MAX_OPEN {
                self.n_untold += 1;
                return None;
            }
            let life = Life::new(at, finding);
            let opened = change(at, Turn::Opened, &life);
            self.lives.insert(finding.id(), life);
            return Some(opened);
        };
        let was_resolved = life.resolved.take().is_some();
        let is_worse = finding.severity > life.worst;
        if is_worse {
            (life.worst, life.worst_at) = (finding.severity, at);
        }
        life.finding = finding.clone();
        life.last_seen = at;
        match (was_resolved, is_worse) {
            (true, _) => Some(change(at, Turn::Reopened, life)),
            (false, true) => Some(change(at, Turn::Worsened, life)),
            (false, false) => None,
        }
    }

    fn forget(&mut self, at: Moment) {
        self.lives.retain(|_, life| life.is_same(at));
        let mut resolved: Vec<(Moment, FindingId)> = self
            .resolved()
            .filter_map(|life| Some((life.resolved?, life.finding.id())))
            .collect();
        resolved.sort_unstable();
        let n_over = resolved.len().saturating_sub(MAX_RESOLVED);
        for (_, id) in &resolved[..n_over] {
            self.lives.remove(id);
        }
    }
}

impl Life {
    fn new(at: Moment, finding: &Finding) -> Self {
        Self {
            finding: finding.clone(),
            opened: at,
            worst: finding.severity,
            worst_at: at,
            last_seen: at,
            resolved: None,
        }
    }

    /// Whether what is found now is still this one.
    fn is_same(&self, at: Moment) -> bool {
        self.resolved
            .is_none_or(|resolved| at.since(resolved) < SAME_WITHIN)
    }
}

fn change(at: Moment, turn: Turn, life: &Life) -> Change {
    Change {
        at,
        turn,
        life: life.clone(),
    }
}

#[cfg(test)]
mod tests;
