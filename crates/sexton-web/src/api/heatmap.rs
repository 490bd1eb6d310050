//! When cores were busy.

mod counted;
mod marks;
mod plan;

use regex::Regex;
use schemars::JsonSchema;
use serde::Serialize;
use sexton_profile::filter::{EventChoice, Filter, TimePoint};
use sexton_profile::heatmap::{DEFAULT_ROWS, Grid, Shape};

use self::counted::Counted;
use self::marks::{blind, events};
use self::plan::Plan;
use super::params::{self, Params, Window};

use super::{EventView, GapView, Lasting, Time};
use crate::http::Problem;
use crate::source::Source;
use crate::stacks::Samples;

const SECOND: u64 = 1_000_000_000;
pub(super) const USUAL_ROWS: usize = 50;
pub(super) const MAX_VALUE_CHARS: usize = 512;
pub(super) const MAX_ROWS: usize = 200;
pub(super) const MAX_COLUMNS: u64 = 4096;
pub(super) const DEFAULT_COLUMNS: u64 = 1200;

/// Cells of an answer: more cannot be looked at.
const MAX_CELLS: u64 = 400_000;

/// A window below this is counted from its samples.
const SHORT_NS: u64 = 120 * SECOND;

/// Why the end of a picture is empty.
const NOT_YET: &str = "not read yet: ask again";

/// How a heat map is cut into cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "HeatView")]
pub(super) enum View {
    /// By offset into the second.
    Offset,
    /// By time, from column to column.
    Long,
    /// A row for each thread.
    Threads,
}

/// What the parts of a heat map are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "HeatBy")]
pub(super) enum Part {
    All,
    Core,
    Process,
    Thread,
    Unit,
    Container,
    Pod,
    Function,
}

/// What is asked.
pub(super) struct Asked {
    window: Window,
    view: View,
    by: Part,
    only: Only,
    rows: usize,
    columns: u64,
}

/// What was counted.
struct Found {
    values: Vec<u32>,
    parts: Vec<PartView>,
    parts_left_out: usize,
    tracks: Vec<PartView>,
    tracks_left_out: usize,
    unread: Vec<(u64, String)>,
}

/// Which part alone.
#[derive(Debug, Clone, Default)]
struct Only {
    cpus: Vec<u32>,
    pids: Vec<u32>,
    tids: Vec<u32>,
    unit: Option<String>,
    container: Option<String>,
    pod: Option<String>,
    function: Option<Regex>,
}

/// When cores were busy.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "HeatMap")]
pub(super) struct HeatMapView {
    #[schemars(with = "Time")]
    from: u64,
    #[schemars(with = "Time")]
    to: u64,
    view: View,
    /// Microseconds in a column.
    #[schemars(range(min = 1))]
    step: u64,
    /// Microseconds in a row.
    #[schemars(range(min = 1))]
    row_step: u64,
    #[schemars(range(min = 1))]
    rows: usize,
    columns: usize,
    /// Samples in each cell, row by row. `offset`: row r of column c holds what lies r*row_step to
    /// (r+1)*row_step into any whole second of the column (one second each, unless the window is
    /// too long). `long`: what lies there into the column itself. Row 0 is the beginning, drawn
    /// at the bottom. `threads`: the samples of a thread in the column; the busiest is on top.
    values: Vec<u32>,
    max: u32,
    total: u64,
    /// What `value` may be for this `by`, most samples first; empty for `all`.
    parts: Vec<PartView>,
    parts_left_out: usize,
    /// The threads that are the rows of `threads`, from the top, which is the last row; their
    /// `value` is for `by=thread`. Empty in the other views.
    tracks: Vec<PartView>,
    tracks_left_out: usize,
    events: Vec<EventView<'static>>,
    gaps: Vec<GapView>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Part")]
struct PartView {
    /// To be given as `value`.
    value: String,
    label: String,
    samples: u64,
}

impl Lasting for Asked {
    type View = HeatMapView;

