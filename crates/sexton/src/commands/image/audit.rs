//! `sexton image audit`

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};
use sexton_model::audit::{Audit, UnitVerdict};
use sexton_report::audit as report;
use sexton_systemd::unit_file::Edge;

use super::judged::{Judged, judge};
use crate::cli::{AuditArgs, Format};
use crate::exit::Exit;

/// Judges and writes.
pub(super) fn run(args: &AuditArgs) -> Result<Exit> {
    let judged = judge(&args.source)?;
    let mut out = BufWriter::new(io::stdout().lock());
    match (&args.why, args.format.format()) {
        (Some(unit), _) => why(&mut out, &judged, unit)?,
        (None, Format::Json) => report::json(&mut out, &judged.audit)?,
        (None, Format::Text) => report::text(&mut out, &judged.audit, args.all)?,
    }
    out.flush()?;
    Ok(exit(&judged.audit))
}

/// What the exit code says of an audit.
pub(super) fn exit(audit: &Audit) -> Exit {
    let n = |verdict| audit.of(verdict).count();
    if n(UnitVerdict::Unwanted) + n(UnitVerdict::Broken) > 0 {
        Exit::Found
    } else if audit.gaps.is_empty() {
        Exit::NothingFound
    } else {
        Exit::Blind
    }
}

fn why(out: &mut dyn Write, judged: &Judged, name: &str) -> Result<()> {
    let Judged { survey, audit } = judged;
    let known = survey.find(name).map(|unit| unit.unit.name.as_str());
    let unit = audit
        .units
        .iter()
        .find(|unit| Some(unit.name.as_str()) == known);
    let unit = unit.with_context(|| format!("there is no unit {name} in {}", audit.source))?;
    let way = survey.way(&unit.name);
    let shown = |edge: &&Edge| {
        format!(
            "{} {} {} ({})",
            edge.from,
            verb(edge.how),
            edge.to,
            edge.file.display()
        )
    };
    let edges: Vec<String> = way.iter().map(shown).collect();
    let others = survey.graph.starters(&unit.name);
    let others: Vec<String> = others
        .iter()
        .filter(|edge| !way.contains(edge))
        .map(shown)
        .collect();
    report::why(out, audit, unit, &edges, &others)?;
    Ok(())
}

fn verb(how: &str) -> &str {
    match how {
        "socket" | "timer" | "path" | "D-Bus" | "udev" => "triggers",
        how => how,
    }
}
