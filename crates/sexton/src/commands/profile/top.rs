//! `sexton profile top`

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sexton_model::stack::{NameId, StackTables};
use sexton_profile::callers::{Side, neighbours};
use sexton_profile::flame::{Count, StackCounts};
use sexton_profile::threads::ThreadCounts;
use sexton_profile::top::{TopFunction, functions, stacks};
use sexton_profile::weight::Unit;
use sexton_report::text;

use super::input::{self, Inputs};
use crate::cli::Format;
use crate::cli::profile::TopArgs;
use crate::exit::Exit;

const SCHEMA: &str = "sexton.top/1";

/// What all samples are, and what sums count.
struct Whole<'a> {
    total: Count,
    unit: Unit,
    event: &'a str,
}

/// Lists what took most.
pub fn run(args: &TopArgs) -> Result<Exit> {
    let inputs = Inputs::of(&args.input)?;
    let filter = inputs.filter(&args.input, &args.filter);
    let weight = input::weight(&args.weight);
    if args.threads {
        let mut counts = ThreadCounts::new(filter, weight);
        let answer = input::read(&inputs.files, &args.input.symbols, &mut counts)?;
        answer.check(counts.total().samples, inputs.has_window(&args.input))?;
        let tables = &answer.tables;
        let whole = Whole::new(counts.total(), counts.unit(tables), counts.event(), tables);
        list_threads(args, &counts, tables, &whole)?;
        return Ok(answer.exit());
    }
    let mut counts = StackCounts::new(filter).weighed(weight);
    let answer = input::read(&inputs.files, &args.input.symbols, &mut counts)?;
    answer.check(counts.total().samples, inputs.has_window(&args.input))?;
    let tables = &answer.tables;
    let whole = Whole::new(counts.total(), counts.unit(tables), counts.event(), tables);
    let neighbour = args.callers.as_deref().map(|f| (f, Side::Callers));
    let neighbour = neighbour.or(args.callees.as_deref().map(|f| (f, Side::Callees)));
    match neighbour {
        Some((function, side)) => list_neighbours(args, &counts, tables, &whole, function, side)?,
        None if args.stacks => list_stacks(args, &counts, tables, &whole)?,
        None => list_functions(args, &counts, tables, &whole)?,
    }
    Ok(answer.exit())
}

impl<'a> Whole<'a> {
    fn new(total: Count, unit: Unit, event: Option<NameId>, tables: &'a StackTables) -> Self {
        Self {
            total,
            unit,
            event: event.map_or("several events", |event| tables.name(event)),
        }
    }

    /// `1,234 samples of cpu-clock, 2.47 s`
    fn line(&self) -> String {
        let samples = text::count(self.total.samples, "sample");
        let sum = match self.unit {
            Unit::Samples => String::new(),
            _ => format!(", {}", self.unit.shown(self.total.weight)),
        };
        format!("{samples} of {}{sum}", self.event)
    }

    fn share(&self, part: Count) -> f64 {
        share(part, self.total)
    }

    /// How much a line stands for.
    fn sum(&self, count: Count) -> String {
        match self.unit {
            Unit::Samples => text::number(count.samples),
            Unit::Nanoseconds => self.unit.shown(count.weight),
            Unit::Events(_) => text::number(count.weight),
        }
    }

    /// The heading of that column.
    fn heading(&self) -> &str {
        match &self.unit {
            Unit::Samples => "samples",
            Unit::Nanoseconds => "time",
            Unit::Events(_) => "events",
        }
    }

    fn json(&self, what: &str, rows: Vec<Value>) -> Value {
        json!({
            "schema": SCHEMA,
            "event": self.event,
            "unit": self.unit.name(),
            "samples": self.total.samples,
            "weight": self.total.weight,
            what: rows,
        })
    }
}

fn is_json(args: &TopArgs) -> bool {
    args.format.format() == Format::Json
}

fn out() -> BufWriter<io::StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

fn list_functions(
    args: &TopArgs,
    counts: &StackCounts,
    tables: &StackTables,
    whole: &Whole<'_>,
) -> Result<()> {
    let all = functions(counts, tables);
    let (mut wakers, mut functions): (Vec<_>, Vec<_>) =
        all.into_iter().partition(TopFunction::is_waker);
    let n_functions = functions.len();
    functions.truncate(args.top);
    wakers.sort_by_key(|waker| std::cmp::Reverse(waker.total.weight));
    wakers.truncate(args.top);
    let mut out = out();
    if is_json(args) {
        let rows = functions.iter().map(|function| {
            json!({
                "function": function.name,
                "module": function.module,
                "self_samples": function.own.samples,
                "self_weight": function.own.weight,
                "total_samples": function.total.samples,
                "total_weight": function.total.weight,
            })
        });
        let mut answer = whole.json("functions", rows.collect());
        if !wakers.is_empty() {
            answer["woken_by"] = json_wakers(&wakers);
        }
        writeln!(out, "{answer}")?;
        return Ok(out.flush()?);
    }
    let n = n_functions as u64;
    writeln!(out, "{}; {}", whole.line(), text::count(n, "function"))?;
    let has_time = whole.unit != Unit::Samples;
    let samples = if has_time { "  samples" } else { "" };
    let heading = whole.heading();
    writeln!(out, "   self  total {heading:>10}{samples}  function")?;
    for function in &functions {
        let module = function.module.rsplit('/').next().unwrap_or("");
        let samples = if has_time {
            format!(" {:>8}", text::number(function.own.samples))
        } else {
            String::new()
        };
        writeln!(
            out,
            "{:>6.2}% {:>5.1}% {:>10}{samples}  {} ({module})",
            whole.share(function.own),
            whole.share(function.total),
            whole.sum(function.own),
            function.name,
        )?;
    }
    list_wakers(&mut out, &wakers, whole)?;
    Ok(out.flush()?)
}

