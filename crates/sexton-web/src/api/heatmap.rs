//! When cores were busy.

mod marks;

use regex::Regex;
use schemars::JsonSchema;
use serde::Serialize;
use sexton_model::stack::{StackSample, StackTables};
use sexton_profile::filter::{EventChoice, Filter, TimePoint};
use sexton_profile::flame::StackCounts;
use sexton_profile::heatmap::facets::{By, Facets};
use sexton_profile::heatmap::{DEFAULT_ROWS, Grid, Shape};
use sexton_profile::import::Sink;
use sexton_profile::top;

use self::marks::{blind, events};
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

/// Parts that are told.
const MAX_PARTS: usize = 100;

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
}

/// What the parts of a heat map are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "HeatBy")]
pub(super) enum Part {
    All,
    Core,
    Process,
    Unit,
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
    unread: Vec<(u64, String)>,
}

/// Which part alone.
#[derive(Debug, Clone, Default)]
struct Only {
    cpus: Vec<u32>,
    pids: Vec<u32>,
    unit: Option<String>,
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
    /// at the bottom.
    values: Vec<u32>,
    max: u32,
    total: u64,
    /// What `value` may be for this `by`, most samples first; empty for `all`.
    parts: Vec<PartView>,
    parts_left_out: usize,
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
        let views = [("offset", View::Offset), ("long", View::Long)];
        let parts = [
            ("all", Part::All),
            ("core", Part::Core),
            ("process", Part::Process),
            ("unit", Part::Unit),
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
        samples.read(&bundle, window, &mut counted);
        let (parts, parts_left_out) = counted.parts(self.by, samples.tables());
        let plan = self.plan();
        let mut values = vec![0; plan.rows * plan.columns];
        for (_, grid) in counted.grids.grids().unwrap_or_default() {
            plan.place(&grid, &mut values);
        }
        let found = Found {
            values,
            parts,
            parts_left_out,
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
            unread: reading.into_iter().collect(),
        })
    }

    fn view(&self, source: &Source, found: Found) -> HeatMapView {
        let plan = self.plan();
        let state = source.state();
        let clock = state.clock;
        let end_us = clock.us(self.window.to_ns);
        let unread = found.unread.into_iter();
        HeatMapView {
            from: clock.us(plan.start_ns),
            to: end_us,
            view: self.view,
            step: plan.step_ns / 1000,
            row_step: (plan.row_span_ns / plan.rows as u64 / 1000).max(1),
            rows: plan.rows,
            columns: plan.columns,
            max: found.values.iter().copied().max().unwrap_or(0),
            total: found.values.iter().map(|n| u64::from(*n)).sum(),
            values: found.values,
            parts: found.parts,
            parts_left_out: found.parts_left_out,
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
            Part::Unit => only.unit = Some(value.to_owned()),
            Part::Function => only.function = Some(params::expression("value", value)?),
        }
        Ok(only)
    }
}

/// Where cells are.
struct Plan {
    start_ns: u64,
    step_ns: u64,
    /// What the rows of a column are parts of.
    row_span_ns: u64,
    rows: usize,
    columns: usize,
}

impl Plan {
    fn shape(&self) -> Shape {
        Shape {
            rows: self.rows,
            column_ns: self.row_span_ns,
        }
    }

    /// Adds a picture of cells that are no longer than ours; its rows are told from the top.
    fn place(&self, grid: &Grid, values: &mut [u32]) {
        let (rows, row_ns) = (grid.shape.rows, grid.shape.row_ns());
        for (n, column) in grid.columns.iter().enumerate() {
            let start_ns = grid.start_ns + n as u64 * grid.shape.column_ns;
            for (from_top, count) in column.iter().enumerate().filter(|(_, n)| **n > 0) {
                // Its middle: its beginning is rounded.
                let from_bottom = rows.saturating_sub(from_top + 1) as u64;
                let at_ns = start_ns + from_bottom * row_ns + row_ns / 2;
                if let Some(cell) = self.cell(at_ns).and_then(|at| values.get_mut(at)) {
                    *cell = cell.saturating_add(*count);
                }
            }
        }
    }

