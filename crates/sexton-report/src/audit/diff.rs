//! What differs between two images, what matters first.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::json;
use sexton_model::audit::{Audit, AuditUnit, UnitVerdict};

use super::text::fold;

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// How much it matters: 0 most.
    pub rank: u8,
    /// `verdict`, `state`, `preset`, `unit`, `kernel`, `package`, `shape`, `os`.
    pub what: &'static str,
    /// Of what.
    pub name: String,
    /// In the first; `None` if it is not there.
    pub before: Option<String>,
    /// In the second.
    pub after: Option<String>,
}

/// Everything that differs.
pub fn diff(a: &Audit, b: &Audit) -> Vec<Change> {
    let mut changes = Vec::new();
    let by_name = |audit: &Audit| -> BTreeMap<String, AuditUnit> {
        audit
            .units
            .iter()
            .map(|unit| (unit.name.clone(), unit.clone()))
            .collect()
    };
    let (before, after) = (by_name(a), by_name(b));
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        units(name, before.get(name), after.get(name), &mut changes);
    }
    let whole = [
        ("os", Some(a.os.name.clone()), Some(b.os.name.clone()), 2),
        ("shape", shape(a), shape(b), 1),
        (
            "kernel",
            Some(a.os.kernels.join(" ")),
            Some(b.os.kernels.join(" ")),
            1,
        ),
    ];
    for (what, before, after, rank) in whole {
        push(&mut changes, rank, what, what, before, after);
    }
    let packages =
        |audit: &Audit| -> BTreeMap<String, String> { audit.packages.iter().cloned().collect() };
    let (before, after) = (packages(a), packages(b));
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        push(
            &mut changes,
            5,
            "package",
            name,
            before.get(name).cloned(),
            after.get(name).cloned(),
        );
    }
    changes.sort();
    changes
}

fn shape(audit: &Audit) -> Option<String> {
    audit.shape.as_ref().map(|(name, _)| name.clone())
}

fn units(
    name: &str,
    before: Option<&AuditUnit>,
    after: Option<&AuditUnit>,
    changes: &mut Vec<Change>,
) {
    let verdict = |unit: &AuditUnit| {
        if unit.is_on {
            unit.verdict.name()
        } else {
            "off"
        }
        .to_owned()
    };
    let is_bad = |unit: Option<&AuditUnit>| {
        unit.is_some_and(|unit| {
            unit.is_on && matches!(unit.verdict, UnitVerdict::Unwanted | UnitVerdict::Broken)
        })
    };
    let is_on = |unit: Option<&AuditUnit>| unit.is_some_and(|unit| unit.is_on);
    let rank = match () {
        () if is_bad(before) || is_bad(after) => 0,
        () if is_on(before) != is_on(after) => 2,
        () => 4,
    };
    push(
        changes,
        rank,
        "verdict",
        name,
        before.map(verdict),
        after.map(verdict),
    );
    let state = |unit: &AuditUnit| unit.state.to_owned();
    push(
        changes,
        rank.max(2),
        "state",
        name,
        before.map(state),
        after.map(state),
    );
    if let (Some(before), Some(after)) = (before, after) {
        let preset = |unit: &AuditUnit| unit.preset.map(str::to_owned);
        push(changes, 3, "preset", name, preset(before), preset(after));
    }
}

fn push(
    changes: &mut Vec<Change>,
    rank: u8,
    what: &'static str,
    name: &str,
    before: Option<String>,
    after: Option<String>,
) {
    if before != after {
        changes.push(Change {
            rank,
            what,
            name: name.to_owned(),
            before,
            after,
        });
    }
}

/// For people.
pub fn diff_text(out: &mut dyn Write, changes: &[Change], all: bool) -> io::Result<()> {
    let shown = |change: &&Change| all || change.rank < 5;
    if changes.is_empty() {
        return writeln!(out, "Nothing differs.");
    }
    let n_bad = changes.iter().filter(|change| change.rank == 0).count();
    writeln!(
        out,
        "{} differences; {n_bad} of them about units that are unwanted or broken.",
        changes.len()
    )?;
    for change in changes.iter().filter(shown) {
        let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "not there".into());
        let text = format!("{} -> {}", side(&change.before), side(&change.after));
        fold(out, &format!("{:8} {}: ", change.what, change.name), &text)?;
    }
    let n_packages = changes.iter().filter(|change| change.rank == 5).count();
    if !all && n_packages > 0 {
        writeln!(out, "and {n_packages} packages; --all lists them")?;
    }
    Ok(())
}

/// For programs: `sexton.image-diff/1`.
pub fn diff_json(out: &mut dyn Write, a: &str, b: &str, changes: &[Change]) -> io::Result<()> {
    let rows = changes.iter().map(|change| {
        json!({ "what": change.what, "name": change.name, "before": change.before, "after": change.after, "rank": change.rank })
    });
    let view = json!({ "schema": "sexton.image-diff/1", "a": a, "b": b, "differences": rows.collect::<Vec<_>>() });
    serde_json::to_writer_pretty(&mut *out, &view)?;
    writeln!(out)
}
