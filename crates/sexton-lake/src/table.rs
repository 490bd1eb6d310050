//! A flat table in memory: what is written to a file of the lake.

use std::collections::BTreeMap;
use std::sync::Arc;

/// One value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Text.
    Text(Arc<str>),
    /// A number.
    Number(f64),
    /// Microseconds since 1970.
    Time(i64),
}

/// The values of one column; rows without one have `None`.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells {
    /// Text.
    Text(Vec<Option<Arc<str>>>),
    /// Numbers.
    Number(Vec<Option<f64>>),
    /// Microseconds since 1970.
    Time(Vec<Option<i64>>),
}

impl Cells {
    fn of(cell: &Cell) -> Self {
        match cell {
            Cell::Text(_) => Self::Text(Vec::new()),
            Cell::Number(_) => Self::Number(Vec::new()),
            Cell::Time(_) => Self::Time(Vec::new()),
        }
    }

    /// Pads with nothing up to `row`, then adds the cell. A cell of another kind than the
    /// column's is nothing: columns are of one kind by their name.
    fn put(&mut self, row: usize, cell: Cell) {
        match (self, cell) {
            (Self::Text(cells), Cell::Text(text)) => put(cells, row, text),
            (Self::Number(cells), Cell::Number(number)) => put(cells, row, number),
            (Self::Time(cells), Cell::Time(time)) => put(cells, row, time),
            _ => {}
        }
    }

    pub(crate) fn pad(&mut self, n_rows: usize) {
        match self {
            Self::Text(cells) => cells.resize(n_rows, None),
            Self::Number(cells) => cells.resize(n_rows, None),
            Self::Time(cells) => cells.resize(n_rows, None),
        }
    }
}

fn put<T: Clone>(cells: &mut Vec<Option<T>>, row: usize, value: T) {
    cells.resize(row, None);
    cells.push(Some(value));
}

/// Rows under construction, by columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    n_rows: usize,
    columns: BTreeMap<String, Cells>,
}

impl Table {
    /// Adds a row.
    pub fn push<'a>(&mut self, cells: impl IntoIterator<Item = (&'a str, Cell)>) {
        let row = self.n_rows;
        for (name, cell) in cells {
            match self.columns.get_mut(name) {
                Some(column) => column.put(row, cell),
                None => {
                    let mut column = Cells::of(&cell);
                    column.put(row, cell);
                    self.columns.insert(name.to_owned(), column);
                }
            }
        }
        self.n_rows += 1;
    }

    /// How many rows it has.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Its columns, each as long as the table.
    pub fn finished(mut self) -> BTreeMap<String, Cells> {
        for column in self.columns.values_mut() {
            column.pad(self.n_rows);
        }
        self.columns
    }
}
