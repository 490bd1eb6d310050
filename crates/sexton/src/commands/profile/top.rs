//! `sexton profile top`

use std::io::{self, BufWriter, Write};

use anyhow::{Result, bail};
use serde_json::json;
use sexton_profile::flame::{Count, StackCounts};
use sexton_profile::top::{TopFunction, TopStack, functions, stacks};

use super::input::{self, Inputs};
use crate::cli::Format;
use crate::cli::profile::TopArgs;
use crate::exit::Exit;

/// Lists what took most.
pub fn run(args: &TopArgs) -> Result<Exit> {
    let inputs = Inputs::of(&args.input)?;
    let mut counts = StackCounts::new(inputs.filter(&args.input, &args.filter));
    let answer = input::read(&inputs.files, &args.input.symbols, &mut counts)?;
    let total = counts.total();
    if total.samples == 0 {
        bail!(
            "no sample is left to list, of {} that were read",
            answer.n_samples
        );
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let is_json = args.format.format() == Format::Json;
    if args.stacks {
        let stacks = stacks(&counts, &answer.tables, args.top);
        if is_json {
            let rows = stacks.iter().map(stack_json).collect::<Vec<_>>();
            writeln!(
                out,
                "{}",
                json!({ "schema": "sexton.top/1", "samples": total.samples, "stacks": rows })
            )?;
        } else {
            stacks
                .iter()
                .try_for_each(|stack| stack_text(&mut out, stack, total))?;
        }
    } else {
        let mut functions = functions(&counts, &answer.tables);
        functions.truncate(args.top);
        if is_json {
            let rows = functions.iter().map(function_json).collect::<Vec<_>>();
            writeln!(
                out,
                "{}",
                json!({ "schema": "sexton.top/1", "samples": total.samples, "functions": rows })
            )?;
        } else {
            functions_text(&mut out, &functions, total)?;
        }
    }
    out.flush()?;
    Ok(answer.exit())
}

fn functions_text(out: &mut dyn Write, functions: &[TopFunction], total: Count) -> Result<()> {
    writeln!(out, "   self  total  function")?;
    for function in functions {
        let module = function.module.rsplit('/').next().unwrap_or("");
        let line = format!(
            "{:>6.2}% {:>5.1}%  {} ({module})",
            share(function.own, total),
            share(function.total, total),
            function.name,
        );
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn stack_text(out: &mut dyn Write, stack: &TopStack, total: Count) -> Result<()> {
    let n = stack.count.samples;
    writeln!(
        out,
        "{:.2}% {} ({n} samples)",
        share(stack.count, total),
        stack.comm
    )?;
    for frame in &stack.frames {
        writeln!(out, "    {frame}")?;
    }
    Ok(writeln!(out)?)
}

fn function_json(function: &TopFunction) -> serde_json::Value {
    json!({
        "function": function.name,
        "module": function.module,
        "self_samples": function.own.samples,
        "self_weight": function.own.weight,
        "total_samples": function.total.samples,
        "total_weight": function.total.weight,
    })
}

fn stack_json(stack: &TopStack) -> serde_json::Value {
    json!({
        "comm": stack.comm,
        "frames": stack.frames,
        "samples": stack.count.samples,
        "weight": stack.count.weight,
    })
}

fn share(part: Count, all: Count) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "shown with two digits")]
    let (part, all) = (part.weight as f64, all.weight.max(1) as f64);
    part / all * 100.0
}
