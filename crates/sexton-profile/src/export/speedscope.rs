//! speedscope: <https://www.speedscope.app/file-format-schema.json>. One profile for each
//! thread, the samples in their order.

use std::io::{self, Write};

use serde_json::json;
use sexton_model::stack::StackTables;

use super::pprof::is_clock;
use super::rows::Rows;
use crate::names::{self, Suffixes};

/// Writes the samples.
pub fn write<W: Write>(
    out: &mut W,
    name: &str,
    rows: &Rows,
    tables: &StackTables,
) -> io::Result<()> {
    let event = rows.event().map_or("", |event| tables.name(event));
    let unit = if is_clock(event) {
        "nanoseconds"
    } else {
        "none"
    };
    write!(
        out,
        r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"sexton","name":{},"shared":{{"frames":["#,
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
    for (n, thread) in rows.threads().enumerate() {
        let total: u64 = thread.rows.iter().map(|row| row.weight).sum();
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
            write!(out, "{}{}", comma(n), row.weight)?;
        }
        write!(out, "]}}")?;
    }
    writeln!(out, "]}}")
}

fn comma(n: usize) -> &'static str {
    if n == 0 { "" } else { "," }
}
