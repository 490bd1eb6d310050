//! A fix from beginning to end: stop the source, purge what it left, look again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sexton_host::Host;
use sexton_model::census::{Census, Method};
use sexton_model::fix::{Advice, FixReport, Plan, PlannedStep, StepOutcome, StepReport};
use sexton_model::gap::{Gap, Why};

use crate::consent::Consent;
use crate::journal::Journal;
use crate::purge::{ASKED_TO_STOP, Aim, Allowance, Ground, LADDER, Rung, Tools, leftovers};
use crate::source::{Container, How, Unit};
use crate::strain::Strain;

/// How often the count is looked at while the kernel lets go: it does so in its own time.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// So many looks alike and the kernel is done.
const LOOKS_ALIKE: u32 = 4;

/// The longest wait for the kernel after one step.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// A rung is climbed again while it frees something, but not for ever: a leak that goes on
/// would keep us busy.
const MOST_CLIMBS: u32 = 3;

/// How long to watch at the end whether they still come.
const WATCH: Duration = Duration::from_secs(2);

/// More of the dying ones than this left over makes a reboot worth its price.
const REBOOT_SHARE: f64 = 0.1;

/// Sees the memory cgroups of the node.
pub trait Eyes {
    /// Takes a census.
    fn census(&mut self) -> Result<Census, Gap>;
}

/// What makes the trouble.
#[derive(Debug, Clone)]
pub enum Source {
    /// A unit, and how it is stopped.
    Unit(Unit, How),
    /// A container.
    Container(Container),
}

impl Source {
    fn plan(&self) -> PlannedStep {
        match self {
            Self::Unit(unit, how) => unit.plan(*how),
            Self::Container(container) => container.plan(),
        }
    }

    /// Whether it is still there to be stopped; it may be gone since the plan was made.
    fn still_holds(&self) -> bool {
        match self {
            Self::Unit(unit, _) => matches!(Unit::look(&unit.name), Ok(Some(_))),
            Self::Container(container) => {
                matches!(
                    Container::look(&container.runtime, &container.id),
                    Ok(Some(_))
                )
            }
        }
    }

    fn stop(&self, consent: &Consent, journal: &mut Journal) -> StepOutcome {
        if !self.still_holds() {
            return StepOutcome::NotNeeded("it is no longer there".into());
        }
        let stopped = match self {
            Self::Unit(unit, how) => unit.stop(*how, consent, journal),
            Self::Container(container) => container.stop(consent, journal),
        };
        match stopped {
            Ok(()) => StepOutcome::Done,
            Err(error) => StepOutcome::Failed(error.chain()),
        }
    }
}

/// A fix of one trouble.
pub struct Fix<'a> {
    /// The node.
    pub host: &'a Host,
    /// Counts what is to be freed.
    pub eyes: &'a mut dyn Eyes,
    /// What makes the trouble, to be stopped first.
    pub sources: Vec<Source>,
    /// What it left.
    pub aim: Aim,
    /// How far to go.
    pub allowance: Allowance,
    /// What else to tell the person.
    pub advice: Vec<Advice>,
}

