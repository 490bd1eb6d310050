//! What `sexton fix` must have freed, and what it must have left as it was.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::value::{expect, list, number};
use super::{N_MAPPED, N_OWN, N_SHARED, N_SHMEM};
use crate::guest::report::Report;
use crate::guest::{Cell, Cgroup};

/// A block of the filesystem's own may hold one or two for a while.
const MAX_BY_METADATA: u64 = 2;

/// How many may be left beside those that must be. On cgroup2 an inode that was written to is
/// attached to the writeback of its writer's cgroup, which holds that cgroup, without a page,
/// until the inode is evicted. Newer kernels move such inodes away from dying ones
/// ("writeback, cgroup: release dying cgwbs by switching attached inodes", 2021).
fn max_left_over(cell: &Cell) -> u64 {
    let holds_inodes = cell.cgroup == Cgroup::V2 && !cell.kernel.has_reclaim;
    match holds_inodes {
        true => MAX_BY_METADATA + N_OWN + 1,
        false => MAX_BY_METADATA,
    }
}

const NEIGHBOUR: &str = "/mapped.service/neighbour";

/// What was freed, where there was anything to free.
fn freed(cell: &Cell, report: &Report) -> Result<Option<Value>> {
    if !cell.kernel.cache_holds {
        ensure!(report.section("fix").is_err(), "there was nothing to free");
        return Ok(None);
    }
    let exit_code = report.section("fix")?.exit_code;
    // What tmpfs holds is left, which is a finding.
    ensure!(exit_code == 1, "exit code {exit_code}");
    let fix = report.json("fix")?;
    expect(&fix, "/schema", "sexton.fix/1")?;
    expect(&fix, "/before", N_SHARED + N_OWN + N_SHMEM + N_MAPPED)?;
    Ok(Some(fix))
}

/// Whether the kernel can be told to reclaim without harm to neighbours.
fn can_reclaim(cell: &Cell) -> bool {
    cell.cgroup == Cgroup::V2 && cell.kernel.has_reclaim
}

/// The steps whose title begins so.
fn steps<'a>(fix: &'a Value, title: &str) -> Result<Vec<&'a Value>> {
    let is_it = |step: &&Value| {
        step["title"]
            .as_str()
            .is_some_and(|text| text.starts_with(title))
    };
    let found: Vec<&Value> = list(fix, "steps")?.iter().filter(is_it).collect();
    ensure!(!found.is_empty(), "no step is to {title}: {fix:#}");
    Ok(found)
}

pub(super) fn files(cell: &Cell, report: &Report) -> Result<()> {
    let Some(fix) = freed(cell, report)? else {
        return Ok(());
    };
    let steps = steps(&fix, "drop the cached pages")?;
    expect(steps[0], "/outcome", "done")?;
    let after = number(steps[steps.len() - 1], "/after")?;
    let most = N_SHMEM + N_MAPPED + max_left_over(cell);
    ensure!(after <= most, "{after} are left of which {most} may be");
    Ok(())
}

pub(super) fn tmpfs(cell: &Cell, report: &Report) -> Result<()> {
    let Some(fix) = freed(cell, report)? else {
        return Ok(());
    };
    let names_it = |left: &&Value| {
        left["why"]
            .as_str()
            .is_some_and(|why| why.contains("/run/shared"))
    };
    let left = list(&fix, "left")?.iter().find(names_it);
    let left = left.with_context(|| format!("nothing is left by /run/shared: {fix:#}"))?;
    expect(left, "/dying", N_SHMEM)
}

/// Of v1 the tests on the machine's own kernel tell, with a neighbour of megabytes: here its
/// few pages may wait in batches of CPUs, and on 5.10 hardly any is charged to it.
pub(super) fn mapped(cell: &Cell, report: &Report) -> Result<()> {
    let Some(fix) = freed(cell, report)?.filter(|_| cell.cgroup == Cgroup::V2) else {
        return Ok(());
    };
    let steps = steps(&fix, "reclaim")?;
    let (outcome, reason, n_left) = match can_reclaim(cell) {
        true => ("done", None, N_SHMEM),
        false => ("withheld", Some("memory.reclaim"), N_SHMEM + N_MAPPED),
    };
    expect(steps[0], "/outcome", outcome)?;
    if let Some(reason) = reason {
        let why = steps[0]["why"].as_str().unwrap_or_default();
        ensure!(why.contains(reason), "{why:?} does not tell of {reason}");
    }
    let after = number(&fix, "/after")?;
    ensure!(
        (n_left..=n_left + max_left_over(cell)).contains(&after),
        "{after} are left, expected {n_left}: {fix:#}"
    );
    Ok(())
}

pub(super) fn neighbour(cell: &Cell, report: &Report) -> Result<()> {
    if cell.cgroup == Cgroup::V1 || freed(cell, report)?.is_none() {
        return Ok(());
    }
    let number = |section, key| report.number(section, key);
    let (before, after) = (
        number("fix-before", "bytes")?,
        number("fix-after", "bytes")?,
    );
    // Kernels count in batches of some pages for each CPU.
    ensure!(before > 3 << 20, "it had {before} bytes only");
    ensure!(
        after * 10 >= before * 9,
        "it had {before} bytes and has {after}"
    );
    for (key, value) in [("low", 8192), ("inner_low", 0)] {
        for section in ["fix-before", "fix-after"] {
            let found = number(section, key)?;
            ensure!(found == value, "{section}: {key} is {found}");
        }
    }
    if can_reclaim(cell) {
        was_spared(&report.section("fix-undo")?.text)?;
    }
    Ok(())
}

/// The undo file tells that the protection was raised, and from what.
fn was_spared(undo: &str) -> Result<()> {
    for (file, value) in [("memory.low", "8192"), ("inner/memory.low", "0")] {
        let path = format!("{NEIGHBOUR}/{file}\"");
        let line = undo.lines().find(|line| line.contains(&path));
        let line = line.with_context(|| format!("{path} was not raised: {undo}"))?;
        ensure!(line.contains(&format!("\"{value}\"")), "{line}");
    }
    Ok(())
}
