//! Values over time at every scale: how much of a column was seen, its largest value and
//! its mean, without reading more than a few cells for each column.
//!
//! The lowest level has cells of one length; four cells of a level make one of the next.
//! When there are too many cells, the lowest level is dropped: the memory of a lane is
//! bounded, however long the recording is.

/// Cells of a level that make one of the next.
const FAN: usize = 4;

/// Parts of a ratio that are told apart where memory counts: half a percent.
const STEPS: f32 = 200.0;
const NONE: u8 = u8::MAX;

/// Values of cells; none where nothing was seen.
#[derive(Debug, Clone)]
enum Cells {
    /// Ratios from 0 to 1, one byte each.
    Ratios(Vec<u8>),
    Numbers(Vec<f32>),
}

impl Cells {
    fn empty(is_ratio: bool) -> Self {
        if is_ratio {
            Self::Ratios(Vec::new())
        } else {
            Self::Numbers(Vec::new())
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Ratios(cells) => cells.len(),
            Self::Numbers(cells) => cells.len(),
        }
    }

    fn get(&self, at: usize) -> Option<f32> {
        match self {
            Self::Ratios(cells) => {
                let steps = *cells.get(at)?;
                (steps != NONE).then(|| f32::from(steps) / STEPS)
            }
            Self::Numbers(cells) => cells.get(at).copied().filter(|value| !value.is_nan()),
        }
    }

    fn push(&mut self, value: Option<f32>) {
        match self {
            Self::Ratios(cells) => cells.push(value.map_or(NONE, steps)),
            Self::Numbers(cells) => cells.push(value.unwrap_or(f32::NAN)),
        }
    }

    fn raise(&mut self, at: usize, value: f32) {
        if self.get(at).is_some_and(|known| known >= value) {
            return;
        }
        match self {
            Self::Ratios(cells) => {
                if let Some(cell) = cells.get_mut(at) {
                    *cell = steps(value);
                }
            }
            Self::Numbers(cells) => {
                if let Some(cell) = cells.get_mut(at) {
                    *cell = value;
                }
            }
        }
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to 200"
)]
fn steps(ratio: f32) -> u8 {
    (ratio.clamp(0.0, 1.0) * STEPS).round() as u8
}

#[derive(Debug, Clone)]
struct Level {
    max: Cells,
    mean: Cells,
}

/// The last cell of the lowest level, which is not full yet.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    max: f32,
    sum: f64,
    weight: f64,
}

/// Values over time.
#[derive(Debug, Clone)]
pub(crate) struct Pyramid {
    origin_ns: u64,
    cell_ns: u64,
    max_cells: usize,
    is_ratio: bool,
    levels: Vec<Level>,
    open: Option<Open>,
    largest: f32,
}

/// Values of columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Columns {
    /// The largest.
    pub(crate) max: Vec<Option<f32>>,
    /// The mean.
    pub(crate) mean: Vec<Option<f32>>,
}

impl Pyramid {
    /// An empty one, with cells of this length to begin with.
    pub(crate) fn new(cell_ns: u64, max_cells: usize, is_ratio: bool) -> Self {
        Self {
            origin_ns: 0,
            cell_ns,
            max_cells: max_cells.max(FAN * FAN),
            is_ratio,
            levels: Vec::new(),
            open: None,
            largest: 0.0,
        }
    }

    /// The largest value of all.
    pub(crate) fn largest(&self) -> f32 {
        self.largest
    }

    /// Whether nothing was seen.
    pub(crate) fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// The value that held in a time. Times come in order, apart from late ones, which
    /// count for the largest of their cells and not for the mean.
    pub(crate) fn cover(&mut self, from_ns: u64, to_ns: u64, value: f32) {
        if value.is_nan() {
            return;
        }
        self.largest = self.largest.max(value);
        if self.levels.is_empty() {
            self.origin_ns = from_ns - from_ns % self.cell_ns;
            self.levels.push(self.level());
        }
        let from_ns = from_ns.max(self.origin_ns);
        let to_ns = to_ns.max(from_ns);
        let last = self.cell(to_ns.max(1) - u64::from(to_ns > from_ns));
        self.reach(last);
        // Reaching so far may have made cells longer.
        let (first, last) = (
            self.cell(from_ns),
            self.cell(to_ns.max(1) - u64::from(to_ns > from_ns)),
        );
        for at in first..=last {
            let start = self.origin_ns + at as u64 * self.cell_ns;
            let end = start + self.cell_ns;
            #[allow(clippy::cast_precision_loss, reason = "a part of a cell")]
            let weight = (to_ns.min(end).saturating_sub(from_ns.max(start))).max(1) as f64;
            self.put(at, value, weight);
        }
    }

