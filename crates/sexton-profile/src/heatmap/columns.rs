//! Counts by column and row, one column behind the other in memory: there are tens of
//! thousands of columns in a day.

use std::ops::Index;
use std::slice::ChunksExact;

use serde::{Serialize, Serializer};

/// Columns of the same number of rows, from the top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    rows: usize,
    cells: Vec<u32>,
}

impl Columns {
    /// None yet, of this many rows.
    pub(super) fn new(rows: usize) -> Self {
        Self {
            rows: rows.max(1),
            cells: Vec::new(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.cells.len() / self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// All of them, in order.
    pub fn iter(&self) -> ChunksExact<'_, u32> {
        self.cells.chunks_exact(self.rows)
    }

    /// The counts of all, column by column.
    pub(super) fn cells(&self) -> &[u32] {
        &self.cells
    }

    /// Room for one cell, to count in it.
    pub(super) fn cell_mut(&mut self, column: usize, row: usize) -> Option<&mut u32> {
        let is_one = row < self.rows;
        let at = column * self.rows + row;
        is_one.then(|| self.cells.get_mut(at)).flatten()
    }

    /// One more, that nothing was counted in.
    pub(super) fn push_empty(&mut self) {
        self.cells.resize(self.cells.len() + self.rows, 0);
    }

    /// One more, with these counts.
    pub(super) fn push(&mut self, column: &[u32]) {
        debug_assert_eq!(column.len(), self.rows, "columns have as many rows");
        self.cells.extend_from_slice(column);
    }

    pub(super) fn reserve(&mut self, n_columns: usize) {
        self.cells.reserve_exact(n_columns * self.rows);
    }
}

impl Index<usize> for Columns {
    type Output = [u32];

    fn index(&self, column: usize) -> &[u32] {
        &self.cells[column * self.rows..(column + 1) * self.rows]
    }
}

impl<'a> IntoIterator for &'a Columns {
    type Item = &'a [u32];
    type IntoIter = ChunksExact<'a, u32>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for Columns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
