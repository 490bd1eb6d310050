//! Dying memory cgroups: who made them, what pins them, how they grow.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use sexton_model::fact::memcg::{MEMCG_ORIGIN, MEMCG_READS, MemcgOrigin, MemcgReads, Pin};
use sexton_model::record::Event;

use super::Time;
use crate::clock::Clock;
use crate::index::Census;
use crate::source::State;

const DAY_NS: f64 = 86_400e9;

/// Dying memory cgroups: who made them, what pins them, how they grow.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Zombies")]
pub(super) struct ZombiesView {
    /// Of the last census; null when there was none.
    #[schemars(with = "Option<Time>")]
    at: Option<u64>,
    live: Option<f64>,
    dying: Option<f64>,
    leaked: Option<f64>,
    memory_bytes: Option<f64>,
    stat_read_ns: Option<f64>,
    /// Most dying first.
    origins: Vec<OriginView>,
    units: Vec<UnitView>,
    /// Files that pin most of them.
    files: Vec<FileView>,
    growth: GrowthView,
    reads: Vec<ReadView>,
    gaps: Vec<GapView>,
}

/// Alike cgroups.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Origin")]
struct OriginView {
    origin: String,
    example: Option<String>,
    kind: Option<String>,
    unit: Option<String>,
    image: Option<String>,
    live: Option<f64>,
    dying: Option<f64>,
    leaked: Option<f64>,
    pages: Option<f64>,
    pins: PinsView,
    held_by_children: Option<f64>,
    without_pin: Option<f64>,
    oldest_seconds: Option<f64>,
    files: Vec<PinView>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Pins")]
struct PinsView {
    file: Option<f64>,
    shmem: Option<f64>,
    anon: Option<f64>,
    other: Option<f64>,
}

#[derive(Serialize, Clone, JsonSchema)]
#[schemars(rename = "PinFile")]
struct PinView {
    path: String,
    kind: String,
    zombies: f64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "UnitZombies")]
