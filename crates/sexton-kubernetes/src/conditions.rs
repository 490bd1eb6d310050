//! The conditions of the node: one per family, from verdicts. Pure.
//!
//! True means a problem, as node-problem-detector has it. A condition is True at the first verdict
//! that has a finding of its family, and False only after it has been clear for a while, longer
//! each time it came back. It is Unknown until there is a verdict, and while sexton is blind.

use std::time::Duration;

use serde_json::{Value, json};
use sexton_model::family::Family;

use crate::text::{cut, seconds};
use crate::verdict::{BootProof, Problem, Verdict};

/// What all our conditions begin with.
pub const PREFIX: &str = "Sexton";

/// The longest message.
const MAX_MESSAGE_BYTES: usize = 1_024;

/// How many turns to True are remembered.
const MAX_TURNS: usize = 8;

/// What a condition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// There is a problem.
    True,
    /// There is none.
    False,
    /// It cannot be told.
    Unknown,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// How long a condition must be otherwise before it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Clear for this long, a condition is False. Doubled for each time that it came back
    /// within [`Hold::remembered`].
    pub clear: Duration,
    /// The most that doubling makes of it.
    pub longest_clear: Duration,
    /// Not assessed for this long, a condition is Unknown.
    pub blind: Duration,
    /// How long it is remembered that a condition was True.
    pub remembered: Duration,
}

impl Default for Hold {
    fn default() -> Self {
        Self {
            clear: Duration::from_secs(300),
            longest_clear: Duration::from_secs(3_600),
            blind: Duration::from_secs(120),
            remembered: Duration::from_secs(4 * 3_600),
        }
    }
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    family: Family,
    status: Status,
    reason: String,
    message: String,
    changed_ns: u64,
    /// Since when it has been clear, or not assessed, though it says something else.
    other_since_ns: Option<u64>,
    /// When it turned True.
    turns_ns: Vec<u64>,
}

/// All conditions of a node.
#[derive(Debug, Clone)]
pub struct Board {
    hold: Hold,
    runbooks: String,
    conditions: Vec<Condition>,
    is_changed: bool,
}

impl Board {
    /// Nothing is known yet. `runbooks` is what links to pages of rules begin with.
    pub fn new(hold: Hold, runbooks: &str, now_ns: u64) -> Self {
        let conditions = Family::ALL.iter().map(|family| Condition {
            family: *family,
            status: Status::Unknown,
            reason: "NotAssessedYet".to_owned(),
            message: "sexton has just started and has not assessed this yet".to_owned(),
            changed_ns: now_ns,
            other_since_ns: None,
            turns_ns: Vec::new(),
        });
        Self {
            hold,
            runbooks: runbooks.to_owned(),
            conditions: conditions.collect(),
            is_changed: true,
        }
    }

    /// Goes on with what the API server has of us: what was True stays so until a verdict
    /// says otherwise. Gives types of ours that no family has any more.
    pub fn resume(&mut self, node: &Value) -> Vec<String> {
        let mut orphans = Vec::new();
        let known = node["status"]["conditions"].as_array();
        for known in known.into_iter().flatten() {
            let kind = known["type"].as_str().unwrap_or_default();
            let Some(name) = kind.strip_prefix(PREFIX) else {
                continue;
            };
            let ours = self.conditions.iter_mut();
            match ours.into_iter().find(|ours| ours.family.name() == name) {
                None => orphans.push(kind.to_owned()),
                Some(ours) if known["status"] == "True" => ours.go_on(known),
                Some(_) => {}
            }
        }
        orphans
    }

    /// Takes a verdict.
    pub fn take(&mut self, verdict: &Verdict) {
        for at in 0..self.conditions.len() {
            let family = self.conditions[at].family;
            let (status, reason, message) = self.says(family, verdict);
            let hold = self.hold;
            let condition = &mut self.conditions[at];
            self.is_changed |= condition.step(hold, verdict.wall_ns, status, reason, message);
        }
    }

    /// Whether a status or a reason changed since it was last told.
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// The API server has been told.
    pub fn told(&mut self) {
        self.is_changed = false;
    }

    /// The patch that sets all conditions and removes those without an owner.
    pub fn patch(&self, now_ns: u64, orphans: &[String]) -> Value {
        let ours = self.conditions.iter().map(|condition| {
            json!({
                "type": kind(condition.family),
                "status": condition.status.name(),
                "reason": condition.reason,
                "message": condition.message,
                "lastHeartbeatTime": seconds(now_ns),
                "lastTransitionTime": seconds(condition.changed_ns),
            })
        });
        let conditions: Vec<Value> = ours.chain(orphans.iter().map(|it| dropped(it))).collect();
        json!({ "status": { "conditions": conditions } })
    }

    /// The status of a family.
    pub fn status(&self, family: Family) -> Status {
        let found = self.conditions.iter().find(|it| it.family == family);
        found.map_or(Status::Unknown, |condition| condition.status)
    }

