use std::collections::HashMap;
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
    for verdict in [
        UnitVerdict::Unwanted,
        UnitVerdict::Broken,
        UnitVerdict::Unknown,
    ] {
        groups(audit, verdict)
            .iter()
            .try_for_each(|group| wrong(out, group))?;
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
                let text = format!("{}: {}", unit.name, unit.why);
                fold(out, &format!("{:9} ", verdict.name()), &text)?;
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
    match (&audit.shape, &audit.shape_doubt) {
        (Some((name, why)), _) => fold(out, "shape   ", &format!("{name}: {why}")),
        (None, Some(doubt)) => fold(
            out,
            "shape   ",
            &format!("unknown, name it with --shape: {doubt}"),
        ),
        (None, None) => fold(
            out,
            "shape   ",
            "not known: give it with --shape to have more judged",
        ),
    }
}

/// Units of which the same is said, as a service and its timer are; those that do most harm
/// first.
fn groups(audit: &Audit, verdict: UnitVerdict) -> Vec<Vec<&AuditUnit>> {
    let mut groups: Vec<Vec<&AuditUnit>> = Vec::new();
    // Of what is unknown only that of which something is found.
    let is_told = |unit: &&AuditUnit| verdict != UnitVerdict::Unknown || !unit.codes.is_empty();
    // A service and its timer are one; units that start at rates of their own are not.
    let mut known: HashMap<_, usize> = HashMap::new();
    for unit in audit.of(verdict).filter(is_told) {
        let key = (unit.why.as_str(), unit.starts_per_day.as_ref());
        match known.get(&key) {
            Some(&n) => groups[n].push(unit),
            None => {
                known.insert(key, groups.len());
                groups.push(vec![unit]);
            }
        }
    }
    for group in &mut groups {
        // What is enabled itself before what it starts.
        group.sort_by_key(|unit| unit.state != "enabled");
    }
    groups.sort_by_key(|group| std::cmp::Reverse(worst(group).map(|(n, _)| *n)));
    groups
}

/// The most starts a day that a unit of the group may make.
fn worst<'a>(group: &[&'a AuditUnit]) -> Option<&'a (u64, String)> {
    let rates = group.iter().filter_map(|unit| unit.starts_per_day.as_ref());
    rates.max_by_key(|(n, _)| *n)
}

fn wrong(out: &mut dyn Write, group: &[&AuditUnit]) -> io::Result<()> {
    let first = group[0];
    let names: Vec<&str> = group.iter().map(|unit| unit.name.as_str()).collect();
    writeln!(out)?;
    fold(
        out,
        &format!("{:9} ", first.verdict.name()),
        &names.join(", "),
    )?;
    fold(out, "    why     ", &first.why)?;
    if let Some((n, by)) = worst(group) {
        let rate = format!("up to {} a day ({by})", count(*n, "memory cgroup"));
        fold(out, "    rate    ", &rate)?;
    }
    fold(out, "    started ", &started(first))?;
    match &first.package {
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
    unknown(out, audit)?;
    for gap in &audit.gaps {
        fold(out, "not read  ", gap)?;
    }
    let source = escape(audit.source.as_bytes());
    if n(UnitVerdict::Unwanted) > 0 {
        writeln!(out, "next: sexton image fix {source}")
    } else if n(UnitVerdict::Broken) > 0 {
        let mut broken = audit.of(UnitVerdict::Broken);
        let unit = broken.next().map_or("UNIT", |unit| unit.name.as_str());
        writeln!(out, "next: sexton image audit {source} --why {unit}")
    } else if audit.shape.is_none() {
        // Naming a shape judges more; one that fits most machines is shown.
        writeln!(out, "next: sexton image audit {source} --shape plain-vm")
    } else {
        Ok(())
    }
}

/// What nobody can judge is named, and not only counted.
fn unknown(out: &mut dyn Write, audit: &Audit) -> io::Result<()> {
    const N_NAMED: usize = 8;
    let names: Vec<&str> = audit
        .of(UnitVerdict::Unknown)
        .map(|unit| unit.name.as_str())
        .collect();
    let rest = match names.len().saturating_sub(N_NAMED) {
        0 => String::new(),
        n => format!(" and {n} more; --all lists them"),
    };
    match names.is_empty() {
        true => Ok(()),
        false => {
            let shown = &names[..names.len().min(N_NAMED)];
            fold(out, "unknown   ", &format!("{}{rest}", shown.join(", ")))
        }
    }
}

fn headline(audit: &Audit) -> String {
    let n = |verdict| audit.of(verdict).count() as u64;
    let (unwanted, broken) = (n(UnitVerdict::Unwanted), n(UnitVerdict::Broken));
    let shape = audit
        .shape
        .as_ref()
        .map_or("this machine", |(name, _)| name);
    match (unwanted, broken) {
        (0, 0) if audit.shape.is_none() => {
            "No unit is known to be wrong; what this machine is for is not known.".to_owned()
        }
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
    let is_left = |step: &&BakeStep| matches!(step, BakeStep::Withhold { .. });
    let n_left = steps.iter().filter(is_left).count();
    let n_changed = (steps.len() - n_left) as u64;
    writeln!(out, "Would change {}:", count(n_changed, "unit"))?;
    for step in steps {
        writeln!(out)?;
        let (what, how) = match step {
            BakeStep::Mask { .. } => ("mask ", "disable, mask, and preset as disabled"),
            BakeStep::Bound { .. } => ("bound", "at most 10 starts an hour, by a drop-in"),
            BakeStep::Withhold { .. } => ("withheld", "not masked, another unit needs it"),
        };
        writeln!(out, "{what}  {}: {how}", step.unit())?;
        fold(out, "    why     ", step.why())?;
    }
    if n_changed == 0 {
        return Ok(());
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
    let indent = " ".repeat(head.chars().count().min(12));
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
