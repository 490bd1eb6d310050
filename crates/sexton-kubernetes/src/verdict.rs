//! What the agent reports: a verdict, reduced to what Kubernetes needs.

use sexton_model::family::Family;
use sexton_model::finding::Severity;
use sexton_model::moment::Moment;

/// A verdict on a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// When, on the clock that never jumps.
    pub at: Moment,
    /// When, in nanoseconds since 1970.
    pub wall_ns: u64,
    /// The findings that are open.
    pub problems: Vec<Problem>,
    /// Rules that could not judge.
    pub not_assessed: Vec<NotAssessed>,
    /// What was open before the last reboot, and whether it is proved to be gone.
    pub boots: Vec<BootProof>,
    /// What opened, worsened, or is over since the verdict before.
    pub turns: Vec<Turn>,
}

/// An open finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// `CODE:subject`.
    pub id: String,
    /// The code of its rule.
    pub code: &'static str,
    /// The family of its rule.
    pub family: Family,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in one line.
    pub title: String,
    /// The root cause of the chain that it is in, when that is another finding.
    pub root: Option<String>,
    /// The pods that it is about.
    pub pods: Vec<Pod>,
}

/// A rule that could not judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAssessed {
    /// Its family.
    pub family: Family,
    /// Its code.
    pub code: &'static str,
    /// Why.
    pub because: String,
    /// Whether the family cannot be called clear without it.
    pub is_essential: bool,
}

/// A finding that was open when the node was rebooted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootProof {
    /// Its family.
    pub family: Family,
    /// The code of its rule.
    pub code: &'static str,
    /// Whether it is proved to be gone.
    pub is_proved: bool,
    /// The proof, or what is missing.
    pub text: String,
}

/// Something happened to a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The finding.
    pub problem: Problem,
    /// Whether it is over.
    pub is_over: bool,
    /// When, in nanoseconds since 1970.
    pub wall_ns: u64,
}

/// A pod, as its container runtime knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The container in question.
    pub container: Option<String>,
    /// The image of that container.
    pub image: Option<String>,
}
