//! Frees dying cgroups that can be counted and not named.
//!
//! Nothing says which files pin them, so the two rungs that need no names are left: reclaim
//! below the live directories that have memory of dead children, and, with leave, the page
//! cache of the whole node. Live neighbours keep what they have, as in a purge by names: on v1
//! only directories whose living use next to nothing are emptied without leave, on v2 the
//! living are spared. How many went is told by the kernel's count, before and after.

use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use rustix::fs::Access;
use sexton_host::cgroup::MemoryHierarchy;
use sexton_host::cgroup::survey::{Parent, Survey};
use sexton_host::{Host, page_batches};
use sexton_model::census::Hierarchy;
use sexton_model::figures;
use sexton_model::fix::{Leftover, PlannedStep, StepOutcome};
use sexton_model::text::escape;

use super::reclaim::{self, CHUNK_BYTES, NOTHING_V1, lever};
use super::{Aim, Allowance, Tools, drop_caches};
use crate::consent::Consent;

/// Parents that one fix works below; those with most dead memory first.
const MOST_PARENTS: usize = 16;

/// How long CPUs are given to put waiting pages where they can be reclaimed.
const DRAIN: Duration = Duration::from_millis(500);

/// What can be done without names.
pub(crate) struct Parents {
    hierarchy: Hierarchy,
    allowance: Allowance,
    allowed: Vec<Parent>,
    refused: Vec<Parent>,
    /// Those where the kernel has no file to ask it by, or that must not be written.
    n_unable: usize,
}

impl Parents {
    /// Those that may lie above what is aimed at. An aim at nothing in particular, as when only
    /// a unit is known, means all of them: who dies there cannot be told apart.
    pub(crate) fn find(host: &Host, aim: &Aim, allowance: Allowance) -> Option<Self> {
        let memory = MemoryHierarchy::find(host).ok().flatten()?;
        let survey = Survey::take(host, &memory).ok()?;
        let is_aimed_at = |parent: &Parent| {
            aim.is_empty() || aim.leads_through(&memory.path_of(&parent.directory))
        };
        let has_lever = |parent: &Parent| {
            let file = parent.directory.join(lever(memory.hierarchy));
            rustix::fs::access(file, Access::WRITE_OK).is_ok()
        };
        let parents = survey.parents.into_iter().filter(is_aimed_at);
        let (able, unable): (Vec<Parent>, Vec<Parent>) =
            parents.take(MOST_PARENTS).partition(has_lever);
        // The living of v2 are spared one by one; v1 takes from all alike.
        let is_allowed = |parent: &Parent| {
            memory.hierarchy == Hierarchy::V2
                || allowance.siblings
                || parent.living_bytes <= NOTHING_V1
        };
        let (allowed, refused) = able.into_iter().partition(is_allowed);
        Some(Self {
            hierarchy: memory.hierarchy,
            allowance,
            allowed,
            refused,
            n_unable: unable.len(),
        })
    }

    /// What would be done, in order.
    pub(crate) fn plan(&self) -> Vec<PlannedStep> {
        let mut steps = Vec::new();
        steps.extend(self.plan_reclaim());
        steps.push(self.plan_drop_caches());
        steps
    }

    pub(crate) fn plan_drop_caches(&self) -> PlannedStep {
        drop_caches::step(self.allowance)
    }

    pub(crate) fn plan_reclaim(&self) -> Option<PlannedStep> {
        let is_any = self.allowed.len() + self.refused.len() + self.n_unable > 0;
        if !is_any {
            return None;
        }
        let refusal = self.refusal();
        let is_withheld = self.allowed.is_empty();
        Some(PlannedStep {
            title: "reclaim below the parents of dying cgroups".into(),
            changes: self.allowed.iter().map(|one| self.typed(one)).collect(),
            undo: match self.hierarchy {
                Hierarchy::V1 => None,
                Hierarchy::V2 => Some("memory.low of the neighbours is put back at once".into()),
            },
            // Without names there is nothing to predict it from.
            predicted: None,
            withheld: refusal.clone().filter(|_| is_withheld),
            except: refusal.filter(|_| !is_withheld),
        })
    }

    fn typed(&self, parent: &Parent) -> String {
        let directory = place(parent);
        match self.hierarchy {
            Hierarchy::V1 => format!("echo 0 > {directory}/memory.force_empty"),
            Hierarchy::V2 => format!(
                "echo {} > {directory}/memory.reclaim, in parts of {CHUNK_BYTES}",
                parent.orphan_bytes
            ),
        }
    }

    /// Why nothing is done below some of them.
    fn refusal(&self) -> Option<String> {
        let mut reasons = Vec::new();
        if self.n_unable > 0 {
            let file = lever(self.hierarchy);
            reasons.push(format!(
                "{file} of {} of them is missing or read-only",
                self.n_unable
            ));
        }
        if !self.refused.is_empty() {
            let places: Vec<String> = self.refused.iter().take(3).map(place).collect();
            let bytes: u64 = self.refused.iter().map(|one| one.living_bytes).sum();
            reasons.push(format!(
                "live neighbours below {} would lose up to {} of cache; --allow-siblings allows it",
                places.join(", "),
                figures::bytes(bytes)
            ));
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Reclaims below those that may be.
    pub(crate) fn reclaim(
        &self,
        host: &Host,
        _consent: &Consent,
        tools: &mut Tools<'_>,
    ) -> StepOutcome {
        // Reclaim does not write: a dirty page stays. Nor does it find pages that wait on a CPU.
        page_batches::drain(DRAIN);
        rustix::fs::sync();
        let allowed = self.allowed.iter();
        let below = allowed.map(|parent| (&*parent.directory, parent.orphan_bytes));
        reclaim::each_below(host, self.hierarchy, below, tools)
    }

    /// Drops the page cache of the node.
    pub(crate) fn drop_caches(&self, host: &Host, _consent: &Consent) -> StepOutcome {
        drop_caches::drop_all(host)
    }
}

/// What is left of those that cannot be named.
pub(crate) fn left(dying: u64) -> Vec<Leftover> {
    let left = Leftover {
        dying,
        why: "what pins them cannot be seen here: they can be counted and not named".into(),
        frees: "--allow-siblings, then --allow-global; or restart what has their files open".into(),
    };
    (dying > 0).then_some(left).into_iter().collect()
}

fn place(parent: &Parent) -> String {
    escape(parent.directory.as_os_str().as_bytes())
}
