//! A heat map as SVG: opens in any browser, scales, and tells each cell's count.

use std::io::{self, Write};

use sexton_model::text::xml;

use super::{Grid, Mark, color, heat};

const CELL: usize = 8;
const LEFT: usize = 60;
const TOP: usize = 28;
const BOTTOM: usize = 28;

/// Writes heat maps over the same time, one below the other.
pub fn write<W: Write>(out: &mut W, grids: &[(String, Grid)], marks: &[Mark]) -> io::Result<()> {
    let n_columns = grids
        .iter()
        .map(|(_, grid)| grid.columns.len())
        .max()
        .unwrap_or(0);
    let width = LEFT + n_columns * CELL + 20;
    let height: usize = grids.iter().map(|(_, grid)| height_of(grid)).sum();
    writeln!(
        out,
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="#f4f4f4"/>"##
    )?;
    let mut top = 0;
    for (name, grid) in grids {
        write_grid(out, name, grid, marks, top)?;
        top += height_of(grid);
    }
    writeln!(out, "</svg>")
}

fn height_of(grid: &Grid) -> usize {
    TOP + grid.shape.rows * CELL + BOTTOM
}

fn write_grid<W: Write>(
    out: &mut W,
    name: &str,
    grid: &Grid,
    marks: &[Mark],
    top: usize,
) -> io::Result<()> {
    let (rows, row_ns) = (grid.shape.rows, grid.shape.row_ns());
    let y0 = top + TOP;
    let (width, height) = (grid.columns.len() * CELL, rows * CELL);
    writeln!(
        out,
        r##"<text x="{LEFT}" y="{}" font-weight="bold">{} ({} samples, at most {} in a cell)</text><rect x="{LEFT}" y="{y0}" width="{width}" height="{height}" fill="#fff"/>"##,
        top + 18,
        xml(name),
        grid.total(),
        grid.max,
    )?;
    for (n, column) in grid.columns.iter().enumerate() {
        for (row, &count) in column.iter().enumerate().filter(|(_, count)| **count > 0) {
            let [r, g, b] = color(heat(count, grid.max));
            let offset_ms = (rows - 1 - row) as u64 * row_ns / 1_000_000;
            writeln!(
                out,
                r##"<rect x="{}" y="{}" width="{CELL}" height="{CELL}" fill="#{r:02x}{g:02x}{b:02x}"><title>{} s + {offset_ms} ms: {count}</title></rect>"##,
                LEFT + n * CELL,
                y0 + row * CELL,
                n as u64 * grid.shape.column_ns / 1_000_000_000,
            )?;
        }
    }
    write_axes(out, grid, y0)?;
    for mark in marks {
        if let Some((column, row)) = grid.place(mark.at_ns) {
            let (x, y) = (LEFT + column * CELL, y0 + row * CELL);
            writeln!(
                out,
                r##"<g stroke="#0046c8" fill="none"><title>{}</title><path d="M{} {y0}v{height}" stroke-dasharray="2 2"/><rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" stroke-width="2"/></g>"##,
                xml(&mark.text),
                x + CELL / 2,
            )?;
        }
    }
    Ok(())
}

fn write_axes<W: Write>(out: &mut W, grid: &Grid, y0: usize) -> io::Result<()> {
    let rows = grid.shape.rows;
    let bottom = y0 + rows * CELL;
    for (label, y) in [(grid.shape.column_ns, y0 + 8), (0, bottom)] {
        let ms = label / 1_000_000;
        writeln!(
            out,
            r##"<text x="{}" y="{y}" text-anchor="end">{ms} ms</text>"##,
            LEFT - 4
        )?;
    }
    let step = (grid.columns.len() / 20).max(5).next_multiple_of(5);
    for n in (0..grid.columns.len()).step_by(step) {
        let seconds = n as u64 * grid.shape.column_ns / 1_000_000_000;
        writeln!(
            out,
            r##"<text x="{}" y="{}">{seconds}</text>"##,
            LEFT + n * CELL,
            bottom + 14
        )?;
    }
    Ok(())
}
