//! Takes records as they come and judges them step by step.

use std::time::Duration;

use sexton_model::diagnosis::Diagnosis;
use sexton_model::moment::Moment;
use sexton_model::record::Record;

use super::lives::{Change, Lives};
use super::window::Window;
use crate::policy::Policy;

/// How far steps are apart.
pub const EVERY: Duration = Duration::from_secs(30);

/// How long after its moment a step is taken: sensors hand over what they saw within that.
/// What comes later still belongs to the next step.
pub const LAG: Duration = Duration::from_secs(3);

/// Records of after the next step that are held back; more are taken at once.
const MAX_AHEAD: usize = 65_536;

/// Judges a node while it is recorded.
#[derive(Debug)]
pub struct Stepper {
    policy: Policy,
    every: Duration,
    window: Window,
    /// Records of after the next step.
    ahead: Vec<Record>,
    lives: Lives,
    next: Option<Moment>,
    began: Option<Moment>,
}

/// What came of one step.
#[derive(Debug)]
pub struct Step {
    /// Its moment.
    pub at: Moment,
    /// The verdict.
    pub diagnosis: Diagnosis,
    /// What changed.
    pub changes: Vec<Change>,
}

impl Stepper {
    /// One that steps so often, and goes on with what was found before.
    pub fn new(policy: Policy, every: Duration, lives: Lives) -> Self {
        Self {
            policy,
            every,
            window: Window::default(),
            ahead: Vec::new(),
            lives,
            next: None,
            began: None,
        }
    }

    /// Judges by other thresholds from now on.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// Takes a record. The first word of sexton itself begins the watch.
    pub fn take(&mut self, record: Record) {
        if self.next.is_none() && is_poll(&record) {
            self.next = Some(self.step_after(record.at));
            self.began = Some(record.at);
        }
        let is_ahead = self.next.is_some_and(|next| record.at > next);
        match is_ahead && self.ahead.len() < MAX_AHEAD {
            true => self.ahead.push(record),
            false => self.window.push(record),
        }
    }

    /// The moment of the next step, once the watch has begun.
    pub fn next(&self) -> Option<Moment> {
        self.next
    }

    /// Takes the next step.
    pub fn step(&mut self) -> Option<Step> {
        let at = self.next?;
        self.window.trim(at);
        let diagnosis = crate::judge(&self.window, &self.policy);
        let changes = self.lives.step(at, &diagnosis);
        self.go_to(self.step_after(at));
        Some(Step {
            at,
            diagnosis,
            changes,
        })
    }

    /// Leaves out steps until a moment: nothing was recorded meanwhile, so that nothing can
    /// be said of that time.
    pub fn skip_to(&mut self, moment: Moment) {
        if self.next.is_some_and(|next| next < moment) {
            self.go_to(self.step_after(moment));
        }
    }

    /// The lives of findings.
    pub fn lives(&self) -> &Lives {
        &self.lives
    }

    /// What it remembers of the node.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Since when it watches.
    pub fn began(&self) -> Option<Moment> {
        self.began
    }

    fn go_to(&mut self, next: Moment) {
        self.next = Some(next);
        let (due, ahead) = std::mem::take(&mut self.ahead)
            .into_iter()
            .partition(|record| record.at <= next);
        self.ahead = ahead;
        let due: Vec<Record> = due;
        due.into_iter().for_each(|record| self.window.push(record));
    }

    /// Steps are at multiples of their distance, so that a replay takes the same ones.
    fn step_after(&self, moment: Moment) -> Moment {
        let every_ns = u64::try_from(self.every.as_nanos()).unwrap_or(u64::MAX);
        let n = moment.as_ns() / every_ns.max(1) + 1;
        Moment::from_ns(n.saturating_mul(every_ns))
    }
}

fn is_poll(record: &Record) -> bool {
    record.fact() == Some(&sexton_model::fact::sexton::SEXTON_POLL_NS)
}

/// A pause of the recorder is longer than this.
const PAUSE: Duration = Duration::from_secs(90);

/// Takes the steps that a recording would have had while it was made: its records in the order
/// of time. Hands every step to `each`.
pub fn replay(
    stepper: &mut Stepper,
    records: impl IntoIterator<Item = Record>,
    mut each: impl FnMut(Step),
) {
    let mut last: Option<Moment> = None;
    for record in records {
        if stepper.began().is_some() {
            if last.is_some_and(|last| record.at.since(last) > PAUSE) {
                take_steps(stepper, last.unwrap_or_default(), &mut each);
                stepper.skip_to(record.at);
            }
            take_steps(stepper, record.at, &mut each);
            last = Some(record.at);
        }
        stepper.take(record);
    }
    if let Some(last) = last {
        take_steps(stepper, last, &mut each);
    }
}

/// All steps before a moment.
fn take_steps(stepper: &mut Stepper, until: Moment, each: &mut impl FnMut(Step)) {
    while stepper.next().is_some_and(|next| next < until) {
        stepper.step().into_iter().for_each(&mut *each);
    }
}
