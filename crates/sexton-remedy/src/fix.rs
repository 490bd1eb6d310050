//! A fix from beginning to end: stop the source, purge what it left, look again.

mod counted;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sexton_host::Host;
use sexton_model::census::{Census, Method};
use sexton_model::fix::{Advice, FixReport, Plan, PlannedStep, StepOutcome, StepReport};
use sexton_model::gap::{Gap, Why};

use crate::consent::Consent;
use crate::journal::Journal;
use crate::purge::{
    ASKED_TO_STOP, Aim, Allowance, LADDER, Rung, Scope, Tools, by_parent, leftovers,
};
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

/// Fewer than these never do, whatever they are a share of: 20 kB each with two CPUs, 200 kB with
/// 96, and a walk of all of them takes milliseconds.
///
/// Chosen: what MCG003 calls too many.
const REBOOT_LEAST: u64 = 1_000;

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
    /// A unit that only stopping would end, and why that waits for a person's word.
    Withheld(Unit, String),
}

impl Source {
    fn plan(&self) -> PlannedStep {
        match self {
            Self::Unit(unit, how) => unit.plan(*how),
            Self::Container(container) => container.plan(),
            Self::Withheld(unit, why) => PlannedStep {
                withheld: Some(why.clone()),
                ..unit.plan(How::Mask)
            },
        }
    }