    fn says(&self, family: Family, verdict: &Verdict) -> (Status, String, String) {
        let current = self.conditions.iter().find(|it| it.family == family);
        let is_true = current.is_some_and(|condition| condition.status == Status::True);
        let current = current.map_or("", |condition| condition.reason.as_str());
        let problems = verdict.problems.iter();
        let problems: Vec<&Problem> = problems.filter(|it| it.family == family).collect();
        if let Some(worst) = worst(&problems, current) {
            let message = self.problem_message(worst, problems.len() - 1);
            return (Status::True, worst.code.to_owned(), message);
        }
        let boots = verdict.boots.iter().filter(|boot| boot.family == family);
        let (proved, unproved): (Vec<&BootProof>, Vec<_>) = boots.partition(|it| it.is_proved);
        if let Some(boot) = unproved.first() {
            let text = format!("open before the reboot, not proved gone yet: {}", boot.text);
            let text = cut(&text, MAX_MESSAGE_BYTES);
            // What was True stays so until there is a proof; nothing turns True for want of one.
            return match is_true {
                true => (Status::True, boot.code.to_owned(), text),
                false => (Status::Unknown, "BootNotVerified".to_owned(), text),
            };
        }
        let missing: Vec<_> = verdict
            .not_assessed
            .iter()
            .filter(|it| it.family == family)
            .collect();
        if let Some(missing) = missing.iter().find(|it| it.is_essential) {
            let text = format!("cannot assess {}: {}", missing.code, missing.because);
            return (
                Status::Unknown,
                "Blind".to_owned(),
                cut(&text, MAX_MESSAGE_BYTES),
            );
        }
        let text = match (proved.first(), missing.first()) {
            (Some(boot), _) => format!("proved after the reboot: {}", boot.text),
            (None, Some(missing)) => {
                format!("no finding; not assessed: {}", missing.code)
            }
            (None, None) => "no finding".to_owned(),
        };
        let reason = if proved.is_empty() {
            "NoFinding"
        } else {
            "BootVerified"
        };
        (
            Status::False,
            reason.to_owned(),
            cut(&text, MAX_MESSAGE_BYTES),
        )
    }

    fn problem_message(&self, worst: &Problem, n_more: usize) -> String {
        let mut text = worst.title.clone();
        if let Some(root) = &worst.root {
            text.push_str("; root cause: ");
            text.push_str(root);
        }
        if n_more > 0 {
            text.push_str(&format!(" (and {n_more} more)"));
        }
        let link = format!(". Runbook: {}{}.md", self.runbooks, worst.code);
        cut(&text, MAX_MESSAGE_BYTES.saturating_sub(link.len())) + &link
    }
}

impl Condition {
    fn go_on(&mut self, known: &Value) {
        let text = |key: &str| known[key].as_str().unwrap_or_default();
        self.status = Status::True;
        self.reason = cut(text("reason"), 128);
        self.message = cut(text("message"), MAX_MESSAGE_BYTES);
        if let Some(ns) = sexton_model::wall::unix_ns(text("lastTransitionTime")) {
            self.changed_ns = ns;
        }
    }

    /// Takes what a verdict says; whether status or reason changed.
    fn step(
        &mut self,
        hold: Hold,
        now_ns: u64,
        status: Status,
        reason: String,
        message: String,
    ) -> bool {
        let since = *self.other_since_ns.get_or_insert(now_ns);
        let waited = Duration::from_nanos(now_ns.saturating_sub(since));
        let needed = match (self.status, status) {
            (before, now) if before == now => Duration::ZERO,
            // A problem is told at once, and so is the first verdict.
            (_, Status::True) | (Status::Unknown, _) => Duration::ZERO,
            (Status::True, Status::False) => self.clear_after(hold, now_ns),
            (_, Status::Unknown) => hold.blind,
            (Status::False, Status::False) => Duration::ZERO,
        };
        if waited < needed {
            return false;
        }
        self.other_since_ns = None;
        let is_changed = (self.status, &self.reason) != (status, &reason);
        if self.status != status {
            self.changed_ns = now_ns;
            if status == Status::True {
                self.turns_ns.push(now_ns);
                let n_over = self.turns_ns.len().saturating_sub(MAX_TURNS);
                self.turns_ns.drain(..n_over);
            }
        }
        (self.status, self.reason, self.message) = (status, reason, message);
        is_changed
    }

    fn clear_after(&self, hold: Hold, now_ns: u64) -> Duration {
        let is_recent =
            |turn: &&u64| Duration::from_nanos(now_ns.saturating_sub(**turn)) < hold.remembered;
        let n_turns = self.turns_ns.iter().filter(is_recent).count();
        let doublings = u32::try_from(n_turns.saturating_sub(1)).unwrap_or(u32::MAX);
        let factor = 2_u32.saturating_pow(doublings);
        hold.clear
            .saturating_mul(factor)
            .min(hold.longest_clear.max(hold.clear))
    }
}

/// The type of a family's condition.
pub fn kind(family: Family) -> String {
    format!("{PREFIX}{}", family.name())
}

/// What a patch has to drop a condition.
pub(crate) fn dropped(kind: &str) -> Value {
    json!({ "type": kind, "$patch": "delete" })
}

/// The gravest; of several, the one that is told already.
fn worst<'a>(problems: &[&'a Problem], current: &str) -> Option<&'a Problem> {
    let told = |problem: &Problem| problem.code == current;
    let problems = problems.iter().copied();
    problems.max_by(|a, b| {
        (a.severity, told(a))
            .cmp(&(b.severity, told(b)))
            .then_with(|| b.id.cmp(&a.id))
    })
}

#[cfg(test)]
mod tests;
