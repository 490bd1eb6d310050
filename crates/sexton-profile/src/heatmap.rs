//! Sub-second-offset heat maps: a column for each second, a row for each fraction of it, and
//! in each cell how many samples fell into it.
//!
//! The picture, and with columns of one second every single cell, are those of FlameScope:
//! `app/controllers/heatmap.py` of <https://github.com/Netflix/flamescope> at `be26595f`.
//! It counts in floating-point seconds of microsecond resolution, and so do we: a sample at
//! exactly 0.28 s may then belong to the row that ends there. Unlike it we do not fail when
//! the last sample falls on a whole second, or is not the latest.
//!
//! Columns of a minute or an hour make the same picture of a day.

mod columns;
pub mod facets;
pub mod html;
pub mod png;
pub mod svg;
pub mod term;

use ahash::AHashMap;
use serde::Serialize;

pub use columns::Columns;

const SECOND: u64 = 1_000_000_000;

/// Rows when nothing else is asked for, as FlameScope has them.
pub const DEFAULT_ROWS: usize = 50;

/// More columns than these cannot be looked at: a week of seconds.
pub const MAX_COLUMNS: u64 = 7 * 86_400;

/// What a heat map looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rows in each column; at least 1.
    pub rows: usize,
    /// The time that a column takes; at least 1 us.
    pub column_ns: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            rows: DEFAULT_ROWS,
            column_ns: SECOND,
        }
    }
}

impl Shape {
    /// Which column and row a moment falls into. Row 0 is on top: the end of the column.
    fn cell(self, at_ns: u64) -> (u64, usize) {
        let at_us = at_ns / 1000;
        if self.column_ns == SECOND {
            return self
                .whole_cell_of_second(at_us)
                .unwrap_or_else(|| self.cell_of_second(at_us));
        }
        let column_us = (self.column_ns / 1000).max(1);
        let (column, rest) = (at_us / column_us, at_us % column_us);
        let row = u128::from(rest) * self.rows as u128 / u128::from(column_us);
        let row = usize::try_from(row).unwrap_or(0);
        (column, self.rows.saturating_sub(row + 1))
    }

    /// The same as below in whole numbers, which is several times faster; `None` where floating
    /// point may round to another row: on the edge of two, and for times beyond all clocks.
    fn whole_cell_of_second(self, at_us: u64) -> Option<(u64, usize)> {
        const SECOND_US: u64 = 1_000_000;
        let column = at_us / SECOND_US;
        let share = (at_us % SECOND_US).checked_mul(self.rows as u64)?;
        let row = usize::try_from(share / SECOND_US).ok()?;
        // Less than a microsecond from an edge. Up to here, numbers are closer than that.
        let rest = share % SECOND_US;
        let is_on_edge = rest.min(SECOND_US - rest) < self.rows as u64;
        let is_plain = !is_on_edge && column < 1 << 32;
        is_plain.then(|| (column, self.rows.saturating_sub(row + 1)))
    }

    /// FlameScope's own arithmetic, rounding included: `ts % 1` is what is left of the whole
    /// seconds, exactly. A time in microseconds has at most 53 bits for the first 285 years.
    /// Signed, because processors turn these into floating point and back many times faster.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "nothing is negative or large, and rounding down is meant"
    )]
    fn cell_of_second(self, at_us: u64) -> (u64, usize) {
        let seconds = at_us.cast_signed() as f64 / 1e6;
        let column = seconds as i64;
        let row = self.rows.cast_signed() as f64 * (seconds - column as f64);
        let row = (row as isize).cast_unsigned();
        (column.cast_unsigned(), self.rows.saturating_sub(row + 1))
    }

    /// Whether each row takes whole cells, which are this long and begin at multiples of it.
    fn is_of_cells(self, cell_ns: u64) -> bool {
        let rows = self.rows.max(1) as u64;
        self.column_ns.is_multiple_of(rows) && (self.column_ns / rows).is_multiple_of(cell_ns)
    }

    /// The time that a row takes.
    pub fn row_ns(self) -> u64 {
        self.column_ns / self.rows.max(1) as u64
    }
}