    fn level(&self) -> Level {
        Level {
            max: Cells::empty(self.is_ratio),
            mean: Cells::empty(self.is_ratio),
        }
    }

    fn cell(&self, at_ns: u64) -> usize {
        usize::try_from(at_ns.saturating_sub(self.origin_ns) / self.cell_ns).unwrap_or(usize::MAX)
    }

    /// Makes cells longer until there is room for this one.
    fn reach(&mut self, at: usize) {
        let mut at = at;
        while at >= self.max_cells {
            self.coarsen();
            at /= FAN;
        }
    }

    fn put(&mut self, at: usize, value: f32, weight: f64) {
        if at < self.levels[0].max.len() {
            return self.raise(at, value);
        }
        // Between the last cell that is closed and this one nothing was seen.
        while self.levels[0].max.len() < at {
            let open = self.open.take();
            self.close(open);
        }
        let open = self.open.get_or_insert(Open {
            max: f32::MIN,
            ..Open::default()
        });
        open.max = open.max.max(value);
        open.sum += f64::from(value) * weight;
        open.weight += weight;
    }

    #[allow(clippy::cast_possible_truncation, reason = "shown with few digits")]
    fn close(&mut self, open: Option<Open>) {
        let max = open.map(|open| open.max);
        let mean = open.map(|open| (open.sum / open.weight) as f32);
        self.levels[0].max.push(max);
        self.levels[0].mean.push(mean);
        self.grow(0);
    }

    /// Makes cells of higher levels where their parts are there.
    fn grow(&mut self, level: usize) {
        let mut level = level;
        while self.levels[level].max.len().is_multiple_of(FAN) {
            let n = self.levels[level].max.len();
            let (max, mean) = put_together(&self.levels[level], n - FAN, n);
            if self.levels.len() == level + 1 {
                self.levels.push(self.level());
            }
            let above = &mut self.levels[level + 1];
            above.max.push(max);
            above.mean.push(mean);
            level += 1;
        }
    }

    fn raise(&mut self, at: usize, value: f32) {
        let mut at = at;
        for level in &mut self.levels {
            level.max.raise(at, value);
            at /= FAN;
        }
    }

    /// Drops the lowest level. What it held beyond the last whole cell of the next becomes
    /// the open cell.
    fn coarsen(&mut self) {
        let base = self.levels.remove(0);
        let n = base.max.len();
        let rest = n / FAN * FAN;
        let mut open = self.open.take();
        for at in rest..n {
            if let (Some(max), Some(mean)) = (base.max.get(at), base.mean.get(at)) {
                let weight = self.cell_ns as f64;
                let into = open.get_or_insert(Open {
                    max: f32::MIN,
                    ..Open::default()
                });
                into.max = into.max.max(max);
                into.sum += f64::from(mean) * weight;
                into.weight += weight;
            }
        }
        if self.levels.is_empty() {
            self.levels.push(self.level());
        }
        self.open = open;
        self.cell_ns *= FAN as u64;
    }

    /// The largest and the mean of columns. A column narrower than a cell has the cell's.
    pub(crate) fn columns(&self, from_ns: u64, step_ns: u64, n: usize) -> Columns {
        let mut columns = Columns::default();
        let step_ns = step_ns.max(1);
        for column in 0..n as u64 {
            let start = from_ns.saturating_add(column.saturating_mul(step_ns));
            let (max, mean) = self.column(start, start.saturating_add(step_ns));
            columns.max.push(max);
            columns.mean.push(mean);
        }
        columns
    }

    fn column(&self, start_ns: u64, end_ns: u64) -> (Option<f32>, Option<f32>) {
        if self.levels.is_empty() || end_ns <= self.origin_ns {
            return (None, None);
        }
        let mut at = self.cell(start_ns.max(self.origin_ns));
        let end = self.cell(end_ns - 1) + 1;
        let known = self.levels[0].max.len() + usize::from(self.open.is_some());
        let end = end.min(known);
        let mut sum = Sum::default();
        while at < end {
            let (level, size) = self.largest_cell(at, end);
            let (max, mean) = if at >= self.levels[0].max.len() {
                let open = self.open;
                #[allow(clippy::cast_possible_truncation, reason = "as in `close`")]
                let mean = open.map(|open| (open.sum / open.weight) as f32);
                (open.map(|open| open.max), mean)
            } else {
                let of = &self.levels[level];
                (of.max.get(at / size), of.mean.get(at / size))
            };
            sum.add(max, mean, size);
            at += size;
        }
        sum.finish()
    }