struct UnitView {
    unit: Option<String>,
    live: f64,
    dying: f64,
    leaked: f64,
    origins: usize,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FileZombies")]
struct FileView {
    path: String,
    kind: String,
    zombies: f64,
    origins: Vec<String>,
}

/// One entry for each census, at most 2000.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Growth")]
struct GrowthView {
    #[schemars(with = "Vec<Time>")]
    at: Vec<u64>,
    dying: Vec<Option<f64>>,
    live: Vec<Option<f64>>,
    per_day: Option<f64>,
}

/// What one read of a statistics file cost.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StatRead")]
struct ReadView {
    #[schemars(with = "Time")]
    at: u64,
    file: Option<String>,
    dying: Option<f64>,
    root_ns: Option<f64>,
    leaf_ns: Option<f64>,
    ancestor: Option<String>,
    ancestor_ns: Option<f64>,
    ancestor_dying: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CensusGap")]
struct GapView {
    sensor: &'static str,
    why: &'static str,
    text: String,
    remedy: Option<String>,
}

pub(super) fn view(state: &State) -> ZombiesView {
    let census = state.index.census();
    let origins = census.origins.iter();
    let origins = origins.filter_map(|record| Event::of(record, &MEMCG_ORIGIN));
    let mut origins: Vec<OriginView> = origins.map(OriginView::of).collect();
    origins.sort_by(|a, b| {
        let dying = |origin: &OriginView| origin.dying.unwrap_or(0.0);
        let by_dying = dying(b).total_cmp(&dying(a));
        by_dying.then_with(|| a.origin.cmp(&b.origin))
    });
    let last = census.points.last();
    ZombiesView {
        at: census
            .origins_at_ns
            .or(last.map(|last| last.at_ns))
            .map(|at_ns| state.clock.us(at_ns)),
        live: last.and_then(|last| last.live),
        dying: last.and_then(|last| last.dying),
        leaked: census.leaked,
        memory_bytes: census.bytes,
        stat_read_ns: census.stat_read_ns,
        units: units(&origins),
        files: files(&origins),
        origins,
        growth: growth(census, state.clock),
        reads: census
            .reads
            .iter()
            .filter_map(|record| Event::of(record, &MEMCG_READS))
            .map(|read| ReadView::of(read, state.clock))
            .collect(),
        gaps: gaps(state),
    }
}

#[allow(clippy::cast_precision_loss, reason = "a number of the page")]
fn number(count: Option<u64>) -> Option<f64> {
    count.map(|count| count as f64)
}

impl OriginView {
    fn of(event: Event<'_, MemcgOrigin>) -> Self {
        let says = event.says;
        let pattern = says.pattern.clone();
        Self {
            origin: pattern.unwrap_or_else(|| event.subject.name.to_string()),
            example: says.example.clone(),
            kind: says.kind.clone(),
            unit: says.unit.clone(),
            image: says.image.clone(),
            live: number(says.live),
            dying: number(says.dying),
            leaked: number(says.leaked),
            pages: number(says.pages),
            pins: PinsView {
                file: number(says.file),
                shmem: number(says.shmem),
                anon: number(says.anon),
                other: number(says.other),
            },
            held_by_children: number(says.held_by_children),
            without_pin: number(says.without_pin),
            oldest_seconds: number(says.oldest_seconds),
            files: says.pins.iter().map(PinView::of).collect(),
        }
    }
}

impl PinView {
    #[allow(clippy::cast_precision_loss, reason = "a number of the page")]
    fn of(pin: &Pin) -> Self {
        Self {
            path: pin.path.clone(),
            kind: pin.kind.clone(),
            zombies: pin.zombies as f64,
        }
    }
}

fn units(origins: &[OriginView]) -> Vec<UnitView> {
    let mut units: BTreeMap<&Option<String>, UnitView> = BTreeMap::new();
    for origin in origins {
        let unit = units.entry(&origin.unit).or_insert_with(|| UnitView {
            unit: origin.unit.clone(),
            live: 0.0,
            dying: 0.0,
            leaked: 0.0,
            origins: 0,
        });
        unit.live += origin.live.unwrap_or(0.0);
        unit.dying += origin.dying.unwrap_or(0.0);
        unit.leaked += origin.leaked.unwrap_or(0.0);
        unit.origins += 1;
    }
    let mut units: Vec<UnitView> = units.into_values().collect();
    units.sort_by(|a, b| b.dying.total_cmp(&a.dying));
    units
}

fn files(origins: &[OriginView]) -> Vec<FileView> {
    let mut files: BTreeMap<(&str, &str), FileView> = BTreeMap::new();
    for origin in origins {
        for pin in &origin.files {
            let file = files
                .entry((&pin.path, &pin.kind))
                .or_insert_with(|| FileView {
                    path: pin.path.clone(),
                    kind: pin.kind.clone(),
                    zombies: 0.0,
                    origins: Vec::new(),
                });
            file.zombies += pin.zombies;
            file.origins.push(origin.origin.clone());
        }
    }
    let mut files: Vec<FileView> = files.into_values().collect();
    files.sort_by(|a, b| b.zombies.total_cmp(&a.zombies));
    files
}

/// What every census counted, and how much that is a day from the first to the last.
#[allow(clippy::cast_precision_loss, reason = "a rate that is shown")]
fn growth(census: &Census, clock: Clock) -> GrowthView {
    let points = &census.points;
    let known = || {
        points
            .iter()
            .filter_map(|point| Some((point.at_ns, point.dying?)))
    };
    let per_day = match (known().next(), known().next_back()) {
        (Some((from, first)), Some((to, last))) if from < to => {
            Some((last - first) / ((to - from) as f64 / DAY_NS))
        }
        _ => None,
    };
    GrowthView {
        at: points.iter().map(|point| clock.us(point.at_ns)).collect(),
        dying: points.iter().map(|point| point.dying).collect(),
        live: points.iter().map(|point| point.live).collect(),
        per_day,
    }
}

impl ReadView {
    fn of(event: Event<'_, MemcgReads>, clock: Clock) -> Self {
        let says = event.says;
        Self {
            at: clock.us(event.at.as_ns()),
            file: Some(says.file.clone()),
            dying: number(says.dying),
            root_ns: number(says.root_ns),
            leaf_ns: number(says.leaf_ns),
            ancestor: says.ancestor.clone(),
            ancestor_ns: number(says.ancestor_ns),
            ancestor_dying: number(says.ancestor_dying),
        }
    }
}

/// What the census could not see, each thing once.
fn gaps(state: &State) -> Vec<GapView> {
    let spans = state.index.blind().within(&["memcg"], 0, u64::MAX);
    let mut gaps: Vec<GapView> = Vec::new();
    for span in spans {
        if !gaps.iter().any(|gap| gap.text == *span.why) {
            gaps.push(GapView {
                sensor: "memcg",
                why: "blind",
                text: span.why.to_string(),
                remedy: None,
            });
        }
    }
    gaps.truncate(20);
    gaps
}
