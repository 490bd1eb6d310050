//! Lanes over a window, put together to so many columns.

use schemars::JsonSchema;
use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};

use super::params::{Params, Window};
use super::{EventView, GapView, Time};
use crate::http::Problem;
use crate::index::{Content, EventList, Lane, Told};
use crate::source::{Source, State};

pub(super) const MAX_LANES: usize = 256;
pub(super) const MAX_LANE_CHARS: usize = 256;
pub(super) const MAX_WIDTH: u64 = 4096;
pub(super) const DEFAULT_WIDTH: u64 = 1000;

/// Events and gaps of a lane that are told.
const MAX_EVENTS: usize = 500;
const MAX_GAPS: usize = 200;

/// What is asked.
pub(super) struct Asked {
    lanes: Vec<String>,
    window: Window,
    width: u64,
}

/// Lanes over a window.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Tiles")]
pub(super) struct TilesView<'a> {
    #[schemars(with = "Time")]
    from: u64,
    #[schemars(with = "Time")]
    to: u64,
    #[schemars(with = "Vec<TileView<'a>>")]
    tiles: Each<'a>,
}

/// Tiles, each made when it is written: together they would be many times as large.
struct Each<'a> {
    state: &'a State,
    lanes: Vec<Lane<'a>>,
    /// Which of them.
    order: Vec<usize>,
    grid: Grid,
}

/// A lane over a window.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Tile")]
struct TileView<'a> {
    lane: &'a str,
    #[schemars(with = "Time")]
    from: u64,
    /// Microseconds in a column.
    #[schemars(range(min = 1))]
    step: u64,
    /// The largest of each column; null where nothing was seen. For events: how many, null where no
    /// sensor looked.
    values: Vec<Option<f32>>,
    /// The mean of each column.
    #[schemars(with = "Vec<Option<f32>>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<Vec<Option<f32>>>,
    gaps: Vec<GapView>,
    /// Of a lane of events: the newest last.
    #[schemars(with = "Vec<EventView<'a>>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Vec<EventView<'a>>>,
    #[schemars(with = "u64")]
    #[serde(skip_serializing_if = "Option::is_none")]
    events_left_out: Option<u64>,
}

/// Columns of a window.
#[derive(Clone, Copy)]
struct Grid {
    window: Window,
    step_ns: u64,
    n: usize,
}

impl Asked {
    pub(super) fn read(params: &Params<'_>, source: &Source) -> Result<Self, Problem> {
        let lanes = params.texts("lane", MAX_LANES, MAX_LANE_CHARS)?;
        if lanes.is_empty() {
            return Err(Problem::new(400, "lane: name one at least"));
        }
        Ok(Self {
            lanes: lanes.into_iter().map(str::to_owned).collect(),
            width: params
                .number("width", 1..=MAX_WIDTH)?
                .unwrap_or(DEFAULT_WIDTH),
            window: params.window(source)?,
        })
    }

    /// All lanes.
    pub(super) fn of_all(state: &State, window: Window, width: u64) -> Self {
        let lanes = state.index.lanes();
        Self {
            lanes: lanes.into_iter().map(|lane| lane.id).collect(),
            window,
            width,
        }
    }

    /// The answer.
    pub(super) fn view<'a>(&self, state: &'a State) -> Result<TilesView<'a>, Problem> {
        let known = state.index.lanes();
        let found = self.lanes.iter().map(|id| {
            let at = known.iter().position(|lane| lane.id == *id);
            at.ok_or_else(|| {
                let detail = format!("lane: there is none called {}", id.escape_debug());
                Problem::new(422, detail)
            })
        });
        let order = found.collect::<Result<Vec<usize>, Problem>>()?;
        Ok(TilesView {
            from: state.clock.us(self.window.from_ns),
            to: state.clock.us(self.window.to_ns),
            tiles: Each {
                state,
                lanes: known,
                order,
                grid: self.grid(),
            },
        })
    }

    /// Columns of whole microseconds.
    fn grid(&self) -> Grid {
        let Window { from_ns, to_ns } = self.window;
        let length_us = (to_ns - from_ns).div_ceil(1000);
        let step_us = length_us.div_ceil(self.width).max(1);
        let n = length_us.div_ceil(step_us).max(1);
        Grid {
            window: self.window,
            step_ns: step_us * 1000,
            n: usize::try_from(n).unwrap_or(1),
        }
    }
}