impl Fix<'_> {
    /// What would be done. Changes nothing.
    pub fn plan(&mut self) -> Result<Plan, Gap> {
        let census = self.census()?;
        let ground = Ground::new(self.host, &census, &self.aim, self.allowance);
        let mut steps: Vec<PlannedStep> = self.sources.iter().map(Source::plan).collect();
        if ground.stock.len() > 0 {
            steps.extend(LADDER.iter().filter_map(|rung| (rung.plan)(&ground)));
        }
        let mut plan = Plan {
            steps,
            dying: ground.stock.len(),
            advice: self.advice.clone(),
            left: Vec::new(),
        };
        if plan.is_empty() {
            plan.left = leftovers(self.host, &ground.stock);
        }
        Ok(plan)
    }

    /// Does it.
    pub fn carry_out(
        &mut self,
        consent: &Consent,
        journal: &mut Journal,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<FixReport, Gap> {
        let before = self.dying()?;
        let mut report = FixReport {
            before: Some(before),
            ..FixReport::default()
        };
        let is_stopped = self.stop_sources(consent, journal, tell, &mut report);
        match is_stopped {
            true => self.purge(consent, journal, stop, tell, &mut report)?,
            false => report
                .steps
                .push(withheld("its source could not be stopped")),
        }
        self.look_back(stop, tell, &mut report)?;
        report.undo_file = journal.path().map(|path| path.display().to_string());
        Ok(report)
    }

    /// Whether what makes the trouble is stopped.
    fn stop_sources(
        &self,
        consent: &Consent,
        journal: &mut Journal,
        tell: &mut dyn FnMut(&str),
        report: &mut FixReport,
    ) -> bool {
        for source in &self.sources {
            let title = source.plan().title;
            tell(&title);
            let began = Instant::now();
            let outcome = source.stop(consent, journal);
            report.steps.push(StepReport {
                title,
                outcome,
                except: None,
                predicted: None,
                before: None,
                after: None,
                took: began.elapsed(),
            });
        }
        let failed = |step: &StepReport| matches!(step.outcome, StepOutcome::Failed(_));
        !report.steps.iter().any(failed)
    }

    fn purge(
        &mut self,
        consent: &Consent,
        journal: &mut Journal,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&str),
        report: &mut FixReport,
    ) -> Result<(), Gap> {
        let mut strain = Strain::begin(self.host);
        for rung in LADDER {
            for _ in 0..MOST_CLIMBS {
                let mut tools = Tools {
                    journal,
                    strain: &mut strain,
                    stop,
                    tell,
                };
                let Some(step) = self.climb(rung, consent, &mut tools)? else {
                    break;
                };
                let is_done = matches!(step.outcome, StepOutcome::Done);
                let has_freed = step.after < step.before;
                report.steps.push(step);
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                if !is_done || !has_freed {
                    break;
                }
            }
        }
        Ok(())
    }

    /// One climb of one rung; `None` when there is nothing for it.
    fn climb(
        &mut self,
        rung: &Rung,
        consent: &Consent,
        tools: &mut Tools<'_>,
    ) -> Result<Option<StepReport>, Gap> {
        let census = self.census()?;
        let ground = Ground::new(self.host, &census, &self.aim, self.allowance);
        let before = ground.stock.len();
        let Some(planned) = (before > 0).then(|| (rung.plan)(&ground)).flatten() else {
            return Ok(None);
        };
        let began = Instant::now();
        let outcome = match (&planned.withheld, planned.predicted) {
            (Some(why), _) => StepOutcome::Withheld(why.clone()),
            (None, Some(0)) => StepOutcome::NotNeeded("it would free none of what is left".into()),
            (None, _) => {
                (tools.tell)(&planned.title);
                (rung.climb)(&ground, consent, tools)
            }
        };
        let acted = matches!(outcome, StepOutcome::Done | StepOutcome::Stopped(_));
        let after = match acted {
            true => self.settle(before, tools.stop)?,
            false => before,
        };
        Ok(Some(StepReport {
            title: planned.title,
            outcome,
            except: planned.except,
            predicted: planned.predicted,
            before: Some(before),
            after: Some(after),
            took: began.elapsed(),
        }))
    }

    /// Waits until the kernel has let go of what it will.
    fn settle(&mut self, before: u64, stop: &AtomicBool) -> Result<u64, Gap> {
        let until = Instant::now() + LONGEST_WAIT;
        let (mut last, mut n_alike) = (before, 0);
        while n_alike < LOOKS_ALIKE && Instant::now() < until {
            let now = self.dying()?;
            if now == 0 || stop.load(Ordering::Relaxed) {
                return Ok(now);
            }
            // Where more come meanwhile, it is never alike: then it is enough that none goes.
            n_alike = if now >= last { n_alike + 1 } else { 0 };
            last = now;
            thread::sleep(LOOK_EVERY);
        }
        Ok(last)
    }

    /// What it came to, what is left, and whether they still come.
    fn look_back(
        &mut self,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&str),
        report: &mut FixReport,
    ) -> Result<(), Gap> {
        let first = self.dying()?;
        if !stop.load(Ordering::Relaxed) {
            tell("watching whether they still come");
            thread::sleep(WATCH);
        }
        let census = self.census()?;
        let ground = Ground::new(self.host, &census, &self.aim, self.allowance);
        let after = ground.stock.len();
        report.after = Some(after);
        report.left = leftovers(self.host, &ground.stock);
        if after > first {
            report.still_leaking = Some(format!(
                "{} more came within {} s: what makes them still runs",
                after - first,
                WATCH.as_secs()
            ));
        }
        let before = report.before.unwrap_or(after);
        report.reboot_advised = after > 0 && after as f64 > before as f64 * REBOOT_SHARE;
        if stop.load(Ordering::Relaxed) {
            report.steps.push(withheld(ASKED_TO_STOP));
        }
        Ok(())
    }

    fn dying(&mut self) -> Result<u64, Gap> {
        let census = self.census()?;
        Ok(self.aim.dying(&census).len() as u64)
    }

    /// A census that names them: without names nothing can be aimed at.
    fn census(&mut self) -> Result<Census, Gap> {
        let census = self.eyes.census()?;
        match census.method {
            Method::BpfWalk => Ok(census),
            _ => Err(Gap::new(
                "memcg",
                Why::Unsupported,
                "dying cgroups can be counted here but not named, so nothing can be aimed at",
            )
            .with_remedy("sexton doctor")),
        }
    }
}

fn withheld(why: &str) -> StepReport {
    StepReport {
        title: "purge what it left".into(),
        outcome: StepOutcome::Withheld(why.into()),
        except: None,
        predicted: None,
        before: None,
        after: None,
        took: Duration::ZERO,
    }
}
