//! `sexton profile diff`

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Result, bail};
use serde_json::json;
use sexton_model::stack::StackTables;
use sexton_profile::diff::{Change, Together, changes};
use sexton_profile::export::{folded, html, svg};
use sexton_profile::flame::{StackCounts, Tree};
use sexton_profile::names::Suffixes;
use sexton_report::text;

use super::input::{self, Answer};
use super::output;
use crate::cli::Format;
use crate::cli::profile::DiffArgs;
use crate::exit::Exit;

const SCHEMA: &str = "sexton.profile-diff/1";

/// A change below this is not listed, in percent: shares are shown with two digits.
const SMALLEST: f64 = 0.005;

/// Compares two recordings.
pub fn run(args: &DiffArgs) -> Result<Exit> {
    let mut together = Together::default();
    let (before, of_before) = count(args, &args.before, &mut together)?;
    let (after, of_after) = count(args, &args.after, &mut together)?;
    let tables = together.tables();
    match &args.output {
        Some(file) => draw(file, &before, &after, tables)?,
        None => list(args, &before, &after, tables)?,
    }
    let is_complete = of_before.is_complete && of_after.is_complete;
    Ok(if is_complete {
        Exit::NothingFound
    } else {
        Exit::Blind
    })
}

fn count(args: &DiffArgs, file: &Path, together: &mut Together) -> Result<(StackCounts, Answer)> {
    let files = [file.to_owned()];
    let filter = input::filter_of(&files, &args.filter);
    let mut counts = StackCounts::new(filter).weighed(input::weight(&args.weight));
    let mut side = together.next(&mut counts);
    let answer = input::read(&files, &args.symbols, &mut side)?;
    input::tell_event(&counts, together.tables());
    if counts.total().samples == 0 {
        let n = answer.n_samples;
        bail!(
            "{}: no sample is left, of {n} that were read",
            file.display()
        );
    }
    Ok((counts, answer))
}

fn list(
    args: &DiffArgs,
    before: &StackCounts,
    after: &StackCounts,
    tables: &StackTables,
) -> Result<()> {
    let mut changes = changes(before, after, tables);
    changes.retain(|change| change.own_change().abs() >= SMALLEST);
    let n_changed = changes.len() as u64;
    changes.truncate(args.top);
    let mut out = BufWriter::new(io::stdout().lock());
    if args.format.format() == Format::Json {
        let side = |counts: &StackCounts| {
            json!({
                "event": counts.event().map(|event| tables.name(event)),
                "unit": counts.unit(tables).name(),
                "samples": counts.total().samples,
                "weight": counts.total().weight,
            })
        };
        let answer = json!({
            "schema": SCHEMA,
            "before": side(before),
            "after": side(after),
            "functions": changes.iter().map(row).collect::<Vec<_>>(),
        });
        writeln!(out, "{answer}")?;
        return Ok(out.flush()?);
    }
    for (name, counts) in [("before", before), ("after", after)] {
        let event = counts.event().map_or("several events", |e| tables.name(e));
        let samples = text::count(counts.total().samples, "sample");
        let sum = counts.unit(tables).shown(counts.total().weight);
        writeln!(out, "{name:<7} {samples} of {event}, {sum}")?;
    }
    let n = text::count(n_changed, "function");
    writeln!(out, "{n} with another share (self)\n")?;
    writeln!(out, " before   after   change  function")?;
    for change in &changes {
        let module = change.module.rsplit('/').next().unwrap_or("");
        writeln!(
            out,
            "{:>6.2}% {:>6.2}% {:>+7.2}%  {} ({module})",
            change.own[0],
            change.own[1],
            change.own_change(),
            change.name
        )?;
    }
    Ok(out.flush()?)
}

fn row(change: &Change) -> serde_json::Value {
    json!({
        "function": change.name,
        "module": change.module,
        "self_percent_before": change.own[0],
        "self_percent_after": change.own[1],
        "total_percent_before": change.total[0],
        "total_percent_after": change.total[1],
    })
}

fn draw(
    file: &Path,
    before: &StackCounts,
    after: &StackCounts,
    tables: &StackTables,
) -> Result<()> {
    let tree = Tree::difference(after, before, tables, Suffixes::default());
    let title = format!(
        "{}, compared with {}",
        text::count(after.total().samples, "sample"),
        text::count(before.total().samples, "sample")
    );
    let ending = output::ending(Some(file));
    if !matches!(ending, Some("svg" | "html" | "folded")) {
        bail!("-o: write to a file that ends in .svg, .html or .folded");
    }
    let mut out = output::open(Some(file), true)?;
    match ending {
        Some("svg") => svg::write(&mut out, &title, &tree, true)?,
        Some("html") => html::write(&mut out, &title, &tree, true)?,
        _ => folded::write(&mut out, &tree, true)?,
    }
    Ok(out.flush()?)
}
