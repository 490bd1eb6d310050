//! `sexton profile flame`

use std::io::Write;
use std::ops::RangeInclusive;

use anyhow::{Result, bail};
use sexton_model::stack::{NameId, StackSample, StackTables};
use sexton_profile::export::{folded, html, svg};
use sexton_profile::filter::Filter;
use sexton_profile::flame::{Order, StackCounts, Tree};
use sexton_profile::import::Sink;
use sexton_profile::names::Suffixes;
use sexton_profile::weight::Unit;
use sexton_report::text;

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

    fn events(&mut self, names: &[NameId], tables: &StackTables) {
        self.now.events(names, tables);
        if let Some(before) = &mut self.before {
            before.events(names, tables);
        }
    }

    fn default_event(&self) -> Option<(NameId, &[NameId])> {
        self.now.default_event()
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
    let weight = input::weight(&args.weight);
    let before = args.against.map(|(from, to)| {
        let filter = Filter {
            from: Some(from),
            to: Some(to),
            ..filter.clone()
        };
        StackCounts::new(filter).weighed(weight)
    });
    let mut both = Both {
        now: StackCounts::new(filter).weighed(weight),
        before,
    };
    let answer = input::read(&inputs.files, &args.input.symbols, &mut both)?;
    let has_window = inputs.has_window(&args.input) || args.against.is_some();
    answer.check(both.now.total().samples, has_window)?;
    let sides: Vec<&StackCounts> = [&both.now].into_iter().chain(&both.before).collect();
    let suffixes = Suffixes::default();
    let tree = Tree::build(&sides, &answer.tables, suffixes, order(args.inverted));
    let is_difference = both.before.is_some();
    let title = title(&both.now, both.before.as_ref(), &answer.tables);
    let mut out = output::open(args.output.as_deref(), true)?;
    match format {
        FlameFormat::Svg => svg::write(&mut out, &title, &tree, is_difference)?,
        FlameFormat::Html => html::write(&mut out, &title, &tree, is_difference)?,
        FlameFormat::Folded => {
            output::tell_unit(&tree.unit);
            folded::write(&mut out, &tree, is_difference)?;
        }
        FlameFormat::Text => {
            let text = sexton_profile::flame_text::text(&tree, args.at_least, is_difference);
            write!(out, "{title}\n{text}")?;
        }
    }
    out.flush()?;
    Ok(answer.exit())
}

/// What a graph shows: how many samples of what, and what they add up to.
pub fn title(now: &StackCounts, before: Option<&StackCounts>, tables: &StackTables) -> String {
    let event = now.event().map_or("several events", |e| tables.name(e));
    let samples = text::count(now.total().samples, "sample");
    let unit = now.unit(tables);
    let sum = match unit {
        Unit::Samples => String::new(),
        unit => format!(", {}", unit.shown(now.total().weight)),
    };
    let title = format!("{samples} of {event}{sum}");
    match before {
        None => title,
        Some(before) => {
            let n = text::number(before.total().samples);
            format!("{title}, compared with {n} samples")
        }
    }
}

/// How a graph grows.
pub fn order(is_inverted: bool) -> Order {
    if is_inverted {
        Order::Inverted
    } else {
        Order::Calls
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