/// A heat map that is being counted.
#[derive(Debug, Clone)]
pub struct HeatMap {
    shape: Shape,
    /// In the order in which they were counted in first.
    columns: Columns,
    /// The number of each, from the clock's zero, and where each number is.
    numbers: Vec<u64>,
    places: AHashMap<u64, usize>,
    /// The column that was counted in last, and where it is.
    open: Option<(u64, usize)>,
    first: Option<u64>,
    last: u64,
}

impl HeatMap {
    /// An empty one.
    pub fn new(shape: Shape) -> Self {
        let shape = Shape {
            rows: shape.rows.max(1),
            column_ns: shape.column_ns.max(1000),
        };
        Self {
            shape,
            columns: Columns::new(shape.rows),
            numbers: Vec::new(),
            places: AHashMap::new(),
            open: None,
            first: None,
            last: 0,
        }
    }

    /// Makes sure that this moment has a column: the recording covers it.
    pub fn cover(&mut self, at_ns: u64) {
        self.cover_column(at_ns / 1000 * 1000 / self.shape.column_ns);
    }

    fn cover_column(&mut self, column: u64) {
        self.first = Some(self.first.map_or(column, |first| first.min(column)));
        self.last = self.last.max(column);
    }

    /// Counts a sample.
    pub fn add(&mut self, at_ns: u64) {
        self.add_many(at_ns, 1);
    }

    /// Counts so many samples of one moment.
    #[inline]
    pub fn add_many(&mut self, at_ns: u64, n: u32) {
        let (column, row) = self.shape.cell(at_ns);
        let place = match self.open {
            Some((open, place)) if open == column => place,
            _ => self.open_column(column),
        };
        if let Some(cell) = self.columns.cell_mut(place, row) {
            *cell = cell.saturating_add(n);
        }
    }

    fn open_column(&mut self, column: u64) -> usize {
        self.cover_column(column);
        let before = self.open.map(|(_, place)| place);
        let place = self.place(column, before).unwrap_or_else(|| {
            let place = self.numbers.len();
            self.numbers.push(column);
            self.places.insert(column, place);
            self.columns.push_empty();
            place
        });
        self.open = Some((column, place));
        place
    }

    /// Where a column is. Samples come in the order of their times, so most follow the one
    /// that was asked for before.
    fn place(&self, column: u64, before: Option<usize>) -> Option<usize> {
        let next = before.map_or(0, |before| before + 1);
        if self.numbers.get(next) == Some(&column) {
            return Some(next);
        }
        self.places.get(&column).copied()
    }

    /// The whole picture; `None` when nothing was counted or covered, or when it has more
    /// than [`MAX_COLUMNS`].
    pub fn grid(&self) -> Option<Grid> {
        self.grid_of(self.first?, self.last)
    }

    /// The picture of these columns, numbered from the clock's zero.
    pub fn grid_of(&self, first: u64, last: u64) -> Option<Grid> {
        let n_columns = last.checked_sub(first)?.checked_add(1)?;
        if n_columns > MAX_COLUMNS {
            return None;
        }
        let mut columns = Columns::new(self.shape.rows);
        columns.reserve(usize::try_from(n_columns).ok()?);
        let mut before = None;
        for number in first..=last {
            match self.place(number, before) {
                Some(place) => {
                    columns.push(&self.columns[place]);
                    before = Some(place);
                }
                None => columns.push_empty(),
            }
        }
        let max = columns.cells().iter().copied().max().unwrap_or(0);
        Some(Grid {
            shape: self.shape,
            start_ns: first.saturating_mul(self.shape.column_ns),
            columns,
            max,
        })
    }

    /// The first and the last column, numbered from the clock's zero.
    pub fn range(&self) -> Option<(u64, u64)> {
        self.first.map(|first| (first, self.last))
    }
}

/// A heat map that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    /// Its rows and columns.
    pub shape: Shape,
    /// When the first column begins.
    pub start_ns: u64,
    /// Counts by column, then by row from the top.
    pub columns: Columns,
    /// The largest count.
    pub max: u32,
}

/// Something that happened, to be drawn on a heat map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// When.
    pub at_ns: u64,
    /// What.
    pub text: String,
}

