//! A fix where dying cgroups can be counted and not named: the source is stopped all the same,
//! and what it left is freed below its parents.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use sexton_model::fix::{FixReport, Plan, PlannedStep, StepOutcome, StepReport};
use sexton_model::gap::Gap;

use super::{Fix, Source, while_it_frees, withheld};
use crate::consent::Consent;
use crate::journal::Journal;
use crate::purge::Tools;
use crate::purge::by_parent::{self, Parents};
use crate::strain::Strain;

/// Fewer than this on a whole node are ordinary, and not worth a step: twice what a boot leaves.
const ORDINARY: u64 = 30;

impl Fix<'_> {
    /// What would be done, given how many there are on the node.
    pub(super) fn plan_counted(&self, dying: Option<u64>) -> Plan {
        let mut steps: Vec<PlannedStep> = self.sources.iter().map(Source::plan).collect();
        let dying = dying.filter(|n| *n >= ORDINARY);
        if dying.is_some() {
            let parents = self.parents();
            steps.extend(parents.iter().flat_map(Parents::plan));
        }
        let mut plan = Plan {
            steps,
            dying: dying.unwrap_or(0),
            advice: self.advice.clone(),
            left: Vec::new(),
        };
        if plan.is_empty() {
            plan.left = by_parent::left(plan.dying);
        }
        plan
    }

    fn parents(&self) -> Option<Parents> {
        if self.aim.is_off() {
            return None;
        }
        Parents::find(self.host, &self.aim, self.allowance)
    }

    /// Frees what can be freed without names.
    pub(super) fn purge_counted(
        &mut self,
        consent: &Consent,
        journal: &mut Journal,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&str),
        report: &mut FixReport,
    ) -> Result<(), Gap> {
        if self.aim.is_off() {
            return Ok(());
        }
        let Some(before) = report.before else {
            report
                .steps
                .push(withheld("dying cgroups cannot even be counted here"));
            return Ok(());
        };
        if before < ORDINARY {
            return Ok(());
        }
        let mut tools = Tools {
            journal,
            strain: &mut Strain::begin(self.host),
            stop,
            tell,
        };
        for rung in [Rung::Reclaim, Rung::DropCaches] {
            while_it_frees(&mut tools, report, |tools| {
                self.climb_counted(rung, consent, tools)
            })?;
        }
        Ok(())
    }

    /// One climb of one rung; `None` when there is nothing for it.
    fn climb_counted(
        &mut self,
        rung: Rung,
        consent: &Consent,
        tools: &mut Tools<'_>,
    ) -> Result<Option<StepReport>, Gap> {
        let before = self.dying()?;
        let Some(parents) = self.parents().filter(|_| before >= ORDINARY) else {
            return Ok(None);
        };
        let Some(planned) = rung.plan(&parents) else {
            return Ok(None);
        };
        let began = Instant::now();
        let outcome = match &planned.withheld {
            Some(why) => StepOutcome::Withheld(why.clone()),
            None => {
                (tools.tell)(&planned.title);
                match rung {
                    Rung::Reclaim => parents.reclaim(self.host, consent, tools),
                    Rung::DropCaches => parents.drop_caches(self.host, consent),
                }
            }
        };
        self.climbed(planned, outcome, (before, began), tools.stop)
            .map(Some)
    }
}

/// What can be done without names, gentlest first.
#[derive(Debug, Clone, Copy)]
enum Rung {
    Reclaim,
    DropCaches,
}

impl Rung {
    fn plan(self, parents: &Parents) -> Option<PlannedStep> {
        match self {
            Self::Reclaim => parents.plan_reclaim(),
            Self::DropCaches => Some(parents.plan_drop_caches()),
        }
    }
}
