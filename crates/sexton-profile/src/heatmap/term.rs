//! A heat map for a terminal: one character for each cell, as many columns as fit.

use std::fmt::Write;

use sexton_model::text::escape;

use super::{Grid, Mark, color, heat};

/// From nothing to the hottest, where there are no colors.
const SHADES: [char; 6] = [' ', '·', '░', '▒', '▓', '█'];

/// How to draw.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Characters in a line.
    pub width: usize,
    /// Lines for a heat map; cells are added up to fit.
    pub height: usize,
    /// Whether the terminal shows colors.
    pub colors: bool,
}

/// Draws one heat map.
pub fn text(name: &str, grid: &Grid, marks: &[Mark], options: Options) -> String {
    const LABEL: usize = 8;
    let width = options.width.saturating_sub(LABEL).max(1);
    let merged_columns = grid.columns.len().div_ceil(width).max(1);
    let merged_rows = grid.shape.rows.div_ceil(options.height.max(1)).max(1);
    let cells = merge(grid, merged_columns, merged_rows);
    let max = cells.iter().flatten().copied().max().unwrap_or(0);
    let n_lines = grid.shape.rows.div_ceil(merged_rows);
    let seconds = grid.shape.column_ns as u128 * merged_columns as u128 / 1_000_000;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}: {} samples; a column is {}, a cell {} ms, at most {max} in one",
        escape(name.as_bytes()),
        grid.total(),
        span(seconds),
        grid.shape.row_ns() * merged_rows as u64 / 1_000_000,
    );
    for line in 0..n_lines {
        let above = (n_lines - line) as u64 * merged_rows as u64 * grid.shape.row_ns();
        let _ = write!(
            text,
            "{:>5}ms ",
            above.min(grid.shape.column_ns) / 1_000_000
        );
        for column in &cells {
            push_cell(&mut text, column[line], max, options.colors);
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "{:LABEL$}{}",
        "",
        axis(grid, cells.len(), merged_columns)
    );
    for mark in marks {
        if let Some((column, _)) = grid.place(mark.at_ns) {
            let at = column / merged_columns;
            let _ = writeln!(
                text,
                "{:LABEL$}{:at$}^ {}",
                "",
                "",
                escape(mark.text.as_bytes())
            );
        }
    }
    text
}

/// Adds up cells so that the picture fits.
fn merge(grid: &Grid, columns: usize, rows: usize) -> Vec<Vec<u32>> {
    let n_lines = grid.shape.rows.div_ceil(rows);
    let all: Vec<&[u32]> = grid.columns.iter().collect();
    let merged = all.chunks(columns).map(|chunk| {
        let mut lines = vec![0u32; n_lines];
        for column in chunk {
            for (row, count) in column.iter().enumerate() {
                // Rows are counted from the bottom, where a column begins.
                let from_bottom = (grid.shape.rows - 1 - row) / rows;
                let line = &mut lines[n_lines - 1 - from_bottom];
                *line = line.saturating_add(*count);
            }
        }
        lines
    });
    merged.collect()
}

fn push_cell(text: &mut String, count: u32, max: u32, colors: bool) {
    let heat = heat(count, max);
    if colors {
        let [r, g, b] = color(heat);
        let _ = write!(text, "\x1b[48;2;{r};{g};{b}m \x1b[0m");
    } else {
        text.push(SHADES[usize::from(heat).div_ceil(51)]);
    }
}

/// Seconds below the columns, each at its place.
fn axis(grid: &Grid, n_cells: usize, merged: usize) -> String {
    let mut axis = String::new();
    let mut at = 0;
    while at < n_cells {
        let seconds = u128::from(grid.shape.column_ns) * (at * merged) as u128 / 1_000_000_000;
        let label = span(seconds * 1000);
        let padding = at.saturating_sub(axis.chars().count());
        axis.extend(std::iter::repeat_n(' ', padding));
        if axis.len() + label.len() > n_cells {
            break;
        }
        axis.push_str(&label);
        at += 10;
    }
    axis
}

/// A time in the unit that suits it.
fn span(ms: u128) -> String {
    match ms {
        0..1000 if ms > 0 => format!("{ms}ms"),
        _ if ms.is_multiple_of(3_600_000) && ms > 0 => format!("{}h", ms / 3_600_000),
        _ if ms.is_multiple_of(60_000) && ms > 0 => format!("{}m", ms / 60_000),
        _ => format!("{}s", ms / 1000),
    }
}
