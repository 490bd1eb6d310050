//! Which findings are cause and effect: one file for each way that evidence meets, and one
//! line here for each pair of rules.
//!
//! Cause runs down the list of rules, so no chain can close into a ring.

mod container_to_pile;
mod cpu002_cpu001;
mod held_net001;
mod hw001_io001;
mod hw001_nic001;
mod hw001_task001;
mod io001_cpu001;
mod io001_task001;
mod lost_krn001;
mod mcg001_cpu002;
mod mem001_job001;
mod mem002_io001;
mod net001_nic001;
mod nic001_job001;
mod oom_to_loop;
mod pile_to_count;
mod same_work;
mod settings_to_loop;
mod task002_lim001;
mod unit_to_container;
mod unit_to_pile;

use sexton_model::diagnosis::{Link, Separation};
use sexton_model::finding::{Confidence, Evidence, Finding};

use crate::case::Case;

/// All pairs of rules that may be cause and effect.
static LINKS: &[&LinkRule] = &[
    &settings_to_loop::UNWANTED,
    &settings_to_loop::UNWANTED_INSIDE,
    &settings_to_loop::ENDLESS,
    &settings_to_loop::ENDLESS_INSIDE,
    &settings_to_loop::CANNOT_START,
    &settings_to_loop::CANNOT_START_INSIDE,
    &oom_to_loop::OF_UNIT,
    &oom_to_loop::OF_FAILED_UNIT,
    &oom_to_loop::OF_CONTAINER,
    &unit_to_container::FROM_LOOP,
    &unit_to_container::FROM_CHURN,
    &unit_to_pile::FROM_LOOP,
    &unit_to_pile::FROM_CHURN,
    &container_to_pile::LINK,
    &pile_to_count::LINK,
    &mem002_io001::LINK,
    &hw001_io001::LINK,
    &hw001_task001::LINK,
    &hw001_nic001::LINK,
    &io001_task001::LINK,
    &io001_cpu001::LINK,
    &task002_lim001::LINK,
    &mcg001_cpu002::LINK,
    &same_work::STORM_SATURATES,
    &same_work::STORM_HAS_CORE,
    &same_work::CHURN_HAS_CORE,
    &same_work::REALTIME_SATURATES,
    &same_work::HOG_HAS_CORE,
    &same_work::HOG_STARVES_POLLING,
    &cpu002_cpu001::LINK,
    &lost_krn001::OF_READER,
    &lost_krn001::OF_REALTIME,
    &lost_krn001::OF_CORE,
    &held_net001::OF_READER,
    &held_net001::OF_REALTIME,
    &held_net001::OF_CORE,
    &held_net001::OF_COMPLAINT,
    &net001_nic001::OF_COMPLAINT,
    &net001_nic001::OF_POLLING,
    &nic001_job001::LINK,
    &mem001_job001::LINK,
];

/// Says whether a finding of one rule causes one of another.
#[derive(Debug)]
pub(crate) struct LinkRule {
    /// The code of what causes.
    pub(crate) cause: &'static str,
    /// The code of what is caused.
    pub(crate) effect: &'static str,
    /// Whether their evidence meets.
    pub(crate) meet: fn(&Case<'_>, &Finding, &Finding) -> Meeting,
}

/// What became of a cause and an effect.
#[derive(Debug)]
pub(crate) enum Meeting {
    /// Their evidence meets.
    Joined(Confidence, Vec<Evidence>),
    /// They look like cause and effect, and are not, or not provably.
    Apart(Vec<Evidence>),
    /// They have nothing to do with each other.
    Strangers,
}

/// Compares every finding with every other that may cause it.
pub(crate) fn find(case: &Case<'_>, findings: &[Finding]) -> (Vec<Link>, Vec<Separation>) {
    let mut links = Vec::new();
    let mut separations = Vec::new();
    for rule in LINKS {
        let of = |code| findings.iter().filter(move |finding| finding.code == code);
        for effect in of(rule.effect) {
            for cause in of(rule.cause) {
                let (cause_id, effect_id) = (cause.id(), effect.id());
                match (rule.meet)(case, cause, effect) {
                    Meeting::Joined(confidence, evidence) => links.push(Link {
                        cause: cause_id,
                        effect: effect_id,
                        confidence: confidence
                            .at_most(cause.confidence)
                            .at_most(effect.confidence),
                        evidence,
                    }),
                    Meeting::Apart(evidence) => separations.push(Separation {
                        cause: cause_id,
                        effect: effect_id,
                        evidence,
                    }),
                    Meeting::Strangers => {}
                }
            }
        }
    }
    (links, separations)
}

#[cfg(test)]
mod tests;
