//! Judges at each step, logs what opened and what is over, and keeps incidents.

use std::time::{Duration, Instant};

use sexton_analysis::live::{Change, LAG, Step, Turn};
use sexton_host::clock;
use sexton_model::diagnosis::Diagnosis;
use sexton_model::finding::Severity;
use sexton_model::moment::Moment;

use super::{Agent, Judged, Level};
use crate::boot_proof::{self, BootProof};
use crate::status::{FindingStatus, ForecastStatus};

/// A step that is later than this is left out: the node slept, or this process was stopped.
const TOO_LATE: Duration = Duration::from_secs(90);

/// What failed is tried again after this time.
const AGAIN: Duration = Duration::from_secs(60);

/// What is tried again when it fails, and said only when that turns.
#[derive(Debug, Default)]
pub(super) struct Retry {
    failed: Option<Instant>,
}

impl Retry {
    fn is_due(&self, now: Instant) -> bool {
        self.failed
            .is_none_or(|failed| now.saturating_duration_since(failed) >= AGAIN)
    }

    /// Notes how it went. Whether it went otherwise before.
    fn note(&mut self, has_failed: bool, now: Instant) -> bool {
        let before = std::mem::replace(&mut self.failed, has_failed.then_some(now));
        before.is_some() != has_failed
    }
}

/// Open findings that the status names.
const MAX_FINDINGS: usize = 200;

impl Agent {
    /// Takes the step that is due, if one is.
    pub(super) fn judge_if_due(&mut self, now: Moment) {
        if let Some(next) = self.stepper.next()
            && now.since(next) > TOO_LATE
        {
            let late = now.since(next).as_secs();
            let text = format!("judging was held up for {late} s; nothing is said of that time");
            self.say(Level::Warning, &text);
            self.stepper.skip_to(now);
        }
        let is_due = self
            .stepper
            .next()
            .is_some_and(|next| next.after(LAG) <= now);
        if is_due {
            let began = Instant::now();
            if let Some(step) = self.stepper.step() {
                self.take_step(&step, began.elapsed(), now);
            }
        }
        if self.incidents.is_due(now) && self.keeping.is_due(Instant::now()) {
            self.finish_incident(now);
        }
    }

    /// Keeps the incident that has all it waits for. Where that fails it is tried again.
    fn finish_incident(&mut self, now: Moment) {
        let bundle = self.boot.records.clone();
        let kept = self.incidents.finish(&mut self.writer, &bundle, now);
        let has_turned = self.keeping.note(kept.is_err(), Instant::now());
        match kept {
            Err(error) if has_turned => {
                let why = error.chain();
                let text = format!("cannot keep an incident: {why}; the agent goes on trying");
                self.say(Level::Warning, &text);
            }
            Ok(()) if has_turned => self.say(Level::Info, "the incident is kept now"),
            _ => {}
        }
        self.bounded = None;
    }

    fn take_step(&mut self, step: &Step, took: Duration, now: Moment) {
        let wall_ns = clock::wall_ns();
        for change in &step.changes {
            self.log_change(change);
        }
        let added = self
            .findings
            .add(&step.changes, &step.diagnosis, now, wall_ns);
        if let Err(error) = added {
            let text = format!("cannot write the findings log: {}", error.chain());
            self.say(Level::Warning, &text);
        }
        if self.incidents.begins_with(&step.changes) {
            // So that the incident holds from its beginning on what led to it.
            let sealed = self.writer.seal_now(now);
            self.note_trouble(sealed.err());
        }
        let taken = self
            .incidents
            .take(&step.changes, &self.boot.records, &self.boot.id, wall_ns);
        match taken {
            Ok(Some(name)) => {
                self.say(Level::Warning, &format!("incident {name} is being kept"));
                self.bounded = None;
            }
            Ok(None) => {}
            Err(error) => {
                let text = format!("cannot keep an incident: {}", error.chain());
                self.say(Level::Warning, &text);
            }
        }
        let n_records = self.stepper.window().len();
        self.shared.change(|status| {
            status.state = Some(step.diagnosis.state.name().to_owned());
            status.headline.clone_from(&step.diagnosis.headline);
            status.judged_wall_ns = Some(wall_ns);
            status.judge_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
            status.window_records = n_records;
            status.forecasts = forecasts(&step.diagnosis);
        });
        self.tell_findings(now);
        self.prove_boot(step);
        if let Some(tell) = &mut self.on_verdict {
            tell(&Judged {
                step,
                lives: self.stepper.lives(),
                boot_proofs: &self.boot_proofs,
            });
        }
    }

