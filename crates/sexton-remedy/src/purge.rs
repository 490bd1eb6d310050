//! Has the kernel let go of dying cgroups: a ladder from the gentlest step on, each aimed
//! at the cgroups that the census blames and at nothing else as far as the kernel allows.

mod advise;
mod aim;
pub(crate) mod by_parent;
mod drop_caches;
mod holders;
mod left;
mod reaper;
mod reclaim;
mod stock;

pub use aim::Aim;

pub(crate) use left::leftovers;

use std::sync::atomic::AtomicBool;

use sexton_host::Host;
use sexton_model::census::Census;
use sexton_model::fix::{PlannedStep, StepOutcome};

use crate::consent::Consent;
use crate::journal::Journal;
use crate::strain::Strain;
use stock::Stock;

/// How far a purge may go.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allowance {
    /// Page cache of live neighbours below the same parent may go.
    pub siblings: bool,
    /// Page cache of the whole node may go.
    pub global: bool,
}

/// The rungs, gentlest first.
pub(crate) static LADDER: &[&Rung] = &[
    &advise::RUNG,
    &reclaim::RUNG,
    &reaper::RUNG,
    &drop_caches::RUNG,
];

/// One rung of the ladder.
pub(crate) struct Rung {
    /// What it would do here and how many that frees; `None` when there is nothing for it.
    pub(crate) plan: fn(&Scope<'_>) -> Option<PlannedStep>,
    /// Does it.
    pub(crate) climb: fn(&Scope<'_>, &Consent, &mut Tools<'_>) -> StepOutcome,
}

/// What a rung looks at.
pub(crate) struct Scope<'a> {
    pub(crate) host: &'a Host,
    pub(crate) census: &'a Census,
    pub(crate) stock: Stock<'a>,
    pub(crate) allowance: Allowance,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(host: &'a Host, census: &'a Census, aim: &Aim, allowance: Allowance) -> Self {
        Self {
            host,
            census,
            stock: Stock::take(census, aim),
            allowance,
        }
    }
}

/// What a rung works with.
pub(crate) struct Tools<'a> {
    pub(crate) journal: &'a mut Journal,
    pub(crate) strain: &'a mut Strain,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) tell: &'a mut dyn FnMut(&str),
}

/// What to say when a signal came.
pub(crate) const ASKED_TO_STOP: &str = "a signal asked to stop";
