//! `sexton profile flame`

use std::io::Write;
use std::ops::RangeInclusive;

use anyhow::{Result, bail};
use sexton_model::stack::{StackSample, StackTables};
use sexton_profile::export::{folded, html, svg};
use sexton_profile::filter::Filter;
use sexton_profile::flame::{StackCounts, Tree};
use sexton_profile::import::Sink;
use sexton_profile::names::Suffixes;

use super::input::{self, Inputs};
use super::output;
use crate::cli::profile::{FlameArgs, FlameFormat};
use crate::exit::Exit;

/// Two windows at once.
struct Both {
    now: StackCounts,
    before: Option<StackCounts>,
}

impl Sink for Both {
    fn sample(&mut self, sample: &StackSample, tables: &StackTables) {
        self.now.sample(sample, tables);
        if let Some(before) = &mut self.before {
            before.sample(sample, tables);
        }
    }

    fn wants_addresses(&self) -> bool {
        self.now.wants_addresses()
    }

    fn begin(&mut self, at_ns: u64) {
        self.now.begin(at_ns);
        if let Some(before) = &mut self.before {
            before.begin(at_ns);
        }
    }

    /// From the beginning of the first to the end of the last.
    fn window_ns(&self) -> RangeInclusive<u64> {
        let now = self.now.window_ns();
        let before = self.before.as_ref().map(Sink::window_ns);
        let before = before.unwrap_or_else(|| now.clone());
        *now.start().min(before.start())..=*now.end().max(before.end())
    }
}

/// Draws a flame graph.
pub fn run(args: &FlameArgs) -> Result<Exit> {
    let format = format(args)?;
    let inputs = Inputs::of(&args.input)?;
    let filter = inputs.filter(&args.input, &args.filter);
    let before = args.against.map(|(from, to)| {
        StackCounts::new(Filter {
            from: Some(from),
            to: Some(to),
            ..filter.clone()
        })
    });
    let mut both = Both {
        now: StackCounts::new(filter),
        before,
    };
    let answer = input::read(&inputs.files, &args.input.symbols, &mut both)?;
    if both.now.total().samples == 0 {
        bail!(
            "no sample is left to draw, of {} that were read",
            answer.n_samples
        );
    }
    let tree = match &both.before {
        Some(before) => Tree::difference(&both.now, before, &answer.tables, Suffixes::default()),
        None => Tree::of(&both.now, &answer.tables, Suffixes::default()),
    };
    let is_difference = both.before.is_some();
    let title = title(&both, &answer.tables);
    let mut out = output::open(args.output.as_deref(), true)?;
    match format {
        FlameFormat::Svg => svg::write(&mut out, &title, &tree, is_difference)?,
        FlameFormat::Html => html::write(&mut out, &title, &tree, is_difference)?,
        FlameFormat::Folded => folded::write(&mut out, &tree, is_difference)?,
        FlameFormat::Text => {
            let text = sexton_profile::flame_text::text(&tree, args.at_least, is_difference);
            write!(out, "{title}\n{text}")?;
        }
    }
    out.flush()?;
    Ok(answer.exit())
}

fn title(both: &Both, tables: &StackTables) -> String {
    let event = both.now.event().map_or("", |event| tables.name(event));
    let n = both.now.total().samples;
    match &both.before {
        None => format!("{n} samples of {event}"),
        Some(before) => format!(
            "{n} samples of {event}, compared with {}",
            before.total().samples
        ),
    }
}

fn format(args: &FlameArgs) -> Result<FlameFormat> {
    if let Some(format) = args.format {
        return Ok(format);
    }
    Ok(match output::ending(args.output.as_deref()) {
        None | Some("txt") => FlameFormat::Text,
        Some("svg") => FlameFormat::Svg,
        Some("html") => FlameFormat::Html,
        Some("folded") => FlameFormat::Folded,
        Some(other) => bail!("-o: no flame graph ends in .{other}; --format says what to write"),
    })
}