    /// Looks whether what was open before the reboot is gone. What is proved stays so: what
    /// comes after is a finding of this boot.
    fn prove_boot(&mut self, step: &Step) {
        let is_done = |proofs: &[BootProof]| proofs.iter().all(|proof| proof.is_proved);
        if self.open_before.is_empty() || !self.boot_proofs.is_empty() && is_done(&self.boot_proofs)
        {
            return;
        }
        let window = self.stepper.window();
        let (diagnosis, watched) = (&step.diagnosis, &mut self.watched);
        watched.take(step.at, diagnosis, window);
        let proofs = boot_proof::prove(&self.open_before, window, diagnosis, watched);
        let is_told = |proof: &BootProof| self.boot_proofs.iter().any(|it| it == proof);
        let new: Vec<BootProof> = proofs
            .iter()
            .filter(|proof| proof.is_proved && !is_told(proof))
            .cloned()
            .collect();
        for proof in new {
            let text = format!("boot verified: {} is gone: {}", proof.id, proof.text);
            self.say(Level::Info, &text);
        }
        self.boot_proofs = proofs;
        let proofs = self.boot_proofs.clone();
        self.shared.change(|status| status.boot_proofs = proofs);
    }

    fn log_change(&mut self, change: &Change) {
        let finding = &change.life.finding;
        let turn = match change.turn {
            Turn::Opened => "opened",
            Turn::Worsened => "worsened",
            Turn::Resolved => "resolved",
            Turn::Reopened => "reopened",
        };
        let level = match (change.turn, finding.severity) {
            (Turn::Resolved, _) | (_, Severity::Note) => Level::Info,
            _ => Level::Warning,
        };
        let text = format!(
            "finding {turn}: {} ({}): {}",
            finding.id(),
            finding.severity.name(),
            finding.title
        );
        self.say(level, &text);
    }

    /// The open findings in the status.
    pub(super) fn tell_findings(&mut self, now: Moment) {
        let wall_ns = clock::wall_ns();
        let open = self.stepper.lives().open().take(MAX_FINDINGS);
        let findings = open.map(|life| {
            let ago = u64::try_from(now.since(life.opened).as_nanos()).unwrap_or(0);
            let finding = &life.finding;
            FindingStatus {
                id: finding.id().to_string(),
                code: finding.code.to_owned(),
                subject: finding.subject.to_string(),
                severity: finding.severity.name().to_owned(),
                title: finding.title.clone(),
                opened_wall_ns: wall_ns.saturating_sub(ago),
            }
        });
        let findings = findings.collect();
        self.shared.change(|status| status.findings = findings);
    }
}

/// The limits that are passed at the present rate.
fn forecasts(diagnosis: &Diagnosis) -> Vec<ForecastStatus> {
    let passes = diagnosis.forecasts.iter().flat_map(|forecast| {
        forecast.passes.iter().filter_map(|passing| {
            Some(ForecastStatus {
                what: forecast.what.clone(),
                limit: passing.limit.clone(),
                in_days: passing.in_days?,
            })
        })
    });
    passes.take(MAX_FINDINGS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_tried_each_minute_and_said_once() {
        let began = Instant::now();
        let mut retry = Retry::default();
        // A full disk for ten minutes, looked at every half second.
        let (mut n_tried, mut said) = (0, Vec::new());
        for n in 0..1_440 {
            let now = began + Duration::from_millis(500) * n;
            if retry.is_due(now) {
                n_tried += 1;
                let has_failed = n < 1_200;
                if retry.note(has_failed, now) {
                    said.push(has_failed);
                }
                if !has_failed {
                    break;
                }
            }
        }
        assert_eq!(n_tried, 11);
        assert_eq!(said, [true, false]);
    }
}
