//! `sexton profile export`

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use sexton_model::fact::sexton::SEXTON_WALL_CLOCK_NS;
use sexton_model::moment::Moment;
use sexton_model::wall::WallClock;
use sexton_profile::export::otlp::Otlp;
use sexton_profile::export::pprof::Pprof;
use sexton_profile::export::rows::Rows;
use sexton_profile::export::{firefox, folded, html, speedscope, svg};
use sexton_profile::flame::{StackCounts, Tree};
use sexton_profile::names::Suffixes;
use sexton_store::Bundle;

use super::input::{self, Answer, Inputs};
use super::{flame, marks, output};
use crate::cli::profile::{ExportArgs, ExportFormat};
use crate::exit::Exit;

/// The name of a profile in other viewers.
const NAME: &str = "sexton";

/// Writes samples for another viewer.
pub fn run(args: &ExportArgs) -> Result<Exit> {
    let inputs = Inputs::of(&args.input)?;
    let is_text = !matches!(args.format, ExportFormat::Pprof | ExportFormat::Otlp);
    let mut out = output::open(args.output.as_deref(), is_text)?;
    let answer = match args.format {
        ExportFormat::Pprof => return pprof(args, &inputs, out),
        ExportFormat::Otlp => otlp(args, &inputs, &mut out)?,
        ExportFormat::Speedscope | ExportFormat::Firefox => rows(args, &inputs, &mut out)?,
        ExportFormat::Folded | ExportFormat::Svg | ExportFormat::Html => {
            tree(args, &inputs, &mut out)?
        }
    };
    out.flush()?;
    Ok(answer.exit())
}

fn pprof(args: &ExportArgs, inputs: &Inputs, out: Box<dyn Write + Send>) -> Result<Exit> {
    let filter = inputs.filter(&args.input, &args.filter);
    let mut pprof = Pprof::new(out, filter)?;
    let answer = input::read(&inputs.files, &args.input.symbols, &mut pprof)?;
    answer.check(pprof.n_samples(), inputs.has_window(&args.input))?;
    pprof.finish(&answer.tables)?.flush()?;
    Ok(answer.exit())
}

fn otlp(args: &ExportArgs, inputs: &Inputs, out: &mut dyn Write) -> Result<Answer> {
    let mut otlp = Otlp::new(inputs.filter(&args.input, &args.filter));
    let answer = input::read(&inputs.files, &args.input.symbols, &mut otlp)?;
    answer.check(otlp.n_samples(), inputs.has_window(&args.input))?;
    let clock = clock_of(&inputs.files);
    // Without a note of the wall clock, times are those of the recording.
    let wall_ns = |at_ns: u64| {
        let ns = clock.ns(Moment::from_ns(at_ns));
        ns.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(at_ns)
    };
    otlp.write(out, &answer.tables, env!("SEXTON_VERSION"), wall_ns)?;
    Ok(answer)
}

/// What the wall clock said, where the recording is one bundle.
fn clock_of(files: &[PathBuf]) -> WallClock {
    match files {
        [bundle] if input::is_bundle(bundle) => Bundle::open(bundle)
            .map(|bundle| WallClock::of(&bundle.load(None, Some(&[&SEXTON_WALL_CLOCK_NS]))))
            .unwrap_or_default(),
        _ => WallClock::default(),
    }
}

fn rows(args: &ExportArgs, inputs: &Inputs, out: &mut dyn Write) -> Result<Answer> {
    let mut out = out;
    let weight = input::weight(&args.weight);
    let mut rows = Rows::new(inputs.filter(&args.input, &args.filter)).weighed(weight);
    let answer = input::read(&inputs.files, &args.input.symbols, &mut rows)?;
    answer.check(rows.n_samples(), inputs.has_window(&args.input))?;
    if args.format == ExportFormat::Speedscope {
        speedscope::write(&mut out, NAME, &rows, &answer.tables)?;
    } else {
        let marks = marks::collect(&[], &inputs.files, 0)?;
        firefox::write(&mut out, NAME, &rows, &answer.tables, &marks)?;
    }
    Ok(answer)
}

fn tree(args: &ExportArgs, inputs: &Inputs, out: &mut dyn Write) -> Result<Answer> {
    let mut out = out;
    let weight = input::weight(&args.weight);
    let filter = inputs.filter(&args.input, &args.filter);
    let mut counts = StackCounts::new(filter).weighed(weight);
    let answer = input::read(&inputs.files, &args.input.symbols, &mut counts)?;
    answer.check(counts.total().samples, inputs.has_window(&args.input))?;
    let suffixes = Suffixes {
        kernel: args.kernel,
    };
    let order = flame::order(args.inverted);
    let tree = Tree::build(&[&counts], &answer.tables, suffixes, order);
    let title = flame::title(&counts, None, &answer.tables);
    match args.format {
        ExportFormat::Svg => svg::write(&mut out, &title, &tree, false)?,
        ExportFormat::Html => html::write(&mut out, &title, &tree, false)?,
        _ => {
            output::tell_unit(&tree.unit);
            folded::write(&mut out, &tree, false)?;
        }
    }
    Ok(answer)
}
