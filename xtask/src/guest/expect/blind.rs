//! A census that cannot see all counts less and says so. It never counts wrong.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::value::{expect, find, list};
use super::{all, expect_counts, expect_origin, held};
use crate::guest::report::Report;
use crate::guest::{Cell, Cgroup};

/// The part of the hierarchy that the job mounts elsewhere.
const PART: &str = "/system.slice";

/// How every census without root ends: it names what it may not do, and what only
/// the walk can see is unknown, not zero.
fn without_root(report: &Report, section: &str) -> Result<Value> {
    let exit_code = report.section(section)?.exit_code;
    ensure!(exit_code == 3, "exit code {exit_code}");
    let census = report.json(section)?;
    find(&census, "gaps", "kind", "denied")?;
    expect(&census, "/leaked", Value::Null)?;
    expect(&census, "/memory_bytes", Value::Null)?;
    Ok(census)
}

pub(super) fn unprivileged(cell: &Cell, report: &Report) -> Result<()> {
    let census = without_root(report, "unprivileged")?;
    expect_counts(&census, report)?;
    expect(&census, "/kernel_total", all(report, "after")?)?;
    match cell.cgroup {
        Cgroup::V1 => {
            expect(&census, "/method", "proc-cgroups")?;
            expect(&census, "/origins", Value::Array(Vec::new()))
        }
        Cgroup::V2 => {
            expect(&census, "/method", "cgroup-stat")?;
            for leak in held(cell) {
                let name = format!("{}/<gone>", leak.parent);
                expect_origin(&census, &name, 0, leak.n)?;
            }
            Ok(())
        }
    }
}

/// The walk does not care what is mounted.
pub(super) fn part_with_root(_: &Cell, report: &Report) -> Result<()> {
    let census = report.json("part-root")?;
    expect(&census, "/method", "bpf-walk")?;
    expect(&census, "/gaps", Value::Array(Vec::new()))?;
    expect_counts(&census, report)
}

pub(super) fn part_without_root(cell: &Cell, report: &Report) -> Result<()> {
    let census = without_root(report, "part-unprivileged")?;
    let says_so = |gap: &Value| {
        gap["why"]
            .as_str()
            .is_some_and(|why| why.contains(&format!("shows only {PART} ")))
    };
    let gaps = list(&census, "gaps")?;
    ensure!(
        gaps.iter().any(says_so),
        "no gap says that only {PART} is seen: {gaps:?}"
    );
    match cell.cgroup {
        // The kernel counts the node, and there is nothing to count the living with.
        Cgroup::V1 => {
            expect(&census, "/live", Value::Null)?;
            expect(&census, "/dying", Value::Null)?;
            expect(&census, "/kernel_total", all(report, "after")?)
        }
        Cgroup::V2 => {
            expect(&census, "/live", report.number("part", "directories")?)?;
            expect(&census, "/dying", report.number("part", "dying")?)?;
            expect(&census, "/kernel_total", Value::Null)?;
            for leak in held(cell).filter(|leak| leak.parent.starts_with(PART)) {
                let name = format!("{}/<gone>", leak.parent);
                expect_origin(&census, &name, 0, leak.n)?;
            }
            Ok(())
        }
    }
}