    fn read(params: &Params<'_>, source: &Source) -> Result<Self, Problem> {
        let views = [
            ("offset", View::Offset),
            ("long", View::Long),
            ("threads", View::Threads),
        ];
        let parts = [
            ("all", Part::All),
            ("core", Part::Core),
            ("process", Part::Process),
            ("thread", Part::Thread),
            ("unit", Part::Unit),
            ("container", Part::Container),
            ("pod", Part::Pod),
            ("function", Part::Function),
        ];
        let by = params.choice("by", &parts, Part::All)?;
        let asked = Self {
            view: params.choice("view", &views, View::Offset)?,
            by,
            only: Only::read(by, params.text("value", MAX_VALUE_CHARS)?)?,
            rows: params.number("rows", 1..=MAX_ROWS)?.unwrap_or(USUAL_ROWS),
            columns: params
                .number("columns", 1..=MAX_COLUMNS)?
                .unwrap_or(DEFAULT_COLUMNS),
            window: params.window(source)?,
        };
        if !source.has_times {
            let detail = "the samples of this source have no times (folded stacks never have)";
            return Err(Problem::new(422, detail));
        }
        Ok(asked)
    }

    fn window(&self) -> Window {
        self.window
    }

    fn answer(&self, source: &Source) -> Result<HeatMapView, Problem> {
        if let Some(counted) = self.counted(source) {
            return Ok(self.view(source, counted));
        }
        let bundle = source.state().bundle.clone();
        let mut counted = Counted::new(self);
        let mut samples = Samples::default();
        let window = (self.window.from_ns, self.window.to_ns);
        samples.read_shown(&bundle, window, &mut counted);
        let (parts, parts_left_out) = counted.parts(self.by, samples.tables());
        let grids = counted.grids.grids().unwrap_or_default();
        let plan = self.plan();
        let (values, tracks, tracks_left_out) = match self.view {
            View::Threads => plan.tracks(grids),
            View::Offset | View::Long => (plan.cells(&grids), Vec::new(), 0),
        };
        let found = Found {
            values,
            parts,
            parts_left_out,
            tracks,
            tracks_left_out,
            unread: samples.unread,
        };
        Ok(self.view(source, found))
    }
}

impl Asked {
    /// Everything or one core, as a whole.
    pub(super) fn plain(window: Window, view: View, cpu: Option<u32>) -> Self {
        Self {
            window,
            view,
            by: Part::Core,
            only: Only {
                cpus: cpu.into_iter().collect(),
                ..Only::default()
            },
            rows: USUAL_ROWS,
            columns: DEFAULT_COLUMNS,
        }
    }

    /// What was counted already answers questions about long windows of all cores or one.
    /// Its cells are of 20 ms: shorter windows and finer rows are counted from samples.
    fn counted(&self, source: &Source) -> Option<Found> {
        let plan = self.plan();
        let row_ns = plan.row_span_ns / plan.rows as u64;
        let fits = match self.view {
            View::Offset => DEFAULT_ROWS.is_multiple_of(plan.rows),
            View::Long => row_ns >= 2 * Shape::default().row_ns(),
            View::Threads => false,
        };
        let is_long = self.window.to_ns - self.window.from_ns >= SHORT_NS;
        let is_plain = matches!(self.by, Part::All | Part::Core);
        if !(fits && is_long && is_plain) {
            return None;
        }
        let state = source.state();
        let window = (self.window.from_ns, self.window.to_ns);
        let grids = state.heat.grids(self.only.cpus.first().copied(), window)?;
        let mut values = vec![0; plan.rows * plan.columns];
        for grid in &grids {
            plan.place(grid, &mut values);
        }
        let mut parts = Vec::new();
        if self.by == Part::Core {
            for cpu in state.heat.cores()? {
                let grids = state.heat.grids(Some(cpu), window)?;
                parts.push(PartView {
                    value: cpu.to_string(),
                    label: format!("core {cpu}"),
                    samples: grids.iter().map(Grid::total).sum(),
                });
            }
            parts.retain(|part| part.samples > 0);
        }
        let reading = state.heat.reading_ns.filter(|at| *at < self.window.to_ns);
        let reading = reading.map(|at_ns| (at_ns.max(window.0), NOT_YET.to_owned()));
        Some(Found {
            values,
            parts,
            parts_left_out: 0,
            tracks: Vec::new(),
            tracks_left_out: 0,
            unread: reading.into_iter().collect(),
        })
    }

