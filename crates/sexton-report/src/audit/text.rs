use std::io::{self, Write};

use sexton_model::audit::{Audit, AuditUnit, UnitVerdict};
use sexton_model::text::escape;

use super::bake::BakeStep;
use crate::text::count;

const WIDTH: usize = 80;

/// Writes an audit for people: the answer, what is wrong, the rest in numbers. `all` lists
/// every unit that is on.
pub fn text(out: &mut dyn Write, audit: &Audit, all: bool) -> io::Result<()> {
    head(out, audit)?;
    for verdict in [UnitVerdict::Unwanted, UnitVerdict::Broken] {
        audit
            .of(verdict)
            .try_for_each(|unit| wrong(out, audit, unit))?;
    }
    for missing in &audit.missing {
        writeln!(out)?;
        fold(
            out,
            "missing   ",
            &format!("{missing} is not on, and this shape needs it"),
        )?;
    }
    if all {
        for verdict in [
            UnitVerdict::Unknown,
            UnitVerdict::Needed,
            UnitVerdict::Harmless,
        ] {
            writeln!(out)?;
            for unit in audit.of(verdict) {
                fold(
                    out,
                    &format!("{:9} {}: ", verdict.name(), unit.name),
                    &unit.why,
                )?;
            }
        }
    }
    tail(out, audit)
}

fn head(out: &mut dyn Write, audit: &Audit) -> io::Result<()> {
    writeln!(out, "{}\n", headline(audit))?;
    let os = match audit.os.name.as_str() {
        "" => "unknown system",
        name => name,
    };
    fold(
        out,
        "source  ",
        &format!("{} ({}), {os}", audit.source, audit.what),
    )?;
    match &audit.shape {
        Some((name, why)) => fold(out, "shape   ", &format!("{name}: {why}")),
        None => fold(
            out,
            "shape   ",
            "not known: give it with --shape to have more judged",
        ),
    }
}

fn wrong(out: &mut dyn Write, audit: &Audit, unit: &AuditUnit) -> io::Result<()> {
    writeln!(out, "\n{:9} {}", unit.verdict.name(), unit.name)?;
    fold(out, "    why     ", &unit.why)?;
    for finding in audit
        .findings_of(&unit.name)
        .filter(|finding| finding.code == "UNIT005")
    {
        fold(
            out,
            "    loop    ",
            &format!("{} ({})", finding.figure, first(finding)),
        )?;
    }
    fold(out, "    started ", &started(unit))?;
    match &unit.package {
        Some(package) => fold(out, "    package ", package),
        None => Ok(()),
    }
}

fn tail(out: &mut dyn Write, audit: &Audit) -> io::Result<()> {
    let n = |verdict| audit.of(verdict).count();
    let line = format!(
        "{} on: {} needed, {} harmless, {} unknown, {} unwanted, {} broken; {} in all",
        count(
            audit.units.iter().filter(|unit| unit.is_on).count() as u64,
            "unit"
        ),
        n(UnitVerdict::Needed),
        n(UnitVerdict::Harmless),
        n(UnitVerdict::Unknown),
        n(UnitVerdict::Unwanted),
        n(UnitVerdict::Broken),
        audit.units.len(),
    );
    writeln!(out)?;
    fold(out, "", &line)?;
    for gap in &audit.gaps {
        fold(out, "not read  ", gap)?;
    }
    if n(UnitVerdict::Unwanted) > 0 {
        writeln!(
            out,
            "next: sexton image fix {}",
            escape(audit.source.as_bytes())
        )?;
    }
    Ok(())
}

fn first(finding: &sexton_model::finding::Finding) -> &str {
    finding
        .evidence
        .first()
        .map_or("", |evidence| &evidence.text)
}

