//! Heat maps of parts: one for each core, process, thread name, cgroup, unit, container or pod.

use ahash::AHashMap;
use sexton_model::moment::Moment;
use sexton_model::stack::{NameId, StackSample, StackTables};

use super::{Grid, HeatMap, Shape};
use crate::NO_CPU;
use crate::filter::{Filter, Matcher, container_of, pod_of, unit_of};
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
    /// Each thread, by its number and the name that its first sample had.
    Thread,
    /// Each name of threads.
    Comm,
    /// Each cgroup.
    Cgroup,
    /// Each systemd unit.
    Unit,
    /// Each container, by its id.
    Container,
    /// Each pod of Kubernetes, by its uid.
    Pod,
}

impl By {
    /// What a cgroup belongs to, where that is asked about.
    fn home(self, cgroup: &str) -> Option<String> {
        match self {
            Self::Unit => unit_of(cgroup),
            Self::Container => container_of(cgroup),
            Self::Pod => pod_of(cgroup),
            _ => None,
        }
    }
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
    homes: AHashMap<NameId, Option<NameId>>,
    home_numbers: AHashMap<String, NameId>,
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
            homes: AHashMap::new(),
            home_numbers: AHashMap::new(),
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
            By::Thread => u64::from(sample.pid) << 32 | u64::from(sample.tid),
            By::Comm => u64::from(sample.comm.0),
            By::Cgroup => of(sample.cgroup),
            By::Unit | By::Container | By::Pod => {
                of(sample.cgroup.and_then(|cgroup| self.home(cgroup, tables)))
            }
        }
    }

    /// Units and containers are numbered here, because several cgroups may be of one.
    fn home(&mut self, cgroup: NameId, tables: &StackTables) -> Option<NameId> {
        let (by, numbers) = (self.by, &mut self.home_numbers);
        *self.homes.entry(cgroup).or_insert_with(|| {
            let home = by.home(tables.name(cgroup))?;
            let next = NameId(u32::try_from(numbers.len()).unwrap_or(u32::MAX));
            Some(*numbers.entry(home).or_insert(next))
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
            By::Thread => {
                let name = tables.name(sample.comm);
                format!("{name} {}/{}", sample.pid, sample.tid)
            }
            By::Comm => tables.name(sample.comm).to_owned(),
            By::Cgroup => sample
                .cgroup
                .map_or(OTHER, |name| tables.name(name))
                .to_owned(),
            By::Unit | By::Container | By::Pod => {
                let home = sample
                    .cgroup
                    .and_then(|name| self.by.home(tables.name(name)));
                home.unwrap_or_else(|| OTHER.to_owned())
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

    fn samples(&mut self, like: &StackSample, times: &[(Moment, u32)], tables: &StackTables) {
        if let Some((first, _)) = times.first() {
            self.matcher.begin(first.as_ns());
        }
        let window = self.matcher.window_ns();
        let is_wanted = self.matcher.accepts_owner(like, tables);
        let part = is_wanted.then(|| self.part(like, tables));
        let mut map = part.map(|part| &mut self.maps[part].1);
        let (mut first, mut last) = (u64::MAX, 0);
        for (at, n) in times.iter().map(|(at, n)| (at.as_ns(), *n)) {
            if !window.contains(&at) {
                continue;
            }
            (first, last) = (first.min(at), last.max(at));
            if let Some(map) = &mut map {
                map.add_many(at, n);
                self.n_samples += u64::from(n);
            }
        }
        if first <= last {
            self.cover(first);
            self.cover(last);
        }
    }

    /// Rows and window must begin and end between two cells.
    fn takes_cells(&self, cell_ns: u64) -> bool {
        let window = self.window_ns();
        let ends_between = match window.end().checked_add(1) {
            Some(end) => end.is_multiple_of(cell_ns),
            None => true,
        };
        !self.wants_stacks()
            && !self.wants_owners()
            && self.shape.is_of_cells(cell_ns)
            && window.start().is_multiple_of(cell_ns)
            && ends_between
    }

    fn wants_stacks(&self) -> bool {
        self.matcher.looks_at_stacks()
    }

    fn wants_owners(&self) -> bool {
        !matches!(self.by, By::All | By::Core) || self.matcher.looks_at_owners()
    }

    fn matcher(&self) -> Option<&Matcher> {
        Some(&self.matcher)
    }

    fn matcher_mut(&mut self) -> Option<&mut Matcher> {
        Some(&mut self.matcher)
    }
}

#[cfg(test)]
mod cell_tests {
    use proptest::prelude::*;
    use sexton_model::stack::{CoreState, StackId};

    use super::*;
    use crate::filter::{EventChoice, TimePoint};

    const CELL: u64 = 20_000_000;
    const SECOND: u64 = 1_000_000_000;

    fn facets(shape: Shape, (from, to): (Option<u64>, Option<u64>)) -> Facets {
        let filter = Filter {
            event: EventChoice::OfCores,
            from: from.map(TimePoint::Offset),
            to: to.map(TimePoint::Offset),
            ..Filter::default()
        };
        let mut facets = Facets::new(By::Core, shape, filter);
        facets.begin(7 * SECOND);
        facets
    }

    fn sample((at_ns, cpu, is_idle): (u64, u32, bool)) -> StackSample {
        StackSample {
            at: Moment::from_ns(at_ns),
            cpu,
            pid: 0,
            tid: 0,
            comm: NameId(0),
            cgroup: None,
            state: if is_idle {
                CoreState::Idle
            } else {
                CoreState::Unknown
            },
            event: NameId(0),
            weight: 1,
            stack: StackId::EMPTY,
        }
    }

    /// Another moment of the same cell; those of its first microsecond stay there.
    fn elsewhere(at_ns: u64) -> u64 {
        let start = at_ns / CELL * CELL;
        if at_ns - start < 1000 {
            start
        } else {
            start + CELL / 2
        }
    }

    fn any_moment() -> impl Strategy<Value = u64> {
        prop_oneof![
            2 => 7 * SECOND..80 * SECOND,
            // Where floating point may round a moment into the cell before it.
            1 => (350u64..4000, 0u64..2500).prop_map(|(cell, ns)| cell * CELL + ns),
            1 => (350u64..4000, 1u64..2500).prop_map(|(cell, ns)| cell * CELL - ns),
        ]
    }

    fn any_shape() -> impl Strategy<Value = Shape> {
        let rows = prop::sample::select(vec![1usize, 2, 5, 7, 10, 25, 30, 50, 60, 100]);
        let column = prop::sample::select(vec![CELL, SECOND, 2 * SECOND, 60 * SECOND]);
        (rows, column).prop_map(|(rows, column_ns)| Shape { rows, column_ns })
    }

    proptest! {
        #[test]
        fn cells_make_the_same_picture_as_samples(
            shape in any_shape(),
            window in (prop::option::of(0u64..40), prop::option::of(1000u64..4000)),
            samples in prop::collection::vec((any_moment(), 0u32..3, any::<bool>()), 1..60),
        ) {
            let window = (window.0.map(|n| n * CELL), window.1.map(|n| n * CELL));
            let (mut exact, mut cells) = (facets(shape, window), facets(shape, window));
            prop_assume!(cells.takes_cells(CELL));
            let tables = StackTables::default();
            for (at, cpu, is_idle) in samples {
                for _ in 0..3 {
                    exact.sample(&sample((at, cpu, is_idle)), &tables);
                }
                let times = [(Moment::from_ns(elsewhere(at)), 3)];
                cells.samples(&sample((0, cpu, is_idle)), &times, &tables);
            }
            prop_assert_eq!(cells.n_samples(), exact.n_samples());
            prop_assert_eq!(cells.grids(), exact.grids());
        }
    }

    #[test]
    fn only_questions_in_whole_cells_take_them() {
        let whole = (None, None);
        let shape = |rows, column_ns| Shape { rows, column_ns };
        for (expected, shape, window) in [
            (true, Shape::default(), whole),
            (true, shape(50, 60 * SECOND), whole),
            (true, shape(60, 3600 * SECOND), whole),
            (true, Shape::default(), (Some(SECOND), Some(9 * SECOND))),
            (false, shape(100, SECOND), whole),
            (false, shape(7, SECOND), whole),
            (false, Shape::default(), (Some(SECOND + 1), None)),
            (false, Shape::default(), (None, Some(SECOND + 1000))),
        ] {
            let facets = facets(shape, window);
            assert_eq!(facets.takes_cells(CELL), expected, "{shape:?} {window:?}");
        }
        let by_process = Facets::new(By::Process, Shape::default(), Filter::default());
        assert!(!by_process.takes_cells(CELL));
    }
}