    /// The highest level with a cell that begins here and ends in time.
    fn largest_cell(&self, at: usize, end: usize) -> (usize, usize) {
        let (mut level, mut size) = (0, 1);
        while let Some(above) = self.levels.get(level + 1) {
            let larger = size * FAN;
            let is_there = at / larger < above.max.len();
            if !at.is_multiple_of(larger) || at + larger > end || !is_there {
                break;
            }
            (level, size) = (level + 1, larger);
        }
        (level, size)
    }
}

fn put_together(level: &Level, from: usize, to: usize) -> (Option<f32>, Option<f32>) {
    let mut sum = Sum::default();
    for at in from..to {
        sum.add(level.max.get(at), level.mean.get(at), 1);
    }
    sum.finish()
}

#[derive(Default)]
struct Sum {
    max: Option<f32>,
    sum: f64,
    weight: f64,
}

impl Sum {
    #[allow(clippy::cast_precision_loss, reason = "cells are few")]
    fn add(&mut self, max: Option<f32>, mean: Option<f32>, size: usize) {
        if let Some(max) = max {
            self.max = Some(self.max.map_or(max, |known| known.max(max)));
        }
        if let Some(mean) = mean {
            self.sum += f64::from(mean) * size as f64;
            self.weight += size as f64;
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "shown with few digits")]
    fn finish(self) -> (Option<f32>, Option<f32>) {
        let mean = (self.weight > 0.0).then(|| (self.sum / self.weight) as f32);
        (self.max, mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: u64 = 100;

    fn steady(n: u64, is_ratio: bool, max_cells: usize) -> Pyramid {
        let mut pyramid = Pyramid::new(CELL, max_cells, is_ratio);
        for i in 0..n {
            let value = if i == n / 2 { 0.9 } else { 0.1 };
            pyramid.cover(i * CELL, (i + 1) * CELL, value);
        }
        pyramid
    }

    #[test]
    fn one_hot_cell_is_seen_at_every_scale() {
        for max_cells in [1 << 20, 1 << 8] {
            for n_columns in [1, 7, 100, 1000] {
                let n = 10_000;
                let pyramid = steady(n, true, max_cells);
                let step = (n * CELL).div_ceil(n_columns);
                let columns = pyramid.columns(0, step, usize::try_from(n_columns).unwrap());
                let max: Vec<f32> = columns.max.iter().flatten().copied().collect();
                assert_eq!(max.len() as u64, n_columns, "{max_cells} {n_columns}");
                assert!(max.contains(&0.9), "{max_cells} {n_columns}");
                let mean = columns.mean[0].expect("seen");
                assert!((0.09..0.2).contains(&mean), "{mean}");
            }
        }
    }

    #[test]
    fn nothing_seen_is_nothing() {
        let mut pyramid = Pyramid::new(CELL, 1 << 10, false);
        assert_eq!(pyramid.columns(0, 10, 2).max, [None, None]);
        pyramid.cover(1000, 1100, 5.0);
        pyramid.cover(3000, 3100, 7.0);
        let columns = pyramid.columns(0, 1000, 5);
        assert_eq!(columns.max, [None, Some(5.0), None, Some(7.0), None]);
        assert_eq!(pyramid.largest(), 7.0);
        // The narrow columns of one cell are all like it.
        assert_eq!(pyramid.columns(3000, 10, 2).max, [Some(7.0), Some(7.0)]);
    }

    #[test]
    fn what_comes_late_still_counts() {
        let mut pyramid = steady(1000, false, 1 << 12);
        pyramid.cover(300, 310, 4.0);
        for (step, column) in [(CELL, 3), (64 * CELL, 0), (1000 * CELL, 0)] {
            let columns = pyramid.columns(0, step, 1000);
            assert_eq!(columns.max[column], Some(4.0), "{step}");
        }
    }

    #[test]
    fn a_jump_of_years_costs_little() {
        let mut pyramid = Pyramid::new(CELL, 1 << 8, false);
        pyramid.cover(5, 6, 1.0);
        pyramid.cover(u64::MAX / 4, u64::MAX / 4 + 1, 2.0);
        assert!(pyramid.levels[0].max.len() <= 1 << 8);
        assert_eq!(pyramid.columns(0, u64::MAX / 2, 1).max, [Some(2.0)]);
    }
}
