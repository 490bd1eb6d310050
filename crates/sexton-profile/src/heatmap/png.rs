//! A heat map as PNG: one block of pixels for each cell, marks as lines.

use std::io::{self, Write};

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

use super::{Grid, Mark, color, heat};

/// Pixels of a cell in each direction, and between one heat map and the next.
const CELL: usize = 6;
const GAP: usize = 10;

/// Wider pictures get narrower cells, at least one pixel.
const MAX_WIDTH: usize = 16_384;

const GROUND: [u8; 3] = [238, 238, 238];
const MARK: [u8; 3] = [0, 70, 200];

/// Writes heat maps over the same time, one below the other.
pub fn write<W: Write>(out: &mut W, grids: &[(String, Grid)], marks: &[Mark]) -> io::Result<()> {
    let n_columns = grids
        .iter()
        .map(|(_, grid)| grid.columns.len())
        .max()
        .unwrap_or(0);
    let cell_width = (MAX_WIDTH / n_columns.max(1)).clamp(1, CELL);
    let width = (n_columns * cell_width).max(1);
    let heights = grids.iter().map(|(_, grid)| grid.shape.rows * CELL + GAP);
    let height = heights.sum::<usize>().max(1);
    out.write_all(b"\x89PNG\r\n\x1a\n")?;
    let mut header = Vec::with_capacity(13);
    for size in [width, height] {
        let size = u32::try_from(size).map_err(io::Error::other)?;
        header.extend_from_slice(&size.to_be_bytes());
    }
    // 8 bits each of red, green and blue; not interlaced.
    header.extend_from_slice(&[8, 2, 0, 0, 0]);
    chunk(out, *b"IHDR", &header)?;
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    for (_, grid) in grids {
        write_grid(&mut packed, grid, marks, cell_width, width)?;
    }
    if grids.is_empty() {
        packed.write_all(&[0, 255, 255, 255])?;
    }
    chunk(out, *b"IDAT", &packed.finish()?)?;
    chunk(out, *b"IEND", &[])
}

fn write_grid<W: Write>(
    out: &mut W,
    grid: &Grid,
    marks: &[Mark],
    cell_width: usize,
    width: usize,
) -> io::Result<()> {
    let marked: Vec<(usize, usize)> = marks
        .iter()
        .filter_map(|mark| grid.place(mark.at_ns))
        .collect();
    let mut line = vec![0; 1 + width * 3];
    for row in 0..grid.shape.rows {
        for (n, column) in grid.columns.iter().enumerate() {
            let count = column.get(row).copied().unwrap_or(0);
            let is_marked = marked.contains(&(n, row));
            let pixel = if is_marked {
                MARK
            } else {
                color(heat(count, grid.max))
            };
            for x in n * cell_width..(n + 1) * cell_width {
                line[1 + x * 3..4 + x * 3].copy_from_slice(&pixel);
            }
        }
        for _ in 0..CELL {
            out.write_all(&line)?;
        }
    }
    for pixel in line[1..].chunks_exact_mut(3) {
        pixel.copy_from_slice(&GROUND);
    }
    // Below the picture a tick for each second with a mark, which one cell would not show.
    for (column, _) in marked {
        for x in column * cell_width..(column + 1) * cell_width {
            line[1 + x * 3..4 + x * 3].copy_from_slice(&MARK);
        }
    }
    for _ in 0..GAP {
        out.write_all(&line)?;
    }
    Ok(())
}

fn chunk<W: Write>(out: &mut W, kind: [u8; 4], body: &[u8]) -> io::Result<()> {
    let len = u32::try_from(body.len()).map_err(io::Error::other)?;
    let mut crc = Crc::new();
    crc.update(&kind);
    crc.update(body);
    out.write_all(&len.to_be_bytes())?;
    out.write_all(&kind)?;
    out.write_all(body)?;
    out.write_all(&crc.sum().to_be_bytes())
}
