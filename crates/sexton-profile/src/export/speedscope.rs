//! speedscope: <https://www.speedscope.app/file-format-schema.json>. One profile for each
//! thread, the one with most first, its samples in their order.

use std::cmp::Reverse;
use std::io::{self, Write};

use serde_json::json;
use sexton_model::stack::StackTables;

use super::rows::{Rows, Thread};
use crate::names::{self, Suffixes};
use crate::weight::Unit;

/// Writes the samples.
pub fn write<W: Write>(
    out: &mut W,
    name: &str,
    rows: &Rows,
    tables: &StackTables,
) -> io::Result<()> {
    let unit = match rows.unit(tables) {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Samples | Unit::Events(_) => "none",
    };
    let total_of = |thread: &Thread| {
        let weights = thread.rows.iter().map(|row| rows.weight_of(row));
        weights.sum::<u64>()
    };
    let mut threads: Vec<(u64, &Thread)> = rows.threads().map(|t| (total_of(t), t)).collect();
    // It opens on the first.
    threads.sort_by_key(|(total, thread)| (Reverse(*total), thread.pid, thread.tid));
    write!(
        out,
        r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"sexton","name":{},"activeProfileIndex":0,"shared":{{"frames":["#,
        json!(name)
    )?;
    for (n, frame) in tables.frames.iter().enumerate() {
        let name = names::of_frame(tables, frame, "", Suffixes::default());
        let mut entry = json!({ "name": name });
        if let Some(module) = frame.module {
            entry["file"] = json!(tables.name(module));
        }
        write!(out, "{}{entry}", comma(n))?;
    }
    write!(out, r#"]}},"profiles":["#)?;
    for (n, (total, thread)) in threads.into_iter().enumerate() {
        let title = format!("{} {}", tables.name(thread.comm), thread.tid);
        write!(
            out,
            r#"{}{{"type":"sampled","name":{},"unit":"{unit}","startValue":0,"endValue":{total},"samples":["#,
            comma(n),
            json!(title)
        )?;
        for (n, row) in thread.rows.iter().enumerate() {
            let mut frames: Vec<u32> = tables.frames_of(row.stack).map(|id| id.0).collect();
            frames.reverse();
            write!(out, "{}{}", comma(n), json!(frames))?;
        }
        write!(out, r#"],"weights":["#)?;
        for (n, row) in thread.rows.iter().enumerate() {
            write!(out, "{}{}", comma(n), rows.weight_of(row))?;
        }
        write!(out, "]}}")?;
    }
    writeln!(out, "]}}")
}

fn comma(n: usize) -> &'static str {
    if n == 0 { "" } else { "," }
}
