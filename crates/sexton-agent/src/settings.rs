//! What an agent is told to do.

use std::path::PathBuf;
use std::time::Duration;

use sexton_analysis::Policy;

use crate::pool::Member;

/// What an agent is told to do.
#[derive(Clone)]
pub struct Settings {
    /// Where the ring is.
    pub ring: PathBuf,
    /// All boots of the ring together are never larger.
    pub max_bytes: u64,
    /// What is older goes.
    pub max_age: Duration,
    /// The most incidents that are kept, and their size.
    pub max_incidents: usize,
    /// The size of all incidents together.
    pub max_incident_bytes: u64,
    /// The sensors.
    pub members: Vec<Member>,
    /// What the agent may use.
    pub budget: Budget,
    /// Thresholds.
    pub policy: Policy,
    /// The version of sexton.
    pub version: &'static str,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("ring", &self.ring)
            .field("max_bytes", &self.max_bytes)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

/// What an agent may use of its node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Of one core, averaged over a minute; 1.0 is a whole core.
    pub cpu_ratio: f64,
    /// Resident memory.
    pub memory_bytes: u64,
}