    fn view(&self, source: &Source, found: Found) -> HeatMapView {
        let plan = self.plan();
        let state = source.state();
        let clock = state.clock;
        let end_us = clock.us(self.window.to_ns);
        let unread = found.unread.into_iter();
        // A thread is a row, however few there are; a row of it is the whole column.
        let (rows, row_span_ns) = match self.view {
            View::Threads => (found.values.len() / plan.columns.max(1), plan.step_ns),
            View::Offset | View::Long => (plan.rows, plan.row_span_ns / plan.rows as u64),
        };
        HeatMapView {
            from: clock.us(plan.start_ns),
            to: end_us,
            view: self.view,
            step: plan.step_ns / 1000,
            row_step: (row_span_ns / 1000).max(1),
            rows,
            columns: plan.columns,
            max: found.values.iter().copied().max().unwrap_or(0),
            total: found.values.iter().map(|n| u64::from(*n)).sum(),
            values: found.values,
            parts: found.parts,
            parts_left_out: found.parts_left_out,
            tracks: found.tracks,
            tracks_left_out: found.tracks_left_out,
            events: events(&state, self.window),
            gaps: unread
                .map(|(at_ns, why)| GapView(clock.us(at_ns), end_us, why))
                .chain(blind(&state, self.window))
                .collect(),
        }
    }

    fn filter(&self) -> Filter {
        Filter {
            from: Some(TimePoint::Clock(self.window.from_ns)),
            to: Some(TimePoint::Clock(self.window.to_ns)),
            // When cores were busy is not a question of what was counted.
            event: EventChoice::OfCores,
            ..Filter::default()
        }
    }

    /// How the picture is laid out. Columns begin at whole numbers of themselves.
    fn plan(&self) -> Plan {
        let length_ns = self.window.to_ns - self.window.from_ns;
        let columns = self.columns.min(MAX_CELLS / self.rows as u64).max(1);
        let (unit_ns, row_span_ns) = match self.view {
            View::Offset => (SECOND, Some(SECOND)),
            View::Long => (self.rows as u64 * 1000, None),
            View::Threads => (1000, None),
        };
        // One more column than fits, because the first begins before the window.
        let step_ns = length_ns
            .div_ceil(columns.saturating_sub(1).max(1))
            .max(1)
            .next_multiple_of(unit_ns);
        let start_ns = self.window.from_ns - self.window.from_ns % step_ns;
        let n = (self.window.to_ns - start_ns).div_ceil(step_ns);
        Plan {
            start_ns,
            step_ns,
            row_span_ns: row_span_ns.unwrap_or(step_ns),
            rows: self.rows,
            columns: usize::try_from(n).unwrap_or(1),
        }
    }
}

impl HeatMapView {
    /// The numbers of its parts, where they are cores or processes.
    pub(super) fn part_numbers(&self) -> impl Iterator<Item = u32> {
        let parts = self.parts.iter();
        parts.filter_map(|part| part.value.parse().ok())
    }
}

impl Only {
    fn read(by: Part, value: Option<&str>) -> Result<Self, Problem> {
        let mut only = Self::default();
        let Some(value) = value else {
            return Ok(only);
        };
        let number = || {
            let number = value.parse().ok();
            number.ok_or_else(|| Problem::new(422, "value: for this `by` it is a number"))
        };
        match by {
            Part::All => {}
            Part::Core => only.cpus.push(number()?),
            Part::Process => only.pids.push(number()?),
            Part::Thread => only.tids.push(number()?),
            Part::Unit => only.unit = Some(value.to_owned()),
            Part::Container => only.container = Some(value.to_owned()),
            Part::Pod => only.pod = Some(value.to_owned()),
            Part::Function => only.function = Some(params::expression("value", value)?),
        }
        Ok(only)
    }
}
