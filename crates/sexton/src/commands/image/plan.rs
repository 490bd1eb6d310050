//! What a fix changes, unit by unit.

use std::collections::BTreeSet;

use sexton_analysis::rules::ENDLESS;
use sexton_model::audit::{AuditUnit, UnitVerdict};
use sexton_remedy::image::{self, ImagePlan};
use sexton_report::audit::BakeStep;

use super::judged::Judged;

/// What is masked with all that triggers it, what is only bounded because files cannot tell
/// whether it is wanted, and what is left on because another unit needs it.
pub(super) fn plan(judged: &Judged) -> (ImagePlan, Vec<BakeStep>) {
    let mut steps = Vec::new();
    let mut seen = BTreeSet::new();
    for unit in judged.audit.units.iter().filter(|unit| unit.is_on) {
        let withheld = withheld(judged, &unit.name);
        if unit.verdict == UnitVerdict::Unwanted {
            mask(judged, unit, &mut seen, &mut steps);
        } else if is_endless(judged, unit) {
            steps.push(BakeStep::Bound {
                unit: unit.name.clone(),
                why: withheld.unwrap_or_else(|| unit.why.clone()),
                drop_in: image::BOUND.to_owned(),
            });
        } else if let Some(why) = withheld {
            steps.push(BakeStep::Withhold {
                unit: unit.name.clone(),
                why,
            });
        }
    }
    (changes(judged, &steps), steps)
}

fn changes(judged: &Judged, steps: &[BakeStep]) -> ImagePlan {
    let mut plan = ImagePlan::default();
    for step in steps {
        match step {
            BakeStep::Mask { unit, .. } => plan.mask.push(unit.clone()),
            BakeStep::Bound { unit, .. } => plan.bound.push(unit.clone()),
            BakeStep::Withhold { .. } => {}
        }
    }
    let masked: BTreeSet<&String> = plan.mask.iter().collect();
    let links = judged.survey.set.wants().iter();
    let ours = links.filter(|want| masked.contains(&want.unit) && want.link.starts_with("/etc"));
    plan.links = ours.map(|want| want.link.clone()).collect();
    plan
}

/// A unit and what is to be masked with it, each once.
fn mask(judged: &Judged, unit: &AuditUnit, seen: &mut BTreeSet<String>, steps: &mut Vec<BakeStep>) {
    let surveyed = judged.survey.find(&unit.name);
    let names = surveyed.map_or_else(Vec::new, |found| found.masked_together(&judged.survey.set));
    for name in names {
        if withheld(judged, &name).is_some() || !seen.insert(name.clone()) {
            continue;
        }
        let why = match name == unit.name {
            true => unit.why.clone(),
            false => format!("it starts {}", unit.name),
        };
        steps.push(BakeStep::Mask { unit: name, why });
    }
}

/// The unit that stays on and fails without this one, in words.
fn withheld(judged: &Judged, unit: &str) -> Option<String> {
    let found = judged.survey.find(unit)?;
    found.withheld.as_ref().map(|need| need.text())
}

/// Whether a rule says that it loops without end, and nothing says that it is needed.
fn is_endless(judged: &Judged, unit: &AuditUnit) -> bool {
    let known = judged
        .survey
        .find(&unit.name)
        .and_then(|surveyed| surveyed.offender.as_ref());
    let is_suspect = known.is_some() || unit.verdict == UnitVerdict::Broken;
    unit.codes.contains(&ENDLESS.code) && is_suspect
}
