//! The conditions of the node: one per family, from verdicts. Pure.
//!
//! True means a problem, as node-problem-detector has it. A condition is True at the first verdict
//! that has a finding of its family, and False only after it has been clear for a while, longer
//! each time it came back. It is Unknown until there is a verdict, and while sexton is blind.
//!
//! Only time between two clear verdicts counts as clear, on a clock that never jumps: neither
//! blindness nor a step of the wall clock makes a problem old.

use std::time::Duration;

use serde_json::{Value, json};
use sexton_model::family::Family;
use sexton_model::moment::Moment;

use crate::text::{cut, seconds};
use crate::verdict::{BootProof, Problem, Verdict};

/// What all our conditions begin with.
pub const PREFIX: &str = "Sexton";

/// The longest message.
const MAX_MESSAGE_BYTES: usize = 1_024;

/// How many turns to True are remembered.
const MAX_TURNS: usize = 8;

/// The reason of Unknown while a rule could not be assessed.
const BLIND: &str = "Blind";

/// Reasons of Unknown after True. An agent that is started meanwhile reads from them that a
/// problem was not proved to be gone.
const BLIND_AFTER_PROBLEM: &str = "BlindAfterProblem";
const CLEAR_AFTER_PROBLEM: &str = "ClearAfterProblem";

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
    /// Not assessed for this long, a condition is Unknown. No verdict for this long is as much.
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
    /// Whether it was True and has not been clear for long enough since.
    is_held: bool,
    /// For how long it has been clear since it was last True.
    clear: Duration,
    /// For how long it has not been assessed.
    blind: Duration,
    /// The verdict before, and when that came.
    before: Option<(Moment, Status)>,
    /// When it turned True.
    turns: Vec<Moment>,
}

/// What a verdict says of a family, and when.
struct Word {
    at: Moment,
    wall_ns: u64,
    status: Status,
    reason: String,
    message: String,
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
            is_held: false,
            clear: Duration::ZERO,
            blind: Duration::ZERO,
            before: None,
            turns: Vec::new(),
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
                Some(ours) => ours.is_held = is_after_problem(known),
            }
        }
        orphans
    }

    /// Takes a verdict.
    pub fn take(&mut self, verdict: &Verdict) {
        for at in 0..self.conditions.len() {
            let family = self.conditions[at].family;
            let (status, reason, message) = self.says(family, verdict);
            let word = Word {
                at: verdict.at,
                wall_ns: verdict.wall_ns,
                status,
                reason,
                message,
            };
            let condition = &mut self.conditions[at];
            self.is_changed |= condition.step(self.hold, word);
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
                BLIND.to_owned(),
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
        self.is_held = true;
        self.reason = cut(text("reason"), 128);
        self.message = cut(text("message"), MAX_MESSAGE_BYTES);
        if let Some(ns) = sexton_model::wall::unix_ns(text("lastTransitionTime")) {
            self.changed_ns = ns;
        }
    }

    /// Takes what a verdict says; whether status or reason changed.
    fn step(&mut self, hold: Hold, word: Word) -> bool {
        self.count(hold, &word);
        match word.status {
            Status::True => {
                (self.is_held, self.clear) = (true, Duration::ZERO);
                self.turn_to(word)
            }
            Status::False if self.is_held && self.clear < self.clear_after(hold, word.at) => {
                // It says Unknown since it was blind, and is not any more. That alone is no
                // proof that the problem is gone.
                match self.status {
                    Status::Unknown => self.turn_to(word.not_clear_for_long_enough()),
                    _ => false,
                }
            }
            Status::False => {
                self.is_held = false;
                self.turn_to(word)
            }
            Status::Unknown if self.status != Status::Unknown && self.blind < hold.blind => false,
            Status::Unknown => {
                let word = word.after_problem(self.is_held);
                self.turn_to(word)
            }
        }
    }

    /// Counts the time since the verdict before, if both say the same. A long time without a
    /// verdict is counted as nothing.
    fn count(&mut self, hold: Hold, word: &Word) {
        let before = self.before.replace((word.at, word.status));
        let same = before.filter(|(_, status)| *status == word.status);
        let passed = same.map_or(Duration::ZERO, |(at, _)| word.at.since(at));
        match word.status {
            Status::True => self.blind = Duration::ZERO,
            Status::False => {
                self.blind = Duration::ZERO;
                if passed <= hold.blind {
                    self.clear = self.clear.saturating_add(passed);
                }
            }
            Status::Unknown => self.blind = self.blind.saturating_add(passed),
        }
    }

    /// Says this from now on; whether status or reason changed.
    fn turn_to(&mut self, word: Word) -> bool {
        let is_changed = (self.status, &self.reason) != (word.status, &word.reason);
        if self.status != word.status {
            self.changed_ns = word.wall_ns;
            if word.status == Status::True {
                self.turns.push(word.at);
                let n_over = self.turns.len().saturating_sub(MAX_TURNS);
                self.turns.drain(..n_over);
            }
        }
        (self.status, self.reason, self.message) = (word.status, word.reason, word.message);
        is_changed
    }

    fn clear_after(&self, hold: Hold, now: Moment) -> Duration {
        let is_recent = |turn: &&Moment| now.since(**turn) < hold.remembered;
        let n_turns = self.turns.iter().filter(is_recent).count();
        let doublings = u32::try_from(n_turns.saturating_sub(1)).unwrap_or(u32::MAX);
        let factor = 2_u32.saturating_pow(doublings);
        hold.clear
            .saturating_mul(factor)
            .min(hold.longest_clear.max(hold.clear))
    }
}

impl Word {
    /// Not False yet, and True no more.
    fn not_clear_for_long_enough(self) -> Self {
        let text = "no finding, but there was one before sexton was blind";
        Self {
            status: Status::Unknown,
            reason: CLEAR_AFTER_PROBLEM.to_owned(),
            message: format!("{text}; False once this has been clear for long enough"),
            ..self
        }
    }

    /// Keeps in the reason that it was True before.
    fn after_problem(self, was_true: bool) -> Self {
        match was_true && self.reason == BLIND {
            true => Self {
                reason: BLIND_AFTER_PROBLEM.to_owned(),
                ..self
            },
            false => self,
        }
    }
}

/// Whether an agent before this one had left it open whether a problem is gone.
fn is_after_problem(known: &Value) -> bool {
    known["status"] == "Unknown"
        && (known["reason"] == BLIND_AFTER_PROBLEM || known["reason"] == CLEAR_AFTER_PROBLEM)
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
