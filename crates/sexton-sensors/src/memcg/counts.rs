//! The last resort: the kernel's count of cgroups less the directories there are.

use std::path::Path;

use sexton_host::Host;
use sexton_host::cgroup::{Controller, MemoryHierarchy, count_directories};
use sexton_model::census::{Census, Counts, Hierarchy, Look, Method};
use sexton_model::gap::{Gap, Why};
use sexton_model::sight::Sight;

use super::{NAME, host_gap, page_bytes};

const BEST: &str = "sudo sexton zombies";

const NO_NAMES: &str = "only: no paths, no pins, no leaked directories";

/// Whether a gap says that counts are all there is.
pub(super) fn is_limit(gap: &Gap) -> bool {
    gap.text.ends_with(NO_NAMES)
}

/// Counts. `Err` when nothing at all can be counted.
pub(super) fn take(host: &Host, memory: &MemoryHierarchy) -> Result<Census, Gap> {
    let mut census = Census::new(Method::ProcCgroups, memory.hierarchy, page_bytes());
    let kernel_total = match Controller::memory(host) {
        Ok(Some(row)) => Some(row.n_cgroups),
        Ok(None) => {
            let text = "/proc/cgroups has no memory line on this kernel, so there is no count of dying ones";
            census.gaps.push(Gap::new(NAME, Why::Unsupported, text));
            None
        }
        Err(error) => {
            census.gaps.push(host_gap(&error));
            None
        }
    };
    let directories = count_live(host, memory, &mut census.gaps);
    if kernel_total.is_none() && directories.is_none() {
        return Err(census
            .gaps
            .pop()
            .unwrap_or_else(|| Gap::new(NAME, Why::Bug, "nothing could be counted")));
    }
    let n_counts = if kernel_total.is_some() && directories.is_some() {
        "two counts"
    } else {
        "one count"
    };
    let text = format!("{n_counts} {NO_NAMES}");
    let limits = Gap::new(NAME, Why::Unsupported, text).with_remedy(BEST);
    census.gaps.insert(0, limits);
    census.counts = Counts {
        live: directories,
        dying: directories
            .zip(kernel_total)
            .map(|(live, total)| total.saturating_sub(live)),
        leaked: None,
        total: kernel_total,
        kernel_total,
    };
    Ok(census)
}

/// Directories of the hierarchy; `None`, and a gap, when not all can be seen.
fn count_live(host: &Host, memory: &MemoryHierarchy, gaps: &mut Vec<Gap>) -> Option<u64> {
    let Some(mount) = &memory.mount else {
        gaps.push(Gap::new(
            NAME,
            Why::Unsupported,
            "the hierarchy is not mounted here, so live ones are not counted",
        ));
        return None;
    };
    if let Some(narrowed) = &memory.narrowed_by {
        let text = format!("live and dying ones cannot be told apart: {narrowed}");
        gaps.push(
            Gap::new(NAME, Why::Unsupported, text)
                .with_remedy("run on the node, outside any container"),
        );
        return None;
    }
    count_all(host, mount, gaps)
}

fn count_all(host: &Host, mount: &Path, gaps: &mut Vec<Gap>) -> Option<u64> {
    match count_directories(host, mount) {
        Ok((count, 0)) => Some(count),
        Ok((_, unread)) => {
            gaps.push(Gap::new(
                NAME,
                Why::Lost(unread),
                format!("{unread} directories could not be listed"),
            ));
            None
        }
        Err(error) => {
            gaps.push(host_gap(&error));
            None
        }
    }
}

/// What this way would say beside a better census.
pub(super) fn look(host: &Host, hierarchy: Hierarchy, live: Option<u64>) -> Look {
    let row = Controller::memory(host);
    let remark = match (&row, hierarchy) {
        (Ok(Some(_)), Hierarchy::V1) => "one count for the node; no names, no pins".into(),
        (Ok(Some(_)), Hierarchy::V2) => {
            "one count for the node, cgroups without memory state included".into()
        }
        (Ok(None), _) => "no answer: /proc/cgroups has no memory line on this kernel".into(),
        (Err(error), _) => format!("no answer: {}", error.chain()),
    };
    let total = row.ok().flatten().map(|row| row.n_cgroups);
    Look {
        method: Method::ProcCgroups,
        dying: total
            .zip(live)
            .map(|(total, live)| total.saturating_sub(live)),
        remark,
    }
}

pub(super) fn examine(host: &Host, memory: &MemoryHierarchy) -> Sight {
    let what = Method::ProcCgroups.name();
    match Controller::memory(host) {
        Ok(Some(_)) => match &memory.narrowed_by {
            None => Sight::sees(what, Method::ProcCgroups.shows()),
            Some(narrowed) => Sight::blind(what, format!("only the total: {narrowed}")).partly(),
        },
        Ok(None) if memory.hierarchy == Hierarchy::V2 => Sight::sees(
            what,
            "no memory line on this kernel; cgroup-stat answers instead",
        ),
        Ok(None) => Sight::blind(what, "/proc/cgroups has no memory line"),
        Err(error) => Sight::blind(what, error.chain()),
    }
}
