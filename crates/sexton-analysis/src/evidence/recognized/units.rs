//! What signatures and deployment profiles say of the files of units: of the last look at them,
//! because a unit is judged by what else is on the node.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use sexton_model::fact::unit::{UNIT_CONTEXT, UNIT_FILE, UNIT_SHAPE, UnitFile, UnitShape};
use sexton_model::moment::Moment;
use sexton_model::payload::Payload;
use sexton_model::record::Record;
use sexton_model::timeline::Timeline;
use sexton_signatures::Signatures;
use sexton_signatures::units::assessed::{Assessed, Assessment, Offender};
use sexton_signatures::units::node::Node;

use super::with;

/// What is said of the units of a recording.
pub(super) struct Units {
    /// When their files were last looked at.
    at: Moment,
    assessed: Assessed,
}

impl Units {
    /// `None` where nothing is to be matched: no sensor looked, or an older sexton did, which
    /// recorded what its own signatures said.
    pub(super) fn of(seen: &dyn Timeline, signatures: &Signatures) -> Option<Self> {
        let shapes = seen.of(&UNIT_SHAPE.fact);
        let shapes = shapes.filter_map(|record| Some((record.at, record.says(&UNIT_SHAPE)?)));
        let last = shapes.max_by(|(at, a), (other, b)| at.cmp(other).then_with(|| order(*a, *b)));
        let (at, shape) = last?;
        let start = shape.start.as_deref()?;
        let mut units: BTreeMap<&str, &UnitFile> = BTreeMap::new();
        for record in seen.of(&UNIT_FILE.fact).filter(|record| record.at == at) {
            let Some(file) = record.says(&UNIT_FILE) else {
                continue;
            };
            let known = units.entry(&record.subject.name).or_insert(file);
            if order(*known, file).is_lt() {
                *known = file;
            }
        }
        let context = seen.of(&UNIT_CONTEXT.fact);
        let context = context.filter(|record| record.at == at);
        let context = context.filter_map(|record| record.says(&UNIT_CONTEXT));
        let mut node = Node::new(start, units, context);
        let given = shape.shape.as_deref();
        let assessed = signatures.units.assess(&mut node, given);
        Some(Self { at, assessed })
    }

    /// A record of the last look, with what is said of it.
    pub(super) fn recognize(&self, record: &Record) -> Option<Record> {
        if record.at != self.at {
            return None;
        }
        let shape = self.assessed.shape.as_ref();
        if let Some(seen) = record.says(&UNIT_SHAPE) {
            let says = UnitShape {
                shape: shape.map(|(name, _)| name.clone()),
                why: shape.map(|(_, why)| why.clone()),
                missing: self.assessed.missing.clone(),
                ..seen.clone()
            };
            return Some(with(record, says));
        }
        let mut file = record.says(&UNIT_FILE)?.clone();
        let found = self.assessed.units.get(&*record.subject.name)?;
        file.shape = shape.map(|(name, _)| name.clone());
        fill(&mut file, found);
        Some(with(record, file))
    }
}

/// Any order, so that of two records of one moment the same is taken however they come.
fn order(a: &dyn Payload, b: &dyn Payload) -> Ordering {
    a.fields().cmp(&b.fields())
}

fn fill(file: &mut UnitFile, found: &Assessment) {
    if let Some((role, shape, why)) = &found.role {
        file.role = Some(role.name().to_owned());
        file.role_shape = Some(shape.clone());
        file.role_why = Some(why.clone());
    }
    if let Some(offender) = &found.offender {
        fill_offender(file, offender);
    }
}

fn fill_offender(file: &mut UnitFile, offender: &Offender) {
    file.offender = Some(offender.slug.clone());
    file.offender_why = Some(offender.why.clone());
    file.offender_evidence = offender.evidence.clone();
    file.offender_veto = offender.veto.clone();
    file.offender_risk = Some(offender.risk.name().to_owned());
    file.offender_action = Some(offender.action.name().to_owned());
    file.offender_unsure = offender.is_unsure.then_some(true);
    file.offender_unknown = offender.unknown.clone();
    file.offender_triggers = offender.triggers.clone();
    file.offender_source = Some(offender.source.clone());
}
