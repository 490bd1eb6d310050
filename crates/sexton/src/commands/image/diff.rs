//! `sexton image diff`

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use sexton_report::audit as report;

use super::judged::judge_as;
use crate::cli::{Format, ImageDiffArgs};
use crate::exit::Exit;

/// Judges both and writes what differs.
pub(super) fn run(args: &ImageDiffArgs) -> Result<Exit> {
    let shape = args.shape.as_deref();
    let a = judge_as(&args.a, shape, &args.signatures)?.audit;
    let b = judge_as(&args.b, shape, &args.signatures)?.audit;
    let changes = report::diff(&a, &b);
    let mut out = BufWriter::new(io::stdout().lock());
    match args.format.format() {
        Format::Text => report::diff_text(&mut out, &changes, args.all)?,
        Format::Json => report::diff_json(&mut out, &a.source, &b.source, &changes)?,
    }
    out.flush()?;
    Ok(if changes.is_empty() {
        Exit::NothingFound
    } else {
        Exit::Found
    })
}
