//! `sexton profile heatmap`

use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result, bail};
use sexton_profile::busiest::Busiest;
use sexton_profile::filter::{EventChoice, Filter};
use sexton_profile::heatmap::facets::{By, Facets};
use sexton_profile::heatmap::{Grid, Mark, Shape, html, png, svg, term};

use super::input::{self, Inputs};
use super::{marks, output};
use crate::cli::profile::{HeatmapArgs, HeatmapBy, HeatmapFormat};
use crate::exit::Exit;

/// A terminal whose size is not known.
const WIDTH: usize = 80;
const HEIGHT: usize = 25;

const SCHEMA: &str = "sexton.heatmap/1";

/// How many busy windows are listed.
const N_WINDOWS: usize = 10;

/// Draws heat maps, or lists the busiest windows.
pub fn run(args: &HeatmapArgs) -> Result<Exit> {
    let inputs = Inputs::of(&args.input)?;
    let mut filter = inputs.filter(&args.input, &args.filter);
    let is_bundle = matches!(&inputs.files[..], [file] if input::is_bundle(file));
    if filter.event == EventChoice::First && is_bundle {
        // Then only times and cores need to be read.
        filter.event = EventChoice::OfCores;
    }
    match args.busiest {
        Some(width) => busiest(args, &inputs, filter, width.as_nanos()),
        None => heatmap(args, &inputs, filter),
    }
}

fn heatmap(args: &HeatmapArgs, inputs: &Inputs, filter: Filter) -> Result<Exit> {
    let format = format(args)?;
    let shape = Shape {
        rows: args.rows,
        column_ns: u64::try_from(args.column.as_nanos()).context("--column is too long")?,
    };
    let mut facets = Facets::new(by(args.by), shape, filter);
    let answer = input::read(&inputs.files, &args.input.symbols, &mut facets)?;
    check_times(&answer)?;
    let grids = facets.grids();
    let mut grids = grids.context(
        "the recording is too long for columns of this width: choose a window with --from and --to, or a wider --column 1m",
    )?;
    if grids.is_empty() {
        bail!(
            "no sample is left to draw, of {} that were read",
            answer.n_samples
        );
    }
    grids.truncate(args.top.max(1));
    let marks = marks::collect(&args.mark, &inputs.files, facets.origin_ns().unwrap_or(0))?;
    let is_text = !matches!(format, HeatmapFormat::Png);
    let mut out = output::open(args.output.as_deref(), is_text)?;
    write(&mut out, format, args, &grids, &marks)?;
    out.flush()?;
    Ok(answer.exit())
}

fn write(
    out: &mut dyn Write,
    format: HeatmapFormat,
    args: &HeatmapArgs,
    grids: &[(String, Grid)],
    marks: &[Mark],
) -> Result<()> {
    let mut out = out;
    match format {
        HeatmapFormat::Png => png::write(&mut out, grids, marks)?,
        HeatmapFormat::Svg => svg::write(&mut out, grids, marks)?,
        HeatmapFormat::Html => html::write(&mut out, "When cores were busy", grids, marks)?,
        HeatmapFormat::Json => out.write_all(&json(grids, marks)?)?,
        HeatmapFormat::Text => {
            let is_terminal = args.output.is_none() && io::stdout().is_terminal();
            let options = term::Options {
                width: width(is_terminal),
                height: HEIGHT,
                colors: is_terminal && std::env::var_os("NO_COLOR").is_none(),
            };
            for (name, grid) in grids {
                write!(out, "{}", term::text(name, grid, marks, options))?;
            }
        }
    }
    Ok(())
}

/// The answer for other programs.
fn json(grids: &[(String, Grid)], marks: &[Mark]) -> Result<Vec<u8>> {
    // Two bytes for most cells, and there may be millions of them.
    let n_cells = |grid: &Grid| grid.columns.len() * (grid.shape.rows + 1);
    let n_cells: usize = grids.iter().map(|(_, grid)| n_cells(grid)).sum();
    let mut text = Vec::with_capacity(n_cells * 2 + 4096);
    text.extend_from_slice(b"{\"maps\":[");
    for (i, (name, grid)) in grids.iter().enumerate() {
        if i > 0 {
            text.push(b',');
        }
        let mut map = grid.json();
        map.name = Some(name);
        map.write(&mut text)?;
    }
    text.extend_from_slice(b"],\"marks\":");
    serde_json::to_writer(&mut text, marks)?;
    writeln!(text, ",\"schema\":\"{SCHEMA}\"}}")?;
    Ok(text)
}

fn busiest(args: &HeatmapArgs, inputs: &Inputs, filter: Filter, width_ns: u128) -> Result<Exit> {
    let width_ns = u64::try_from(width_ns).context("--busiest is too long")?;
    let mut busiest = Busiest::new(width_ns, filter);
    let answer = input::read(&inputs.files, &args.input.symbols, &mut busiest)?;
    check_times(&answer)?;
    let origin = busiest.origin_ns().unwrap_or(0);
    let mut out = output::open(args.output.as_deref(), true)?;
    writeln!(
        out,
        "{:>12} {:>12} {:>5} {:>8} {:>6}",
        "from", "to", "core", "samples", "usual"
    )?;
    for window in busiest.windows(N_WINDOWS) {
        writeln!(
            out,
            "{:>12} {:>12} {:>5} {:>8} {:>6}",
            seconds(window.from_ns, origin),
            seconds(window.to_ns, origin),
            core(window.cpu),
            window.n_samples,
            window.usual
        )?;
    }
    out.flush()?;
    Ok(answer.exit())
}

fn core(cpu: u32) -> String {
    if cpu == sexton_profile::NO_CPU {
        "?".to_owned()
    } else {
        cpu.to_string()
    }
}

/// As `--from` and `--to` take it.
fn seconds(at_ns: u64, origin_ns: u64) -> String {
    let ms = at_ns.saturating_sub(origin_ns) / 1_000_000;
    format!("{}.{:03}s", ms / 1000, ms % 1000)
}

fn check_times(answer: &input::Answer) -> Result<()> {
    if !answer.has_times {
        bail!(
            "the samples of this recording have no times (folded stacks never have, perf script \
             text only with -F +time); flame and top need none"
        );
    }
    Ok(())
}

fn by(by: HeatmapBy) -> By {
    match by {
        HeatmapBy::All => By::All,
        HeatmapBy::Core => By::Core,
        HeatmapBy::Process => By::Process,
        HeatmapBy::Thread => By::Thread,
        HeatmapBy::Comm => By::Comm,
        HeatmapBy::Cgroup => By::Cgroup,
        HeatmapBy::Unit => By::Unit,
    }
}

fn format(args: &HeatmapArgs) -> Result<HeatmapFormat> {
    if let Some(format) = args.format {
        return Ok(format);
    }
    Ok(match output::ending(args.output.as_deref()) {
        None | Some("txt") => HeatmapFormat::Text,
        Some("png") => HeatmapFormat::Png,
        Some("svg") => HeatmapFormat::Svg,
        Some("html") => HeatmapFormat::Html,
        Some("json") => HeatmapFormat::Json,
        Some(other) => bail!("-o: no heat map ends in .{other}; --format says what to write"),
    })
}

/// The width of the terminal, or 80.
fn width(is_terminal: bool) -> usize {
    let size = is_terminal
        .then(|| rustix::termios::tcgetwinsize(io::stdout()).ok())
        .flatten();
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { WIDTH } else { columns }
}