impl Grid {
    /// Which column and row, from the top, a moment is in; `None` outside of the picture.
    pub fn place(&self, at_ns: u64) -> Option<(usize, usize)> {
        let (first, _) = self.shape.cell(self.start_ns);
        let (column, row) = self.shape.cell(at_ns);
        let column = usize::try_from(column.checked_sub(first)?).ok()?;
        (column < self.columns.len()).then_some((column, row))
    }

    /// How many samples are in it.
    pub fn total(&self) -> u64 {
        let cells = self.columns.cells().iter();
        cells.map(|n| u64::from(*n)).sum()
    }

    /// The same names and numbers as FlameScope's answer: offsets of rows in milliseconds
    /// from the top, of columns in seconds, and counts by column.
    pub fn json(&self) -> GridJson<'_> {
        let rows = self.shape.rows;
        #[allow(clippy::cast_precision_loss, reason = "times of a picture are small")]
        let (column_ms, rows_ms) = (self.shape.column_ns as f64 / 1e6, rows as f64);
        #[allow(clippy::cast_precision_loss, reason = "rows are few")]
        let offsets: Vec<f64> = (0..rows)
            .rev()
            .map(|n| column_ms * (n as f64 / rows_ms))
            .collect();
        let seconds: Vec<u64> = (0..self.columns.len() as u64)
            .map(|n| n * self.shape.column_ns / SECOND)
            .collect();
        GridJson {
            columns: seconds,
            maxvalue: self.max,
            name: None,
            rows: offsets,
            start_ns: self.start_ns,
            values: &self.columns,
        }
    }
}

/// A heat map as FlameScope answers it. There are millions of cells in a day, so they are
/// written from where they are.
#[derive(Debug, Clone, Serialize)]
pub struct GridJson<'a> {
    columns: Vec<u64>,
    maxvalue: u32,
    /// What it is a heat map of, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    rows: Vec<f64>,
    start_ns: u64,
    values: &'a Columns,
}

impl GridJson<'_> {
    /// Writes it, as serde would and several times faster: counts are mostly one digit.
    pub fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let head = GridJson {
            values: &Columns::new(1),
            ..self.clone()
        };
        serde_json::to_writer(&mut *out, &head)?;
        // The values come last, and there were none.
        out.truncate(out.len().saturating_sub(b"]}".len()));
        for (i, column) in self.values.iter().enumerate() {
            out.extend_from_slice(if i == 0 { b"[" } else { b",[" });
            counts(out, column);
            out.push(b']');
        }
        out.extend_from_slice(b"]}");
        Ok(())
    }
}

/// Numbers with commas between them.
fn counts(out: &mut Vec<u8>, counts: &[u32]) {
    for (i, count) in counts.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        match u8::try_from(*count) {
            Ok(digit @ 0..=9) => out.push(b'0' + digit),
            _ => out.extend_from_slice(count.to_string().as_bytes()),
        }
    }
}

/// How hot a cell is, from 0 to 255, so that one sample among thousands can still be seen.
pub(crate) fn heat(count: u32, max: u32) -> u8 {
    if count == 0 || max == 0 {
        return 0;
    }
    let share = f64::from(count) / f64::from(max);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 24 and 255"
    )]
    let heat = (24.0 + 231.0 * share.sqrt()) as u8;
    heat
}

