//! The lanes of an index by their names.

use sexton_model::fact::FactKind;
use sexton_model::fact::show::Group;
use sexton_model::subject::Subject;

use super::builder::Index;
use super::events::EventList;
use super::pyramid::Pyramid;
use super::table::{CORE_SENSOR, LaneKind, LaneUnit};

/// What a lane is.
#[derive(Debug, Clone)]
pub(crate) struct Lane<'a> {
    pub(crate) id: String,
    pub(crate) group: Group,
    pub(crate) label: String,
    pub(crate) unit: LaneUnit,
    /// A counter is shown by how fast it grew.
    pub(crate) is_per_second: bool,
    pub(crate) kind: LaneKind,
    pub(crate) subject: Option<Subject>,
    pub(crate) about: &'static str,
    /// Whose blindness leaves it empty.
    pub(crate) sensors: &'static [&'static str],
    pub(crate) content: Content<'a>,
}

/// What a lane shows; `None` when nothing was seen of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content<'a> {
    Values(Option<&'a Pyramid>),
    Events(Option<&'a EventList>),
}

impl Index {
    /// All lanes, in the order in which they are shown.
    pub(crate) fn lanes(&self) -> Vec<Lane<'_>> {
        let mut lanes: Vec<Lane<'_>> = Vec::new();
        for (spec, pyramid) in self.series() {
            let series = spec.series;
            lanes.push(Lane {
                id: series.id.to_owned(),
                group: series.group,
                label: series.label.to_owned(),
                unit: spec.fact.measure.into(),
                is_per_second: spec.fact.kind == FactKind::Counter,
                kind: series.draw.into(),
                subject: None,
                about: spec.fact.help,
                sensors: std::slice::from_ref(&series.sensor),
                content: Content::Values(pyramid),
            });
        }
        for (spec, list) in self.events() {
            lanes.push(Lane {
                id: spec.id.to_owned(),
                group: spec.group,
                label: spec.label.to_owned(),
                unit: LaneUnit::Events,
                is_per_second: false,
                kind: LaneKind::Events,
                subject: None,
                about: spec.about,
                sensors: spec.sensors,
                content: Content::Events(list),
            });
        }
        for (number, core) in self.cores().iter() {
            lanes.push(of_core(number, Group::Kernel, &core.kernel));
            lanes.push(of_core(number, Group::Cores, &core.busy));
        }
        lanes.sort_by_key(|lane| lane.group);
        lanes
    }
}

fn of_core(number: u32, group: Group, pyramid: &Pyramid) -> Lane<'_> {
    let (id, label, about) = match group {
        Group::Kernel => (
            format!("kernel.{number}"),
            format!("core {number}, in the kernel"),
            "part of the core's time in the kernel, interrupts included",
        ),
        _ => (
            format!("cores.{number}"),
            format!("core {number}, busy"),
            "part of the core's time that was not idle",
        ),
    };
    Lane {
        id,
        group,
        label,
        unit: LaneUnit::Ratio,
        is_per_second: false,
        kind: LaneKind::Heat,
        subject: Some(Subject::cpu(number)),
        about,
        sensors: &[CORE_SENSOR],
        content: Content::Values((!pyramid.is_empty()).then_some(pyramid)),
    }
}
