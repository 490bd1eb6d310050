//! What signatures and deployment profiles say of the units of a node.

use std::collections::{BTreeMap, BTreeSet};

use sexton_model::glob;
use sexton_model::unit_name;

use super::need::{self, Need};
use super::node::Node;
use super::{Action, Detected, Risk, Role, Signatures};

/// The deployment profile of every system: what it needs, a signature may still accuse.
const BASE: &str = "base";

/// What a signature says of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offender {
    /// The name of the signature's file.
    pub slug: String,
    /// What the unit does where it has no use.
    pub why: String,
    /// What speaks for it here.
    pub evidence: Vec<String>,
    /// What forbids to call it unwanted.
    pub veto: Option<String>,
    /// What masking may cost.
    pub risk: Risk,
    /// What to do.
    pub action: Action,
    /// Whether it is only suspected, because the purpose of the machine is not known.
    pub is_unsure: bool,
    /// What it asks for and was not looked at: it is only suspected, too.
    pub unknown: Option<String>,
    /// What is to be masked with it, of what is there.
    pub triggers: Vec<String>,
    /// Where it is known from.
    pub source: String,
}

/// What is said of one unit.
#[derive(Debug, Clone, Default)]
pub struct Assessment {
    /// What it is to the deployment profile, which of its profiles says so, and why.
    pub role: Option<(Role, String, String)>,
    /// What signatures say.
    pub offender: Option<Offender>,
}

impl Assessment {
    /// Whether it is to be turned off: a signature or the profile says so and nothing forbids.
    fn is_unwanted(&self) -> bool {
        let is_mask =
            |offender: &Offender| offender.veto.is_none() && offender.action == Action::Mask;
        let role = self.role.as_ref();
        let is_must = role.is_some_and(|(role, shape, _)| *role == Role::Must && shape != BASE);
        let by_profile = role.is_some_and(|(role, ..)| *role == Role::Unwanted);
        by_profile || !is_must && self.offender.as_ref().is_some_and(is_mask)
    }

    /// Protects it: what a unit that stays on needs is not unwanted.
    pub fn withhold(&mut self, need: &Need) {
        if let Some(offender) = &mut self.offender {
            offender.veto = Some(need.text());
        }
        if let Some((role, _, why)) = &mut self.role
            && *role == Role::Unwanted
        {
            *role = Role::May;
            *why = format!("often unwanted, but {}", need.text());
        }
    }
}

/// What is said of a node.
#[derive(Debug, Clone, Default)]
pub struct Assessed {
    /// The shape of the deployment, and why it is thought to be that.
    pub shape: Option<(String, String)>,
    /// Why no shape is named though one seems to fit.
    pub doubt: Option<String>,
    /// Units that the shape needs and that are not on.
    pub missing: Vec<String>,
    /// Of each unit that is on.
    pub units: BTreeMap<String, Assessment>,
    /// Units, on or not, that would be masked, and the units that stay on and fail without them.
    pub withheld: BTreeMap<String, Need>,
}

impl Signatures {
    /// Matches them with a node. A shape that is given is not detected.
    pub fn assess(&self, node: &mut Node<'_>, given: Option<&str>) -> Assessed {
        let (shape, doubt) = match given {
            Some(name) => (Some((name.to_owned(), "it was given".to_owned())), None),
            None => match self.detect(node) {
                Detected::Shape(shape, why) => (Some((shape.name.clone(), why)), None),
                Detected::Doubt(why) => (None, Some(why)),
                Detected::None => (None, None),
            },
        };
        let name = shape.as_ref().map(|(name, _)| name.as_str());
        node.family = name.map_or_else(Vec::new, |name| self.family(name));
        let units = node.units.keys();
        let units = units.map(|unit| ((*unit).to_owned(), self.assess_unit(node, unit)));
        let mut units: BTreeMap<String, Assessment> = units.collect();
        let withheld = withheld(node, &units);
        for (name, need) in &withheld {
            if let Some(unit) = units.get_mut(name) {
                unit.withhold(need);
            }
        }
        Assessed {
            missing: self.missing(node),
            withheld,
            shape,
            doubt,
            units,
        }
    }