/// From near white to dark blue, as on the page: lightness alone tells more from less, so that
/// every kind of colour sight and a grey print can read it.
pub(crate) fn color(heat: u8) -> [u8; 3] {
    const STOPS: [[u8; 3]; 7] = [
        [246, 247, 244],
        [234, 231, 212],
        [208, 200, 158],
        [158, 160, 132],
        [98, 116, 134],
        [44, 72, 124],
        [14, 26, 66],
    ];
    const STEPS: usize = STOPS.len() - 1;
    let place = usize::from(heat) * STEPS;
    let stop = (place / 255).min(STEPS - 1);
    let part = place - stop * 255;
    let mix = |channel: usize| {
        let (from, to) = (STOPS[stop][channel], STOPS[stop + 1][channel]);
        let mixed = usize::from(from) * (255 - part) + usize::from(to) * part;
        u8::try_from(mixed / 255).unwrap_or(255)
    };
    [mix(0), mix(1), mix(2)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_written_as_serde_would(
            counts in prop::collection::vec(prop::collection::vec(0u32..300, 5), 0..5),
            name in prop::option::of(".*"),
        ) {
            let mut columns = Columns::new(5);
            counts.iter().for_each(|column| columns.push(column));
            let grid = Grid {
                shape: Shape::default(),
                start_ns: 7,
                columns,
                max: 12,
            };
            let mut json = grid.json();
            json.name = name.as_deref();
            let mut written = Vec::new();
            json.write(&mut written).expect("it can be written");
            let expected = serde_json::to_vec(&json).expect("it can be written");
            prop_assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(&expected));
        }
    }

    fn grid(shape: Shape, times_ns: &[u64]) -> Grid {
        let mut map = HeatMap::new(shape);
        times_ns.iter().for_each(|&at| map.add(at));
        map.grid().expect("it has samples")
    }

    #[test]
    fn a_burst_has_cells_of_its_own() {
        // One sample each 10 ms on a core of 60 s, and 300 ms of all 99.
        let steady = (0..60).map(|second| second * SECOND + 5_000_000);
        let burst = (0..30).map(|n| 33 * SECOND + 405_000_000 + n * 10_000_000);
        let times: Vec<u64> = steady.chain(burst).collect();
        let grid = grid(Shape::default(), &times);
        assert_eq!(grid.columns.len(), 60);
        assert_eq!(grid.total(), 90);
        let (column, row) = grid.place(33 * SECOND + 410_000_000).expect("inside");
        assert_eq!((column, row), (33, 29));
        // 400 to 700 ms are 15 rows of 20 ms with two samples each, and so above all others.
        assert_eq!(grid.columns[33].iter().filter(|n| **n == 2).count(), 15);
        assert_eq!(grid.max, 2);
    }

    proptest! {
        #[test]
        fn whole_numbers_find_the_row_that_floating_point_does(
            second in prop_oneof![0u64..100_000, 1_600_000_000u64..1_900_000_000, (1 << 32) - 9..(1u64 << 32) + 9],
            edge in 0u64..1000,
            off in -3i64..4,
            rows in prop_oneof![Just(50usize), 1usize..1024],
        ) {
            // Near the edges of rows, where the two could differ.
            let edge = edge * 1_000_000 / rows as u64 % 1_000_000;
            let at_us = (second * 1_000_000 + edge).saturating_add_signed(off);
            let shape = Shape { rows, column_ns: SECOND };
            if let Some(cell) = shape.whole_cell_of_second(at_us) {
                prop_assert_eq!(cell, shape.cell_of_second(at_us));
            }
        }
    }

    #[test]
    fn most_moments_are_found_in_whole_numbers() {
        let shape = Shape::default();
        let n_plain = (0..1_000_000).filter(|at| shape.whole_cell_of_second(*at).is_some());
        assert_eq!(n_plain.count(), 1_000_000 - 50);
    }

    #[test]
    fn longer_columns_make_the_same_picture() {
        let shape = Shape {
            rows: 60,
            column_ns: 60 * SECOND,
        };
        let grid = grid(shape, &[0, 59 * SECOND, 61 * SECOND, 3600 * SECOND]);
        assert_eq!(grid.columns.len(), 61);
        assert_eq!(
            (grid.columns[0][59], grid.columns[0][0], grid.columns[1][58]),
            (1, 1, 1)
        );
    }

    #[test]
    fn a_picture_without_end_is_refused() {
        let mut map = HeatMap::new(Shape::default());
        map.add(0);
        map.add(u64::MAX);
        assert_eq!(map.grid(), None);
    }

    #[test]
    fn colors_grow_from_light_to_dark() {
        assert_eq!((color(0), color(255)), ([246, 247, 244], [14, 26, 66]));
        let light = |heat: u8| color(heat).map(u32::from).iter().sum::<u32>();
        assert!((1..=255).all(|heat| light(heat) <= light(heat - 1)));
        assert!(heat(1, 1_000_000) > 0);
        assert_eq!((heat(0, 5), heat(5, 5)), (0, 255));
    }
}
