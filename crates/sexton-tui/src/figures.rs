//! Figures of a window: what the panels say, before it is put into words.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_model::fact::cgroup::{
    CGROUP_BORN, CGROUP_BURST, CgroupBurst, CgroupChange, CgroupCreated,
};
use sexton_model::fact::container::{CONTAINER_EXITED, CONTAINER_STARTED};
use sexton_model::fact::exit::{PROCESS_FAILED, PROCESS_FAILED_BURST};
use sexton_model::fact::unit::UNIT_STARTED;
use sexton_model::moment::Moment;
use sexton_model::origin::pattern_component;
use sexton_model::record::Record;

use crate::history::{History, Series, Window};
use crate::names::Shown;

/// Growth is taken over this long at most.
const GROWTH_OVER: Duration = Duration::from_secs(3600);

/// Over less than this it would be noise made a hundred times larger.
const GROWTH_LEAST: Duration = Duration::from_secs(60);

/// Stands for the unit of what has none.
const NO_UNIT: &str = "no unit";

/// Stands for the image of a container whose runtime does not tell it.
const NO_IMAGE: &str = "no image told";

/// One core in a window.
pub(crate) struct Core {
    pub(crate) number: u32,
    /// From the oldest to the newest: the worst second of each, from 0 to 1.
    pub(crate) cells: Vec<Option<f64>>,
    /// Its last known second.
    pub(crate) now: Option<f64>,
    /// Its worst second.
    pub(crate) worst: Option<f64>,
}

/// The cores in a window, by number, in so many cells each. Cells begin at multiples of
/// their length, so that they move but do not change as time goes on.
pub(crate) fn cores(history: &History, window: Window, n_cells: usize) -> Vec<Core> {
    let cell_ms = (window.to.since(window.from).as_millis() as u64)
        .div_ceil(n_cells.max(1) as u64)
        .max(1);
    let last = window.to.as_ns() / 1_000_000 / cell_ms;
    let place = |ms: u64| (ms / cell_ms + n_cells as u64).checked_sub(last + 1);
    let line = |(number, strip): (&u32, &crate::history::Strip)| {
        let mut cells = vec![None; n_cells];
        let mut now = None;
        for (second, mean) in strip.means(window) {
            now = Some(mean);
            let begin = place(second * 1000).unwrap_or(0);
            let Some(end) = place(second * 1000 + 999) else {
                continue;
            };
            for at in begin..=end.min((n_cells as u64).saturating_sub(1)) {
                if let Some(cell) = cells.get_mut(at as usize) {
                    *cell = Some(f64::max(cell.unwrap_or(0.0), mean));
                }
            }
        }
        let means = strip.means(window).map(|(_, mean)| mean);
        Core {
            number: *number,
            cells,
            now,
            worst: means.reduce(f64::max),
        }
    };
    history.cores.iter().map(line).collect()
}

/// How fast something grows.
pub(crate) struct Growth {
    pub(crate) per_hour: f64,
    pub(crate) over: Duration,
}

/// How fast dying cgroups pile up, by the last hour before the end of the window.
pub(crate) fn growth(history: &History, window: Window) -> Option<Growth> {
    let ns = GROWTH_OVER.as_nanos() as u64;
    let from = Moment::from_ns(window.to.as_ns().saturating_sub(ns));
    let hour = Window { from, ..window };
    let dying = history.series(Shown::Dying);
    let (first, last) = (dying.within(hour).next()?, dying.last(hour)?);
    let over = last.at.since(first.at);
    (over >= GROWTH_LEAST).then(|| Growth {
        per_hour: (last.last - first.last) * 3600.0 / over.as_secs_f64(),
        over,
    })
}

/// How much a counter grew in a window. One that is reset begins anew.
pub(crate) fn grown(counter: &Series, window: Window) -> f64 {
    let values = || counter.within(window).map(|cell| cell.last);
    let grown = |(before, now): (f64, f64)| if now < before { now } else { now - before };
    values().zip(values().skip(1)).map(grown).sum()
}

/// What a unit did in a window.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) name: String,
    pub(crate) n_starts: u64,
    pub(crate) n_failures: u64,
    pub(crate) n_births: u64,
}

/// The units that did anything, the busiest first. A burst of births is told by the
/// pattern of the paths, not by unit.
pub(crate) fn units(history: &History, window: Window) -> Vec<Unit> {
    let mut units: BTreeMap<String, Unit> = BTreeMap::new();
    let mut of = |name: String, count: &dyn Fn(&mut Unit)| {
        count(units.entry(name).or_default());
    };
    for (shown, record) in history.events(window) {
        let name = || record.subject.name.to_string();
        if shown == Shown::UnitFailed {
            of(name(), &|unit| unit.n_failures += 1);
        } else if let Some(run) = record.says(&UNIT_STARTED) {
            of(name(), &|unit| unit.n_starts += run.n.unwrap_or(1));
        } else if let Some(cgroup) = record.says(&CGROUP_BORN) {
            of(parent(cgroup), &|unit| unit.n_births += 1);
        } else if let Some(burst) = births(record) {
            of(burst.pattern.clone(), &|unit| unit.n_births += burst.n);
        }
    }
    let mut units: Vec<Unit> = units
        .into_iter()
        .map(|(name, unit)| Unit { name, ..unit })
        .collect();
    units.sort_by_key(|unit| std::cmp::Reverse(unit.n_starts + unit.n_failures + unit.n_births));
    units
}