    /// What they say of one unit of a node that was assessed, on or not.
    pub fn assess_unit(&self, node: &Node<'_>, unit: &str) -> Assessment {
        let shape = node.family.first();
        let role = shape.and_then(|shape| self.role(shape, unit));
        let role = role.or_else(|| self.role(BASE, unit));
        Assessment {
            role: role.map(|(role, shape, why)| (role, shape.name.clone(), why)),
            offender: self.offender(node, unit),
        }
    }

    /// The first signature that fits, one without a veto before one with.
    fn offender(&self, node: &Node<'_>, unit: &str) -> Option<Offender> {
        let mut found: Vec<Offender> = Vec::new();
        for signature in self.units.iter().filter(|known| known.is_about(unit)) {
            let is_unsure = node.family.is_empty() && !signature.shapes.is_empty();
            let weighed = match is_unsure {
                true => signature.suspect(node),
                false => signature.weigh(node),
            };
            let Some(weighed) = weighed else {
                continue;
            };
            let is_suspect =
                is_unsure || weighed.unknown.is_some() && signature.action == Action::Mask;
            let triggers = signature.triggers.iter();
            found.push(Offender {
                slug: signature.slug.clone(),
                why: signature.why.clone(),
                evidence: weighed.evidence,
                veto: weighed.veto,
                risk: signature.risk,
                action: match is_suspect {
                    true => Action::Bound,
                    false => signature.action,
                },
                is_unsure,
                unknown: weighed.unknown,
                triggers: triggers
                    .filter(|name| node.find(name).is_some())
                    .cloned()
                    .collect(),
                source: signature.source.join("; "),
            });
        }
        found.sort_by_key(|offender| (offender.veto.is_some(), offender.unknown.is_some()));
        found.into_iter().next()
    }

    /// Of which of the shape's groups none is on, of itself and of those it builds on.
    fn missing(&self, node: &Node<'_>) -> Vec<String> {
        let is_on = |pattern: &String| node.units.keys().any(|unit| glob::matches(pattern, unit));
        let groups = node.family.iter().filter_map(|name| self.shape(name));
        groups
            .flat_map(|shape| &shape.one_of)
            .filter(|group| !group.iter().any(is_on))
            .map(|group| group.join(" or "))
            .collect()
    }
}

/// A unit and what is masked with it: what its signature names, and a socket, timer or path of
/// the same name, which fails without it. `is_there` says whether a unit exists and can start.
pub fn masked_together(
    unit: &str,
    offender: Option<&Offender>,
    is_there: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut names = vec![unit.to_owned()];
    names.extend(offender.iter().flat_map(|known| known.triggers.clone()));
    if unit_name::sort(unit) == "service" {
        let stem = unit_name::stem(unit);
        for sort in ["socket", "timer", "path"] {
            let trigger = format!("{stem}.{sort}");
            if is_there(&trigger) && !names.contains(&trigger) {
                names.push(trigger);
            }
        }
    }
    names
}

/// What would be unwanted, or goes with it, and is needed by a unit that stays on.
fn withheld(node: &Node<'_>, units: &BTreeMap<String, Assessment>) -> BTreeMap<String, Need> {
    let is_there = |name: &str| node.find(name).is_some_and(|unit| !unit.is_masked());
    let unwanted: BTreeSet<String> = units
        .iter()
        .filter(|(_, unit)| unit.is_unwanted())
        .flat_map(|(name, unit)| masked_together(name, unit.offender.as_ref(), is_there))
        .collect();
    if unwanted.is_empty() {
        return BTreeMap::new();
    }
    let role = |name: &str| units.get(name)?.role.as_ref().map(|(role, ..)| *role);
    need::withheld(node, &unwanted, |name| role(name) == Some(Role::Must))
}
