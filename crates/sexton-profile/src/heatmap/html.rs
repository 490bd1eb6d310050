//! A heat map as one HTML page: hover to read a cell, drag to choose a window and see what
//! to type for its flame graph. Nothing is loaded from anywhere.

use std::io::{self, Write};

use serde_json::json;
use sexton_model::text::xml;

use super::{Grid, Mark, color};
use crate::export::script_json;

const PAGE: &str = include_str!("heatmap.html");

/// Writes heat maps over the same time, one below the other.
pub fn write<W: Write>(
    out: &mut W,
    title: &str,
    grids: &[(String, Grid)],
    marks: &[Mark],
) -> io::Result<()> {
    let maps = grids.iter().map(|(name, grid)| {
        json!({
            "name": name,
            "start_ns": grid.start_ns.to_string(),
            "column_ns": grid.shape.column_ns,
            "rows": grid.shape.rows,
            "max": grid.max,
            "values": grid.columns,
            "marks": marks.iter().filter_map(|mark| {
                let (column, row) = grid.place(mark.at_ns)?;
                Some(json!([column, row, mark.text]))
            }).collect::<Vec<_>>(),
        })
    });
    let data = serde_json::Value::Array(maps.collect());
    let ramp: Vec<[u8; 3]> = (0..=255).map(color).collect();
    let page = PAGE
        .replace("{{title}}", &xml(title))
        .replace("{{ramp}}", &json!(ramp).to_string());
    let (before, after) = page.split_once("{{data}}").unwrap_or((&page, ""));
    out.write_all(before.as_bytes())?;
    out.write_all(script_json(&data).as_bytes())?;
    out.write_all(after.as_bytes())
}
