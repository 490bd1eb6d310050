//! Heat maps of parts: one for each core, process, thread name, cgroup or unit.

use std::ops::RangeInclusive;

use ahash::AHashMap;
use sexton_model::stack::{NameId, StackSample, StackTables};

use super::{Grid, HeatMap, Shape};
use crate::NO_CPU;
use crate::filter::{Filter, Matcher, unit_of};
use crate::import::Sink;
use crate::kept::Kept;

/// What to make a heat map for each of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum By {
    /// One for all.
    #[default]
    All,
    /// Each core.
    Core,
    /// Each process, by its number and the name that its first sample had.
    Process,
    /// Each name of threads.
    Comm,
    /// Each cgroup.
    Cgroup,
    /// Each systemd unit.
    Unit,
}

/// More parts than this share the last one.
const MAX_PARTS: usize = 4096;

/// What has no such part: a sample without a cgroup, or beyond [`MAX_PARTS`].
const OTHER: &str = "(other)";

/// The part of samples that nobody asked about; there are at most [`MAX_PARTS`].
const NOT_ASKED: u32 = u32::MAX;

/// Heat maps that are being counted.
pub struct Facets {
    by: By,
    shape: Shape,
    matcher: Matcher,
    maps: Vec<(String, HeatMap)>,
    parts: AHashMap<u64, usize>,
    units: AHashMap<NameId, Option<NameId>>,
    unit_numbers: AHashMap<String, NameId>,
    /// The first and the last moment that the recording covers.
    covered_ns: Option<(u64, u64)>,
    n_samples: u64,
}

impl Facets {
    /// Counts what the filter lets pass.
    pub fn new(by: By, shape: Shape, filter: Filter) -> Self {
        Self {
            by,
            shape,
            matcher: Matcher::new(filter),
            maps: Vec::new(),
            parts: AHashMap::new(),
            units: AHashMap::new(),
            unit_numbers: AHashMap::new(),
            covered_ns: None,
            n_samples: 0,
        }
    }

    /// How many samples were counted.
    pub fn n_samples(&self) -> u64 {
        self.n_samples
    }

    /// When the recording begins, rounded down to a whole second.
    pub fn origin_ns(&self) -> Option<u64> {
        self.matcher.origin_ns()
    }

    /// The pictures, those with most samples first, all over the same time. `None` when
    /// they would be too wide.
    pub fn grids(&self) -> Option<Vec<(String, Grid)>> {
        let Some((first, last)) = self.columns() else {
            return Some(Vec::new());
        };
        // A part may have no sample within the window.
        let maps = self.maps.iter().filter(|(_, map)| map.range().is_some());
        let grids = maps.map(|(name, map)| {
            let grid = map.grid_of(first, last)?;
            Some((name.clone(), grid))
        });
        let mut grids: Vec<(String, Grid)> = grids.collect::<Option<_>>()?;
        if self.by == By::Core {
            grids.sort_by_key(|(name, _)| name.trim_start_matches("core ").parse::<u32>().ok());
        } else {
            grids.sort_by_key(|(_, grid)| std::cmp::Reverse(grid.total()));
        }
        Some(grids)
    }

    /// Counts samples that are kept, many times faster than one by one: whether a sample is
    /// asked about, and for which part, is found once for all that differ in time only.
    pub fn ask(&mut self, kept: &Kept, tables: &StackTables) {
        if let Some(first) = kept.first_ns() {
            self.matcher.begin(first);
        }
        let window = self.matcher.window_ns();
        // Four bytes each: there are as many as there are different stacks, in no order.
        let parts: Vec<u32> = kept
            .kinds()
            .map(|sample| {
                let accepts = self.matcher.accepts_owner(&sample, tables);
                let part = accepts.then(|| self.part(&sample, tables));
                part.map_or(NOT_ASKED, |part| u32::try_from(part).unwrap_or(NOT_ASKED))
            })
            .collect();
        let (mut first, mut last) = (u64::MAX, 0);
        for (at, kind) in kept.times() {
            if !window.contains(&at) {
                continue;
            }
            (first, last) = (first.min(at), last.max(at));
            let part = parts.get(kind).copied().unwrap_or(NOT_ASKED);
            if let Some((_, map)) = self.maps.get_mut(part as usize) {
                map.add(at);
                self.n_samples += 1;
            }
        }
        if first <= last {
            self.cover(first);
            self.cover(last);
        }
    }