    /// Whether it is still there to be stopped; it may be gone since the plan was made.
    fn still_holds(&self) -> bool {
        match self {
            Self::Unit(unit, _) | Self::Withheld(unit, _) => {
                matches!(Unit::look(&unit.name), Ok(Some(_)))
            }
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
            Self::Withheld(_, why) => return StepOutcome::Withheld(why.clone()),
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
        let census = match self.look()? {
            Sight::Named(census) => census,
            Sight::Counted(dying) => return Ok(self.plan_counted(dying)),
        };
        let scope = Scope::new(self.host, &census, &self.aim, self.allowance);
        let mut steps: Vec<PlannedStep> = self.sources.iter().map(Source::plan).collect();
        if scope.stock.len() > 0 {
            steps.extend(LADDER.iter().filter_map(|rung| (rung.plan)(&scope)));
        }
        let mut plan = Plan {
            steps,
            dying: scope.stock.len(),
            advice: self.advice.clone(),
            left: Vec::new(),
        };
        if plan.is_empty() {
            plan.left = leftovers(self.host, &scope.stock);
        }
        Ok(plan)
    }

    /// Does it. Once anything may have been changed there is a report of it, also when dying cgroups
    /// cannot be looked at any more: it says how to take it back.
    pub fn carry_out(
        &mut self,
        consent: &Consent,
        journal: &mut Journal,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<FixReport, Gap> {
        let sight = self.look()?;
        let is_named = matches!(sight, Sight::Named(_));
        let mut report = FixReport {
            before: self.n_dying(&sight),
            ..FixReport::default()
        };
        let is_stopped = self.stop_sources(consent, journal, tell, &mut report);
        let purged = match (is_stopped, is_named) {
            (true, true) => self.purge(consent, journal, stop, tell, &mut report),
            (true, false) => self.purge_counted(consent, journal, stop, tell, &mut report),
            (false, _) => {
                let why = "its source could not be stopped";
                report.steps.push(withheld(why));
                Ok(())
            }
        };
        let looked = purged.and_then(|()| self.look_back(stop, tell, &mut report));
        if let Err(gap) = looked {
            report.steps.push(unseen(&gap));
        }
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
        let mut tools = Tools {
            journal,
            strain: &mut Strain::begin(self.host),
            stop,
            tell,
        };
        for rung in LADDER {
            while_it_frees(&mut tools, report, |tools| self.climb(rung, consent, tools))?;
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
        let scope = Scope::new(self.host, &census, &self.aim, self.allowance);
        let before = scope.stock.len();
        let Some(planned) = (before > 0).then(|| (rung.plan)(&scope)).flatten() else {
            return Ok(None);
        };
        let began = Instant::now();
        let outcome = match (&planned.withheld, planned.predicted) {
            (Some(why), _) => StepOutcome::Withheld(why.clone()),
            (None, Some(0)) => StepOutcome::NotNeeded("it would free none of what is left".into()),
            (None, _) => {
                (tools.tell)(&planned.title);
                (rung.climb)(&scope, consent, tools)
            }
        };
        self.climbed(planned, outcome, (before, began), tools.stop)
            .map(Some)
    }

    /// What a climb came to, once the kernel frees no more.
    fn climbed(
        &mut self,
        planned: PlannedStep,
        outcome: StepOutcome,
        (before, began): (u64, Instant),
        stop: &AtomicBool,
    ) -> Result<StepReport, Gap> {
        let acted = matches!(outcome, StepOutcome::Done | StepOutcome::Stopped(_));
        let after = match acted {
            true => self.settle(before, stop)?,
            false => before,
        };
        Ok(StepReport {
            title: planned.title,
            outcome,
            except: planned.except,
            predicted: planned.predicted,
            before: Some(before),
            after: Some(after),
            took: began.elapsed(),
        })
    }

    /// Waits until the kernel frees no more.
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
        let sight = self.look()?;
        let first = self.n_dying(&sight);
        if !stop.load(Ordering::Relaxed) {
            tell("watching whether they still come");
            thread::sleep(WATCH);
        }
        let sight = self.look()?;
        report.after = self.n_dying(&sight);
        report.left = match &sight {
            Sight::Named(census) => {
                let scope = Scope::new(self.host, census, &self.aim, self.allowance);
                leftovers(self.host, &scope.stock)
            }
            Sight::Counted(dying) => by_parent::left(dying.unwrap_or(0)),
        };
        if let (Some(first), Some(after)) = (first, report.after)
            && after > first
        {
            report.still_leaking = Some(format!(
                "{} more came within {} s: what makes them still runs",
                after - first,
                WATCH.as_secs()
            ));
        }
        report.reboot_advised = is_reboot_due(report);
        if stop.load(Ordering::Relaxed) {
            report.steps.push(withheld(ASKED_TO_STOP));
        }
        Ok(())
    }

    fn dying(&mut self) -> Result<u64, Gap> {
        let sight = self.look()?;
        self.n_dying(&sight).ok_or_else(uncounted)
    }

    fn n_dying(&self, sight: &Sight) -> Option<u64> {
        match sight {
            Sight::Named(census) => Some(self.aim.dying(census).len() as u64),
            Sight::Counted(dying) => *dying,
        }
    }

    /// Looks at them. What is not seen does not keep a source from being stopped.
    fn look(&mut self) -> Result<Sight, Gap> {
        match self.eyes.census() {
            Ok(census) if census.method == Method::BpfWalk => Ok(Sight::Named(Box::new(census))),
            Ok(census) => Ok(Sight::Counted(census.counts.dying)),
            Err(_) if !self.sources.is_empty() => Ok(Sight::Counted(None)),
            Err(gap) => Err(gap),
        }
    }

    /// A census that names them.
    fn census(&mut self) -> Result<Census, Gap> {
        match self.look()? {
            Sight::Named(census) => Ok(*census),
            Sight::Counted(_) => Err(uncounted()),
        }
    }
}

/// How dying cgroups are seen.
enum Sight {
    /// Each by its name, with what pins it.
    Named(Box<Census>),
    /// By a count of the whole node, if even that.
    Counted(Option<u64>),
}

fn uncounted() -> Gap {
    let text = "dying cgroups could not be looked at again while the fix was under way";
    Gap::new("memcg", Why::Unsupported, text).with_remedy("sexton doctor")
}

/// Whether a reboot is worth its price: the source is stopped, much is left, and nothing that
/// waits for leave would free it.
fn is_reboot_due(report: &FixReport) -> bool {
    let (Some(before), Some(after)) = (report.before, report.after) else {
        return false;
    };
    let waits = |step: &StepReport| {
        matches!(step.outcome, StepOutcome::Withheld(_)) || step.except.is_some()
    };
    let is_much = after >= REBOOT_LEAST && after as f64 > before as f64 * REBOOT_SHARE;
    is_much && report.still_leaking.is_none() && !report.steps.iter().any(waits)
}

fn withheld(why: &str) -> StepReport {
    step("purge what it left", StepOutcome::Withheld(why.into()))
}

/// Nothing can be said of what is left.
fn unseen(gap: &Gap) -> StepReport {
    step(
        "count dying memory cgroups again",
        StepOutcome::Failed(gap.text.clone()),
    )
}

fn step(title: &str, outcome: StepOutcome) -> StepReport {
    StepReport {
        title: title.into(),
        outcome,
        except: None,
        predicted: None,
        before: None,
        after: None,
        took: Duration::ZERO,
    }
}

/// Climbs a rung again and again while that frees something.
fn while_it_frees(
    tools: &mut Tools<'_>,
    report: &mut FixReport,
    mut climb: impl FnMut(&mut Tools<'_>) -> Result<Option<StepReport>, Gap>,
) -> Result<(), Gap> {
    for _ in 0..MOST_CLIMBS {
        if tools.stop.load(Ordering::Relaxed) {
            break;
        }
        let Some(step) = climb(tools)? else {
            break;
        };
        let has_freed = step.after < step.before;
        let is_done = matches!(step.outcome, StepOutcome::Done);
        report.steps.push(step);
        if !is_done || !has_freed {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::path::Path;

    use sexton_model::census::Hierarchy;

    use super::*;
    use crate::journal::Change;

    #[test]
    fn a_reboot_is_for_much_that_nothing_else_frees() {
        let check = |before, after, expected| {
            let report = FixReport {
                before: Some(before),
                after: Some(after),
                ..FixReport::default()
            };
            assert_eq!(is_reboot_due(&report), expected, "{before} {after}");
        };
        check(70_000, 70_000, true);
        check(70_000, 5_000, false);
        // A share of little is little.
        check(237, 24, false);
        check(900, 900, false);
        check(1_000, 1_000, true);
    }

    /// Answers of one census after the other; then none.
    struct Answers(VecDeque<Result<Census, Gap>>);

    impl Eyes for Answers {
        fn census(&mut self) -> Result<Census, Gap> {
            let blind = || Err(Gap::new("memcg", Why::Unsupported, "the walk was ended"));
            self.0.pop_front().unwrap_or_else(blind)
        }
    }

    #[test]
    fn what_was_done_before_a_census_failed_is_reported_with_its_undo_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let host = Host::live().expect("a mount table");
        let consent = Consent::given_by_the_user();
        let stop = AtomicBool::new(false);
        let report = |answers: Vec<Result<Census, Gap>>| {
            let mut journal = Journal::new(&folder.path().join("undo"));
            let change = Change::NewFile {
                path: "/etc/a".into(),
                reload: false,
            };
            journal.note(&change).expect("it is written");
            let mut fix = Fix {
                host: &host,
                eyes: &mut Answers(answers.into()),
                sources: Vec::new(),
                aim: Aim::off(),
                allowance: Allowance::default(),
                advice: Vec::new(),
            };
            fix.carry_out(&consent, &mut journal, &stop, &mut |_| ())
        };
        report(Vec::new()).expect_err("nothing was begun");
        let census = Census::new(Method::BpfWalk, Hierarchy::V2, 4096);
        let report = report(vec![Ok(census)]).expect("a report");
        let last = report.steps.last().expect("a step");
        assert_eq!(
            last.outcome,
            StepOutcome::Failed("the walk was ended".into())
        );
        let undo_file = report.undo_file.expect("an undo file");
        assert!(Path::new(&undo_file).exists(), "{undo_file}");
    }
}
