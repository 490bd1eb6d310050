//! A fix for people.

use std::io::{self, Write};

use sexton_model::fix::{Advice, FixReport, Leftover, Plan, PlannedStep, StepReport};

use crate::text::{count, known, number, paragraph};

/// Writes the plan.
pub fn plan(out: &mut dyn Write, plan: &Plan) -> io::Result<()> {
    match (plan.is_empty(), plan.dying) {
        (true, 0) if plan.advice.is_empty() => writeln!(out, "There is nothing to fix.")?,
        (true, 0) => writeln!(out, "Nothing is done here unless it is asked for by name.")?,
        (true, n) => writeln!(out, "Nothing that may be done here frees {}.", dying(n))?,
        (false, 0) => writeln!(out, "This would be done:")?,
        (false, n) => writeln!(out, "This would be done about {}:", dying(n))?,
    }
    for (i, step) in plan.steps.iter().enumerate() {
        planned(out, i + 1, step)?;
    }
    advice(out, &plan.advice)?;
    left(out, &plan.left)
}

fn dying(n: u64) -> String {
    count(n, "dying memory cgroup")
}

fn planned(out: &mut dyn Write, n: usize, step: &PlannedStep) -> io::Result<()> {
    let freed = match (&step.withheld, step.predicted) {
        (Some(_), _) => " (not done)".into(),
        (None, Some(n)) => format!(" (frees about {})", number(n)),
        (None, None) => String::new(),
    };
    writeln!(out)?;
    paragraph(out, &format!("{n}. "), &format!("{}{freed}", step.title))?;
    if let Some(why) = &step.withheld {
        return paragraph(out, "     because ", why);
    }
    for change in &step.changes {
        // As it would be typed, so it is not broken into lines.
        writeln!(out, "     {change}")?;
    }
    if let Some(except) = &step.except {
        paragraph(out, "     not done: ", except)?;
    }
    match &step.undo {
        Some(undo) => paragraph(out, "     undo: ", undo),
        None => Ok(()),
    }
}

fn advice(out: &mut dyn Write, advice: &[Advice]) -> io::Result<()> {
    if advice.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nFor you to do:")?;
    for advice in advice {
        paragraph(out, "  - ", &advice.text)?;
        if let Some(command) = &advice.command {
            writeln!(out, "      {command}")?;
        }
    }
    Ok(())
}

/// Writes what was done.
pub fn report(out: &mut dyn Write, report: &FixReport) -> io::Result<()> {
    let (before, after) = (known(report.before), known(report.after));
    writeln!(out, "Dying memory cgroups: {before} before, {after} now.")?;
    if !report.steps.is_empty() {
        writeln!(out, "\n  predicted  measured   seconds  step")?;
    }
    for step in &report.steps {
        done(out, step)?;
    }
    if let Some(leak) = &report.still_leaking {
        writeln!(out)?;
        paragraph(out, "Still leaking: ", leak)?;
    }
    left(out, &report.left)?;
    if report.reboot_advised {
        writeln!(out)?;
        paragraph(
            out,
            "",
            "Much is left. If it must go now, drain the node and reboot it; \
             --reboot-sentinel asks kured to.",
        )?;
    }
    if let Some(file) = &report.undo_file {
        writeln!(out, "\nTo take it back: sexton fix --undo {file}")?;
    }
    Ok(())
}

fn done(out: &mut dyn Write, step: &StepReport) -> io::Result<()> {
    let freed = step
        .before
        .zip(step.after)
        .map(|(before, after)| before.saturating_sub(after));
    let shown = |n: Option<u64>| n.map_or_else(|| "-".into(), number);
    let first = format!(
        "  {:>9}  {:>8}  {:>8.1}  ",
        shown(step.predicted),
        shown(freed),
        step.took.as_secs_f64()
    );
    let said = match step.outcome.why() {
        None => step.title.clone(),
        Some(why) => format!("{}: {}, {why}", step.title, step.outcome.name()),
    };
    paragraph(out, &first, &said)?;
    match &step.except {
        Some(except) => paragraph(out, "             not done: ", except),
        None => Ok(()),
    }
}

fn left(out: &mut dyn Write, left: &[Leftover]) -> io::Result<()> {
    if left.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nLeft:")?;
    for left in left {
        paragraph(out, &format!("{:>8}  ", number(left.dying)), &left.why)?;
        paragraph(out, "          frees them: ", &left.frees)?;
    }
    Ok(())
}