fn headline(audit: &Audit) -> String {
    let n = |verdict| audit.of(verdict).count() as u64;
    let (unwanted, broken) = (n(UnitVerdict::Unwanted), n(UnitVerdict::Broken));
    let shape = audit
        .shape
        .as_ref()
        .map_or("this machine", |(name, _)| name);
    match (unwanted, broken) {
        (0, 0) => format!("Nothing is enabled that should not be on {shape}."),
        (_, 0) => format!(
            "{} should not be enabled on {shape}.",
            count(unwanted, "unit")
        ),
        (0, _) => format!("{} cannot start on {shape}.", count(broken, "enabled unit")),
        _ => format!(
            "{} should not be enabled on {shape}, and {broken} cannot start.",
            count(unwanted, "unit")
        ),
    }
}

fn started(unit: &AuditUnit) -> String {
    match unit.reached_by.as_slice() {
        [] => format!("{}, though no boot leads to it", unit.state),
        way => format!("{}, by {}", unit.state, way.join(" > ")),
    }
}

/// Writes what starts a unit and what is known of it. The edges are given as text.
pub fn why(
    out: &mut dyn Write,
    audit: &Audit,
    unit: &AuditUnit,
    edges: &[String],
    others: &[String],
) -> io::Result<()> {
    writeln!(out, "{} is {}.", unit.name, unit.verdict.name())?;
    fold(out, "    why     ", &unit.why)?;
    fold(
        out,
        "    state   ",
        &format!("{}, preset {}", unit.state, unit.preset.unwrap_or("none")),
    )?;
    fold(out, "    file    ", &escape(unit.file.as_bytes()))?;
    fold(
        out,
        "    package ",
        unit.package.as_deref().unwrap_or("none"),
    )?;
    if edges.is_empty() {
        writeln!(out, "no boot starts it.")?;
    } else {
        writeln!(out, "a boot starts it:")?;
    }
    for edge in edges {
        fold(out, "    ", edge)?;
    }
    if !others.is_empty() {
        writeln!(out, "what else starts it:")?;
    }
    for edge in others {
        fold(out, "    ", edge)?;
    }
    for finding in audit.findings_of(&unit.name) {
        writeln!(out)?;
        fold(out, &format!("{}  ", finding.code), &finding.title)?;
        for evidence in &finding.evidence {
            fold(
                out,
                &format!("    {:8}", evidence.stance.name()),
                &evidence.text,
            )?;
        }
    }
    Ok(())
}

/// Writes what would be done.
pub fn plan(out: &mut dyn Write, steps: &[BakeStep], source: &str) -> io::Result<()> {
    if steps.is_empty() {
        return writeln!(out, "Nothing to fix.");
    }
    writeln!(out, "Would change {}:", count(steps.len() as u64, "unit"))?;
    for step in steps {
        writeln!(out)?;
        let (what, how) = match step {
            BakeStep::Mask { .. } => ("mask ", "disable, mask, and preset as disabled"),
            BakeStep::Bound { .. } => ("bound", "at most 10 starts an hour, by a drop-in"),
        };
        writeln!(out, "{what}  {}: {how}", step.unit())?;
        fold(out, "    why     ", step.why())?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "do it here:          sexton image fix {source} --apply"
    )?;
    writeln!(
        out,
        "or in the bake step: sexton image fix {source} --write shell"
    )
}

/// One paragraph in 80 columns, its lines indented as the first is.
pub(super) fn fold(out: &mut dyn Write, head: &str, text: &str) -> io::Result<()> {
    let indent = " ".repeat(head.chars().count().min(24));
    let mut line = head.to_owned();
    let mut is_first = true;
    for word in escape(text.as_bytes()).split(' ') {
        let len = line.chars().count();
        if !is_first && len + 1 + word.chars().count() > WIDTH {
            writeln!(out, "{}", line.trim_end())?;
            line = format!("{indent}{word}");
        } else {
            if !is_first {
                line.push(' ');
            }
            line.push_str(word);
        }
        is_first = false;
    }
    writeln!(out, "{}", line.trim_end())
}
