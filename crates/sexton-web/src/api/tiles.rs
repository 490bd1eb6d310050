//! Lanes over a window, put together to so many columns.

use serde::Serialize;

use super::params::{Params, Window};
use super::{EventView, GapView};
use crate::http::Problem;
use crate::index::{Content, Lane};
use crate::source::{Source, State};

const MAX_LANES: usize = 256;
const MAX_LANE_CHARS: usize = 256;
const MAX_WIDTH: u64 = 4096;
const DEFAULT_WIDTH: u64 = 1000;

/// Events and gaps of a lane that are told.
const MAX_EVENTS: usize = 500;
const MAX_GAPS: usize = 200;

/// What is asked.
pub(super) struct Asked {
    lanes: Vec<String>,
    window: Window,
    width: u64,
}

#[derive(Serialize)]
struct TileView<'a> {
    lane: &'a str,
    from: u64,
    step: u64,
    values: Vec<Option<f32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<Vec<Option<f32>>>,
    gaps: Vec<GapView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Vec<EventView<'a>>>,
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

    /// The answer as JSON. It is put together from its parts: as a tree of values it would
    /// be many times as large, and have more digits than were measured.
    pub(super) fn answer(&self, state: &State) -> Result<Vec<u8>, Problem> {
        let known = state.index.lanes();
        let grid = self.grid();
        let from = state.clock.us(self.window.from_ns);
        let to = state.clock.us(self.window.to_ns);
        let mut json = format!("{{\"from\":{from},\"to\":{to},\"tiles\":[").into_bytes();
        for (n, id) in self.lanes.iter().enumerate() {
            let lane = known.iter().find(|lane| lane.id == *id).ok_or_else(|| {
                let detail = format!("lane: there is none called {}", id.escape_debug());
                Problem::new(422, detail)
            })?;
            if n > 0 {
                json.push(b',');
            }
            write_tile(&mut json, state, lane, grid)
                .map_err(|error| Problem::new(500, error.to_string()))?;
        }
        json.extend_from_slice(b"]}");
        Ok(json)
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

fn write_tile(
    json: &mut Vec<u8>,
    state: &State,
    lane: &Lane<'_>,
    grid: Grid,
) -> serde_json::Result<()> {
    let mut view = TileView {
        lane: &lane.id,
        from: state.clock.us(grid.window.from_ns),
        step: grid.step_ns / 1000,
        values: Vec::new(),
        mean: None,
        gaps: gaps(state, lane, grid.window),
        events: None,
        events_left_out: None,
    };
    let from_ns = grid.window.from_ns;
    let told;
    match lane.content {
        Content::Values(Some(values)) => {
            let columns = values.columns(from_ns, grid.step_ns, grid.n);
            view.values = columns.max;
            view.mean = Some(columns.mean);
        }
        Content::Values(None) => view.values = vec![None; grid.n],
        Content::Events(events) => {
            let of = events.map(|events| events.told(from_ns, grid.step_ns, grid.n, MAX_EVENTS));
            told = of.unwrap_or_default();
            view.values = counts(state, lane, grid, &told.counts);
            let shown = told.events.iter();
            view.events = Some(
                shown
                    .map(|event| EventView::of(state.clock, event))
                    .collect(),
            );
            view.events_left_out = Some(told.n_left_out);
        }
    }
    serde_json::to_writer(json, &view)
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