    fn cover(&mut self, at_ns: u64) {
        let (first, last) = self.covered_ns.unwrap_or((at_ns, at_ns));
        self.covered_ns = Some((first.min(at_ns), last.max(at_ns)));
    }

    /// The first and the last column.
    fn columns(&self) -> Option<(u64, u64)> {
        let (first, last) = self.covered_ns?;
        let mut range = HeatMap::new(self.shape);
        range.cover(first);
        range.cover(last);
        range.range()
    }

    fn part(&mut self, sample: &StackSample, tables: &StackTables) -> usize {
        if self.by == By::All && !self.maps.is_empty() {
            return 0;
        }
        let key = self.key(sample, tables);
        if let Some(&part) = self.parts.get(&key) {
            return part;
        }
        let (key, name) = if self.maps.len() + 1 >= MAX_PARTS {
            (u64::MAX, OTHER.to_owned())
        } else {
            (key, self.name(key, sample, tables))
        };
        if let Some(&part) = self.parts.get(&key) {
            return part;
        }
        let part = self.maps.len();
        self.maps.push((name, HeatMap::new(self.shape)));
        self.parts.insert(key, part);
        part
    }

    fn key(&mut self, sample: &StackSample, tables: &StackTables) -> u64 {
        let of = |name: Option<NameId>| name.map_or(u64::MAX, |name| u64::from(name.0));
        match self.by {
            By::All => 0,
            By::Core => u64::from(sample.cpu),
            By::Process => u64::from(sample.pid),
            By::Comm => u64::from(sample.comm.0),
            By::Cgroup => of(sample.cgroup),
            By::Unit => of(sample.cgroup.and_then(|cgroup| self.unit(cgroup, tables))),
        }
    }

    /// Units are numbered here, because several cgroups may be of one.
    fn unit(&mut self, cgroup: NameId, tables: &StackTables) -> Option<NameId> {
        let numbers = &mut self.unit_numbers;
        *self.units.entry(cgroup).or_insert_with(|| {
            let unit = unit_of(tables.name(cgroup))?;
            let next = NameId(u32::try_from(numbers.len()).unwrap_or(u32::MAX));
            Some(*numbers.entry(unit).or_insert(next))
        })
    }

    fn name(&self, key: u64, sample: &StackSample, tables: &StackTables) -> String {
        if key == u64::MAX {
            return OTHER.to_owned();
        }
        match self.by {
            By::All => "all".to_owned(),
            By::Core if sample.cpu == NO_CPU => OTHER.to_owned(),
            By::Core => format!("core {}", sample.cpu),
            By::Process => format!("{} {}", tables.name(sample.comm), sample.pid),
            By::Comm => tables.name(sample.comm).to_owned(),
            By::Cgroup => sample
                .cgroup
                .map_or(OTHER, |name| tables.name(name))
                .to_owned(),
            By::Unit => {
                let unit = sample.cgroup.and_then(|name| unit_of(tables.name(name)));
                unit.unwrap_or_else(|| OTHER.to_owned())
            }
        }
    }
}

impl Sink for Facets {
    fn sample(&mut self, sample: &StackSample, tables: &StackTables) {
        let at = sample.at.as_ns();
        // Idle or not, the recording covers this moment.
        if self.matcher.is_in_window(sample) {
            self.cover(at);
        }
        if self.matcher.accepts(sample, tables) {
            let part = self.part(sample, tables);
            self.maps[part].1.add(at);
            self.n_samples += 1;
        }
    }

    fn wants_stacks(&self) -> bool {
        self.matcher.looks_at_stacks()
    }

    fn wants_owners(&self) -> bool {
        !matches!(self.by, By::All | By::Core) || self.matcher.looks_at_owners()
    }

    fn begin(&mut self, at_ns: u64) {
        self.matcher.begin(at_ns);
    }

    fn window_ns(&self) -> RangeInclusive<u64> {
        self.matcher.window_ns()
    }
}