/// What comes before the name of who woke a thread.
const WOKEN_BY: &str = "woken by ";

/// Who woke the threads that waited.
fn list_wakers(out: &mut dyn Write, wakers: &[TopFunction], whole: &Whole<'_>) -> Result<()> {
    if wakers.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n         share {:>10}  woken by", whole.heading())?;
    for waker in wakers {
        let share = whole.share(waker.total);
        let name = waker.name.strip_prefix(WOKEN_BY).unwrap_or(&waker.name);
        writeln!(
            out,
            "       {share:>6.1}% {:>10}  {name}",
            whole.sum(waker.total)
        )?;
    }
    Ok(())
}

fn json_wakers(wakers: &[TopFunction]) -> Value {
    let rows = wakers.iter().map(|waker| {
        json!({
            "name": waker.name.strip_prefix(WOKEN_BY).unwrap_or(&waker.name),
            "samples": waker.total.samples,
            "weight": waker.total.weight,
        })
    });
    rows.collect()
}

fn list_stacks(
    args: &TopArgs,
    counts: &StackCounts,
    tables: &StackTables,
    whole: &Whole<'_>,
) -> Result<()> {
    let stacks = stacks(counts, tables, args.top);
    let mut out = out();
    if is_json(args) {
        let rows = stacks.iter().map(|stack| {
            json!({
                "comm": stack.comm,
                "frames": stack.frames,
                "samples": stack.count.samples,
                "weight": stack.count.weight,
            })
        });
        writeln!(out, "{}", whole.json("stacks", rows.collect()))?;
        return Ok(out.flush()?);
    }
    writeln!(out, "{}\n", whole.line())?;
    for stack in &stacks {
        let n = text::count(stack.count.samples, "sample");
        let share = whole.share(stack.count);
        writeln!(out, "{share:.2}% {} ({n})", stack.comm)?;
        for frame in &stack.frames {
            writeln!(out, "    {frame}")?;
        }
        writeln!(out)?;
    }
    Ok(out.flush()?)
}

fn list_threads(
    args: &TopArgs,
    counts: &ThreadCounts,
    tables: &StackTables,
    whole: &Whole<'_>,
) -> Result<()> {
    let mut threads = counts.threads();
    let n_threads = threads.len() as u64;
    threads.truncate(args.top);
    let mut out = out();
    if is_json(args) {
        let rows = threads.iter().map(|thread| {
            json!({
                "comm": tables.name(thread.comm),
                "pid": thread.pid,
                "tid": thread.tid,
                "samples": thread.count.samples,
                "weight": thread.count.weight,
            })
        });
        writeln!(out, "{}", whole.json("threads", rows.collect()))?;
        return Ok(out.flush()?);
    }
    writeln!(
        out,
        "{}; {}",
        whole.line(),
        text::count(n_threads, "thread")
    )?;
    writeln!(
        out,
        "  share {:>10}     pid     tid  thread",
        whole.heading()
    )?;
    for thread in &threads {
        writeln!(
            out,
            "{:>6.2}% {:>10} {:>7} {:>7}  {}",
            whole.share(thread.count),
            whole.sum(thread.count),
            thread.pid,
            thread.tid,
            tables.name(thread.comm),
        )?;
    }
    Ok(out.flush()?)
}

fn list_neighbours(
    args: &TopArgs,
    counts: &StackCounts,
    tables: &StackTables,
    whole: &Whole<'_>,
    function: &str,
    side: Side,
) -> Result<()> {
    let mut found = neighbours(counts, tables, function, side)
        .with_context(|| format!("no function is called {function:?}, and none matches it"))?;
    found.list.truncate(args.top);
    let mut out = out();
    let (key, heading) = match side {
        Side::Callers => ("callers", "called by"),
        Side::Callees => ("callees", "calls"),
    };
    if is_json(args) {
        let rows = found.list.iter().map(|(name, count)| {
            json!({ "function": name, "samples": count.samples, "weight": count.weight })
        });
        let mut answer = whole.json(key, rows.collect());
        answer["functions"] = json!(found.functions);
        answer["function_samples"] = json!(found.total.samples);
        answer["function_weight"] = json!(found.total.weight);
        writeln!(out, "{answer}")?;
        return Ok(out.flush()?);
    }
    writeln!(out, "{}", whole.line())?;
    let name = match &found.functions[..] {
        [name] => name.clone(),
        names => format!("{} functions that match {function}", names.len()),
    };
    let all = whole.share(found.total);
    let sum = whole.sum(found.total);
    writeln!(out, "{name}: {all:.2}% of all, {sum}\n")?;
    writeln!(out, "  share {:>10}  {heading}", whole.heading())?;
    for (name, count) in &found.list {
        let share = share(*count, found.total);
        writeln!(out, "{share:>6.2}% {:>10}  {name}", whole.sum(*count))?;
    }
    Ok(out.flush()?)
}

fn share(part: Count, all: Count) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "shown with two digits")]
    let (part, all) = (part.weight as f64, all.weight.max(1) as f64);
    part / all * 100.0
}
