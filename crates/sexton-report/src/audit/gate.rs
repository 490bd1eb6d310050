//! The gate: each unit that is on passes, or does not.

use std::io::{self, Write};

use serde_json::json;
use sexton_model::audit::Audit;

use super::text::fold;
use crate::junit::{self, Case, Outcome};
use crate::sarif::{self, Finding, Level, Place, Rule};
use crate::text::count;

/// What the gate says of a unit, or of something else that the policy asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateUnit {
    /// The unit.
    pub name: String,
    /// Its file in the image.
    pub file: String,
    /// Why it does not pass; `None` if it does.
    pub fails: Option<String>,
    /// The rule, `UNIT004`; `IMG001` for what only the policy says.
    pub code: &'static str,
}

fn failed(units: &[GateUnit]) -> impl Iterator<Item = (&GateUnit, &str)> {
    units
        .iter()
        .filter_map(|unit| Some((unit, unit.fails.as_deref()?)))
}

/// For people.
pub fn gate_text(out: &mut dyn Write, audit: &Audit, units: &[GateUnit]) -> io::Result<()> {
    let n_failed = failed(units).count() as u64;
    match n_failed {
        0 if !audit.gaps.is_empty() => writeln!(
            out,
            "{} pass; {} could not be read",
            count(units.len() as u64, "unit"),
            count(audit.gaps.len() as u64, "part")
        )?,
        0 => writeln!(out, "pass: {}", count(units.len() as u64, "unit"))?,
        n => writeln!(out, "fail: {} of {}", n, count(units.len() as u64, "unit"))?,
    }
    for (unit, why) in failed(units) {
        fold(out, &format!("{}  {}: ", unit.code, unit.name), why)?;
    }
    audit
        .gaps
        .iter()
        .try_for_each(|gap| fold(out, "not read  ", gap))
}

/// For programs: `sexton.verify/1`. What could not be read does not pass, unless that is allowed.
pub fn gate_json(
    out: &mut dyn Write,
    audit: &Audit,
    units: &[GateUnit],
    allow_gaps: bool,
) -> io::Result<()> {
    let rows = units.iter().map(|unit| {
        json!({ "name": unit.name, "file": unit.file, "pass": unit.fails.is_none(), "code": unit.code, "why": unit.fails })
    });
    let view = json!({
        "schema": "sexton.verify/1",
        "source": audit.source,
        "shape": audit.shape.as_ref().map(|(name, _)| name),
        "pass": failed(units).next().is_none() && (allow_gaps || audit.gaps.is_empty()),
        "units": rows.collect::<Vec<_>>(),
        "gaps": audit.gaps,
    });
    serde_json::to_writer_pretty(&mut *out, &view)?;
    writeln!(out)
}

fn outcome(unit: &GateUnit) -> Outcome<'_> {
    match &unit.fails {
        Some(why) => Outcome::Failed {
            kind: unit.code,
            message: why,
            text: format!("{}\nsexton explain {}", unit.file, unit.code),
        },
        None => Outcome::Passed,
    }
}

/// As a suite of tests, one case per unit and one per part that could not be read.
pub fn gate_junit(
    out: &mut dyn Write,
    audit: &Audit,
    units: &[GateUnit],
    allow_gaps: bool,
) -> io::Result<()> {
    let case = |name, outcome| Case {
        class: "sexton.image",
        name,
        outcome,
    };
    let units = units.iter().map(|unit| case(&unit.name, outcome(unit)));
    let gaps = audit.gaps.iter().filter(|_| !allow_gaps);
    let gaps = gaps.map(|gap| case("not read", Outcome::Error { message: gap }));
    let cases: Vec<Case<'_>> = units.chain(gaps).collect();
    junit::junit(out, "sexton image verify", &cases)
}

/// As results of a scanner, the unit's file as their place; of each rule its code and title.
pub fn gate_sarif(
    out: &mut dyn Write,
    version: &str,
    rules: &[(&str, &str)],
    units: &[GateUnit],
) -> io::Result<()> {
    let rules: Vec<Rule<'_>> = rules
        .iter()
        .map(|(id, title)| Rule {
            id,
            title,
            help: format!("sexton explain {id}"),
        })
        .collect();
    let results: Vec<Finding<'_>> = failed(units)
        .map(|(unit, why)| Finding {
            rule: unit.code,
            level: Level::Error,
            message: why,
            place: Place::File(&unit.file),
        })
        .collect();
    sarif::sarif(out, version, &rules, &results)
}