impl Serialize for Each<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(Some(self.order.len()))?;
        for at in &self.order {
            let lane = &self.lanes[*at];
            let told = lane_events(lane, self.grid);
            list.serialize_element(&tile(self.state, lane, self.grid, told.as_ref()))?;
        }
        list.end()
    }
}

/// What happened in each column, where the lane is of events.
fn lane_events(lane: &Lane<'_>, grid: Grid) -> Option<Told> {
    let Content::Events(events) = lane.content else {
        return None;
    };
    let told =
        |events: &EventList| events.told(grid.window.from_ns, grid.step_ns, grid.n, MAX_EVENTS);
    Some(events.map(told).unwrap_or_default())
}

fn tile<'a>(state: &State, lane: &'a Lane<'_>, grid: Grid, told: Option<&'a Told>) -> TileView<'a> {
    let (values, mean) = match (lane.content, told) {
        (Content::Values(Some(values)), _) => {
            let columns = values.columns(grid.window.from_ns, grid.step_ns, grid.n);
            (columns.max, Some(columns.mean))
        }
        (_, Some(told)) => (counts(state, lane, grid, &told.counts), None),
        (_, None) => (vec![None; grid.n], None),
    };
    let shown = |told: &'a Told| {
        let events = told.events.iter();
        events
            .map(|event| EventView::of(state.clock, event))
            .collect()
    };
    TileView {
        lane: &lane.id,
        from: state.clock.us(grid.window.from_ns),
        step: grid.step_ns / 1000,
        values,
        mean,
        gaps: gaps(state, lane, grid.window),
        events: told.map(shown),
        events_left_out: told.map(|told| told.n_left_out),
    }
}

/// How many events are in each column. None where nobody looked is not 0.
fn counts(state: &State, lane: &Lane<'_>, grid: Grid, counts: &[u64]) -> Vec<Option<f32>> {
    let (start_ns, mut end_ns) = state.span_ns();
    if !state.is_read {
        end_ns = end_ns.min(state.read_ns);
    }
    let blind = state.index.blind();
    let of_column = |n: usize| {
        let from_ns = (n as u64)
            .saturating_mul(grid.step_ns)
            .saturating_add(grid.window.from_ns);
        let to_ns = from_ns.saturating_add(grid.step_ns);
        let was_there = from_ns < end_ns && to_ns > start_ns;
        let (from_ns, to_ns) = (from_ns.max(start_ns), to_ns.min(end_ns));
        match counts.get(n).copied().unwrap_or(0) {
            0 if !was_there || blind.is_whole(lane.sensors, from_ns, to_ns) => None,
            #[allow(clippy::cast_precision_loss, reason = "counts of a column")]
            n => Some(n as f32),
        }
    };
    (0..grid.n).map(of_column).collect()
}

/// When nothing was seen, or not read yet.
fn gaps(state: &State, lane: &Lane<'_>, window: Window) -> Vec<GapView> {
    let (_, end_ns) = state.span_ns();
    let blind = state.index.blind();
    let blind = blind.within(lane.sensors, window.from_ns, window.to_ns);
    let mut gaps: Vec<GapView> = blind
        .take(MAX_GAPS)
        .map(|span| GapView::of(state.clock, span, end_ns))
        .collect();
    if gaps.is_empty() && state.is_read && was_not_there(state, lane) {
        let sensors = lane.sensors.join(" and ");
        let why = format!("this recording has nothing from the sensor {sensors}");
        let (from, to) = (window.from_ns, window.to_ns);
        gaps.push(GapView(state.clock.us(from), state.clock.us(to), why));
    }
    if !state.is_read && state.read_ns < window.to_ns {
        let from_ns = state.read_ns.max(window.from_ns);
        let why = "not read yet: ask again".to_owned();
        gaps.push(GapView(
            state.clock.us(from_ns),
            state.clock.us(window.to_ns),
            why,
        ));
    }
    gaps
}

/// Whether no sensor of a lane ever told what it saw.
fn was_not_there(state: &State, lane: &Lane<'_>) -> bool {
    let blind = state.index.blind();
    let mut sensors = lane.sensors.iter();
    !lane.sensors.is_empty() && sensors.all(|sensor| !blind.has_seen(sensor))
}