/// How many cgroups were made in a window.
pub(crate) fn n_births(history: &History, window: Window) -> u64 {
    let n = |(shown, record): (Shown, &Record)| match shown {
        Shown::CgroupBorn => 1,
        _ => births(record).map_or(0, |burst| burst.n),
    };
    history.events(window).map(n).sum()
}

/// A burst, if it is one of births.
fn births(record: &Record) -> Option<&CgroupBurst> {
    let burst = record.says(&CGROUP_BURST)?;
    (burst.what == Some(CgroupChange::Created)).then_some(burst)
}

/// The unit that a birth leads back to: its maker's, unless systemd made it for the unit
/// that it belongs to.
fn parent(cgroup: &CgroupCreated) -> String {
    let maker = cgroup.creator_unit.as_deref();
    let maker = maker.filter(|unit| *unit != "init.scope");
    let unit = maker.or(cgroup.unit.as_deref());
    unit.map_or_else(|| NO_UNIT.into(), nameless)
}

/// A name without its random parts if it is a scope: that of a container is one of many.
fn nameless(name: &str) -> String {
    if !name.ends_with(".scope") {
        return name.to_owned();
    }
    let pattern = pattern_component(name.as_bytes());
    String::from_utf8_lossy(&pattern).into_owned()
}

/// What a workload did in a window: the containers of an image, or processes of one name
/// that ended alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Workload {
    /// Containers of an image.
    Image(String),
    /// Processes that ended badly: their name, and how they ended.
    Ended(String, String),
}

/// How often.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Toll {
    /// Containers that began.
    pub(crate) n_born: u64,
    /// Containers and processes that ended.
    pub(crate) n_died: u64,
    /// Whether any of them matters more than others: it has a known role, or died for want
    /// of memory.
    pub(crate) is_notable: bool,
}

/// The workloads that did anything: images and ends by turns, so that the first lines tell
/// of both; of each the notable first, then the busiest.
pub(crate) fn workloads(history: &History, window: Window) -> Vec<(Workload, Toll)> {
    let mut tolls: BTreeMap<Workload, Toll> = BTreeMap::new();
    for (_, record) in history.events(window) {
        if let Some(container) = record.says(&CONTAINER_STARTED) {
            let image = image(container.image.as_ref());
            tolls.entry(image).or_default().n_born += 1;
        } else if let Some(container) = record.says(&CONTAINER_EXITED) {
            let image = image(container.image.as_ref());
            tolls.entry(image).or_default().n_died += 1;
        } else if let Some(exit) = record.says(&PROCESS_FAILED) {
            let is_oom = exit.oom == Some(true);
            let ended = ended(exit.comm.as_ref(), is_oom, exit.signal, exit.exit_code);
            let toll = tolls.entry(ended).or_default();
            toll.n_died += 1;
            toll.is_notable |= is_oom || exit.role.is_some();
        } else if let Some(burst) = record.says(&PROCESS_FAILED_BURST) {
            let ended = ended(burst.comm.as_ref(), false, burst.signal, burst.exit_code);
            tolls.entry(ended).or_default().n_died += burst.n;
        }
    }
    let mut tolls: Vec<(Workload, Toll)> = tolls.into_iter().collect();
    tolls.sort_by_key(|(_, toll)| {
        std::cmp::Reverse((toll.is_notable, toll.n_born.max(toll.n_died)))
    });
    let is_image = |(workload, _): &(Workload, Toll)| matches!(workload, Workload::Image(_));
    let (images, ends): (Vec<_>, Vec<_>) = tolls.into_iter().partition(is_image);
    let mut ranked: Vec<_> = images.into_iter().enumerate().collect();
    ranked.extend(ends.into_iter().enumerate());
    // A stable sort: of the same rank the image comes first.
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, workload)| workload).collect()
}

fn image(name: Option<&String>) -> Workload {
    Workload::Image(name.map_or(NO_IMAGE, String::as_str).to_owned())
}

fn ended(
    comm: Option<&String>,
    is_oom: bool,
    signal: Option<u32>,
    exit_code: Option<u32>,
) -> Workload {
    let comm = comm.map_or("?", String::as_str);
    let how = match (signal, exit_code) {
        _ if is_oom => "out of memory".to_owned(),
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("status {code}"),
        (None, None) => "all kinds".to_owned(),
    };
    Workload::Ended(comm.to_owned(), how)
}

/// The same blindness, told once or many times.
pub(crate) struct Blindness {
    pub(crate) sensor: String,
    pub(crate) why: String,
    pub(crate) text: String,
    pub(crate) remedy: Option<String>,
    pub(crate) n: u64,
    /// When it was told last.
    pub(crate) at: Moment,
}

/// What could not be seen up to the end of a window, by sensor.
pub(crate) fn gaps(history: &History, window: Window) -> Vec<Blindness> {
    let mut known: BTreeMap<(String, String), Blindness> = BTreeMap::new();
    for blind in history.gaps(window) {
        let gap = &blind.gap;
        let entry = known
            .entry((gap.sensor.to_string(), gap.text.clone()))
            .or_insert_with(|| Blindness {
                sensor: gap.sensor.to_string(),
                why: gap.why.to_string(),
                text: gap.text.clone(),
                remedy: gap.remedy.clone(),
                n: 0,
                at: blind.at,
            });
        entry.n += 1;
    }
    known.into_values().collect()
}
