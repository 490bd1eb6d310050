//! Which facts make which lane of the time line: what their own definitions say, sorted.

use std::sync::LazyLock;

use sexton_model::fact::show::{Draw, MS, Series, Show};
use sexton_model::fact::{self, Fact, Measure, exit, klog, memcg, nic, sexton, unit};

/// How a lane is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LaneKind {
    Heat,
    Line,
    Events,
}

impl From<Draw> for LaneKind {
    fn from(draw: Draw) -> Self {
        match draw {
            Draw::Heat => LaneKind::Heat,
            Draw::Line => LaneKind::Line,
        }
    }
}

/// What its values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LaneUnit {
    Ratio,
    Count,
    Bytes,
    Ns,
    #[serde(rename = "s")]
    Seconds,
    Events,
}

impl From<Measure> for LaneUnit {
    fn from(measure: Measure) -> Self {
        match measure {
            Measure::Count => LaneUnit::Count,
            Measure::Bytes => LaneUnit::Bytes,
            Measure::Nanoseconds => LaneUnit::Ns,
            Measure::Seconds => LaneUnit::Seconds,
            Measure::Ratio => LaneUnit::Ratio,
            Measure::None => LaneUnit::Events,
        }
    }
}

/// A lane of values, of one fact.
pub(super) struct SeriesSpec {
    pub(super) fact: &'static Fact,
    pub(super) series: &'static Series,
}

/// Lanes of values, in the order in which they are shown.
pub(super) static SERIES: LazyLock<Vec<SeriesSpec>> = LazyLock::new(|| {
    let spec = |fact: &'static Fact| match &fact.show {
        Show::Series(series) => Some(SeriesSpec { fact, series }),
        _ => None,
    };
    let mut specs: Vec<SeriesSpec> = fact::all().filter_map(spec).collect();
    specs.sort_by_key(|spec| spec.series.group);
    specs
});

/// How core lanes behave: as that of the worst core.
pub(super) const CORE_CELL_NS: u64 = 100 * MS;
pub(super) const CORE_COVER_NS: u64 = 2500 * MS;
pub(super) const CORE_SENSOR: &str = "cores";

/// What sensors without a lane of values say at every look: they see again.
static SIGNS_OF_LIFE: [&Fact; 4] = [
    &unit::UNITS,
    &klog::KLOG_LINES,
    &nic::NIC_LINK_UP,
    &exit::PROCESS_EXITS_NORMAL,
];

/// All facts that a time line needs, and what its times mean.
pub(crate) fn facts() -> Vec<&'static Fact> {
    let shown = fact::all().filter(|fact| !matches!(fact.show, Show::Not));
    let mut facts: Vec<&'static Fact> = shown.collect();
    facts.extend(SIGNS_OF_LIFE);
    facts.extend([
        &sexton::SEXTON_WALL_CLOCK_NS,
        &memcg::MEMCG_ORIGIN.fact,
        &memcg::MEMCG_READS.fact,
    ]);
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_line_needs_each_fact_once() {
        let mut names: Vec<&str> = facts().iter().map(|fact| fact.name).collect();
        let n = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n);
    }

    #[test]
    fn the_worst_core_is_as_all_cores() {
        let worst = SERIES.iter().find(|spec| spec.series.id == "cores.worst");
        let worst = worst.expect("it has a lane").series;
        assert_eq!(worst.cell_ns, CORE_CELL_NS);
        assert_eq!(worst.cover_ns, CORE_COVER_NS);
        assert_eq!(worst.sensor, CORE_SENSOR);
    }
}
