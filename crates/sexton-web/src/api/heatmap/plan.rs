//! Where the cells of a heat map are.

use sexton_profile::heatmap::{Grid, Shape};

use super::counted::part;
use super::{Part, PartView};

/// Where cells are.
pub(super) struct Plan {
    pub(super) start_ns: u64,
    pub(super) step_ns: u64,
    /// What the rows of a column are parts of.
    pub(super) row_span_ns: u64,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Plan {
    pub(super) fn shape(&self) -> Shape {
        Shape {
            rows: self.rows,
            column_ns: self.row_span_ns,
        }
    }

    /// All pictures in one.
    pub(super) fn cells(&self, grids: &[(String, Grid)]) -> Vec<u32> {
        let mut values = vec![0; self.rows * self.columns];
        for (_, grid) in grids {
            self.place(grid, &mut values);
        }
        values
    }

    /// A row for each thread, the busiest on top, as many as there is room for; who they are,
    /// and how many there was no room for.
    pub(super) fn tracks(&self, grids: Vec<(String, Grid)>) -> (Vec<u32>, Vec<PartView>, usize) {
        let threads = grids.into_iter().filter(|(_, grid)| grid.total() > 0);
        let mut threads: Vec<(PartView, Grid)> = threads
            .filter_map(|(label, grid)| Some((part(Part::Thread, label, &grid)?, grid)))
            .collect();
        let n_left_out = threads.len().saturating_sub(self.rows);
        threads.truncate(self.rows);
        let mut values = vec![0; threads.len().max(1) * self.columns];
        for (row, (_, grid)) in threads.iter().rev().enumerate() {
            for (n, column) in grid.columns.iter().enumerate() {
                let at_ns = grid.start_ns + n as u64 * grid.shape.column_ns;
                let place = at_ns.checked_sub(self.start_ns).map(|ns| ns / self.step_ns);
                let place = place.and_then(|place| usize::try_from(place).ok());
                if let Some(place) = place.filter(|place| *place < self.columns) {
                    values[row * self.columns + place] = column.iter().sum();
                }
            }
        }
        let tracks = threads.into_iter().map(|(track, _)| track).collect();
        (values, tracks, n_left_out)
    }

    /// Adds a picture of cells that are no longer than ours; its rows are told from the top.
    pub(super) fn place(&self, grid: &Grid, values: &mut [u32]) {
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