    fn cell(&self, at_ns: u64) -> Option<usize> {
        let after_ns = at_ns.checked_sub(self.start_ns)?;
        let column = usize::try_from(after_ns / self.step_ns).ok()?;
        let into_ns = after_ns % self.step_ns % self.row_span_ns;
        let row = u128::from(into_ns) * self.rows as u128 / u128::from(self.row_span_ns);
        let row = usize::try_from(row).ok()?;
        (column < self.columns).then_some(row * self.columns + column)
    }
}

/// The picture and its parts, counted at once.
struct Counted {
    grids: Facets,
    facets: Option<Facets>,
    functions: Option<StackCounts>,
}

impl Counted {
    fn new(asked: &Asked) -> Self {
        let only = Filter {
            cpus: asked.only.cpus.clone(),
            pids: asked.only.pids.clone(),
            unit: asked.only.unit.clone(),
            function: asked.only.function.clone(),
            ..asked.filter()
        };
        // One cell for each part: only its sum is wanted.
        let whole = Shape {
            rows: 1,
            column_ns: 1 << 62,
        };
        let facet = |by| Some(Facets::new(by, whole, asked.filter()));
        let (facets, functions) = match asked.by {
            Part::All => (None, None),
            Part::Core => (facet(By::Core), None),
            Part::Process => (facet(By::Process), None),
            Part::Unit => (facet(By::Unit), None),
            Part::Function => (None, Some(StackCounts::new(asked.filter()))),
        };
        Self {
            grids: Facets::new(By::All, asked.plan().shape(), only),
            facets,
            functions,
        }
    }

    fn parts(&self, by: Part, tables: &StackTables) -> (Vec<PartView>, usize) {
        let mut parts: Vec<PartView> = match (&self.facets, &self.functions) {
            (Some(facets), _) => {
                let grids = facets.grids().unwrap_or_default().into_iter();
                grids
                    .filter_map(|(label, grid)| part(by, label, &grid))
                    .collect()
            }
            (None, Some(functions)) => functions_of(functions, tables),
            (None, None) => Vec::new(),
        };
        if by != Part::Core {
            parts.sort_by(|a, b| b.samples.cmp(&a.samples).then(a.label.cmp(&b.label)));
        }
        let n_left_out = parts.len().saturating_sub(MAX_PARTS);
        parts.truncate(MAX_PARTS);
        (parts, n_left_out)
    }
}

fn part(by: Part, label: String, grid: &Grid) -> Option<PartView> {
    // A core is called `core 1`, a process by its name and number.
    let value = match by {
        Part::Core | Part::Process => label.rsplit(' ').next()?.parse::<u32>().ok()?.to_string(),
        _ if label.starts_with('(') => return None,
        _ => label.clone(),
    };
    Some(PartView {
        value,
        label,
        samples: grid.total(),
    })
}

fn functions_of(counts: &StackCounts, tables: &StackTables) -> Vec<PartView> {
    let mut functions = top::functions(counts, tables);
    functions.sort_by_key(|function| std::cmp::Reverse(function.total.samples));
    functions.truncate(MAX_PARTS * 4);
    let parts = functions.into_iter().map(|function| PartView {
        value: format!("^{}$", regex::escape(&function.name)),
        label: function.name,
        samples: function.total.samples,
    });
    parts
        .filter(|part| part.value.chars().count() <= 512)
        .collect()
}

impl Sink for Counted {
    fn sample(&mut self, sample: &StackSample, tables: &StackTables) {
        self.grids.sample(sample, tables);
        if let Some(facets) = &mut self.facets {
            facets.sample(sample, tables);
        }
        if let Some(functions) = &mut self.functions {
            functions.sample(sample, tables);
        }
    }
}
