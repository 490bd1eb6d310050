//! A fix in stable JSON, `sexton.fix/1`. Keys may be added, none renamed.

use std::io::{self, Write};

use serde::Serialize;
use sexton_model::fix::{Advice, FixReport, Leftover, Plan, PlannedStep, StepReport};

const SCHEMA: &str = "sexton.fix/1";

/// Writes a plan for programs.
pub fn plan_json(out: &mut dyn Write, plan: &Plan) -> io::Result<()> {
    write(
        out,
        &View {
            schema: SCHEMA,
            applied: false,
            before: Some(plan.dying),
            after: None,
            plan: plan.steps.iter().map(Planned::from).collect(),
            steps: Vec::new(),
            left: plan.left.iter().map(Left::from).collect(),
            advice: plan.advice.iter().map(Advised::from).collect(),
            still_leaking: None,
            reboot_advised: false,
            undo_file: None,
        },
    )
}

/// Writes what was done for programs.
pub fn report_json(out: &mut dyn Write, plan: &Plan, report: &FixReport) -> io::Result<()> {
    write(
        out,
        &View {
            schema: SCHEMA,
            applied: true,
            before: report.before,
            after: report.after,
            plan: plan.steps.iter().map(Planned::from).collect(),
            steps: report.steps.iter().map(Done::from).collect(),
            left: report.left.iter().map(Left::from).collect(),
            advice: plan.advice.iter().map(Advised::from).collect(),
            still_leaking: report.still_leaking.as_deref(),
            reboot_advised: report.reboot_advised,
            undo_file: report.undo_file.as_deref(),
        },
    )
}

fn write(out: &mut dyn Write, view: &View<'_>) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, view)?;
    writeln!(out)
}

#[derive(Serialize)]
struct View<'a> {
    schema: &'static str,
    applied: bool,
    before: Option<u64>,
    after: Option<u64>,
    plan: Vec<Planned<'a>>,
    steps: Vec<Done<'a>>,
    left: Vec<Left<'a>>,
    advice: Vec<Advised<'a>>,
    still_leaking: Option<&'a str>,
    reboot_advised: bool,
    undo_file: Option<&'a str>,
}

#[derive(Serialize)]
struct Planned<'a> {
    title: &'a str,
    changes: &'a [String],
    undo: Option<&'a str>,
    predicted: Option<u64>,
    withheld: Option<&'a str>,
    except: Option<&'a str>,
}

impl<'a> From<&'a PlannedStep> for Planned<'a> {
    fn from(step: &'a PlannedStep) -> Self {
        Self {
            title: &step.title,
            changes: &step.changes,
            undo: step.undo.as_deref(),
            predicted: step.predicted,
            withheld: step.withheld.as_deref(),
            except: step.except.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct Done<'a> {
    title: &'a str,
    outcome: &'static str,
    why: Option<&'a str>,
    except: Option<&'a str>,
    predicted: Option<u64>,
    before: Option<u64>,
    after: Option<u64>,
    seconds: f64,
}

impl<'a> From<&'a StepReport> for Done<'a> {
    fn from(step: &'a StepReport) -> Self {
        Self {
            title: &step.title,
            outcome: step.outcome.name(),
            why: step.outcome.why(),
            except: step.except.as_deref(),
            predicted: step.predicted,
            before: step.before,
            after: step.after,
            seconds: step.took.as_secs_f64(),
        }
    }
}

#[derive(Serialize)]
struct Left<'a> {
    dying: u64,
    why: &'a str,
    frees: &'a str,
}

impl<'a> From<&'a Leftover> for Left<'a> {
    fn from(left: &'a Leftover) -> Self {
        Self {
            dying: left.dying,
            why: &left.why,
            frees: &left.frees,
        }
    }
}

#[derive(Serialize)]
struct Advised<'a> {
    text: &'a str,
    command: Option<&'a str>,
}

impl<'a> From<&'a Advice> for Advised<'a> {
    fn from(advice: &'a Advice) -> Self {
        Self {
            text: &advice.text,
            command: advice.command.as_deref(),
        }
    }
}
