//! cgroup v2 without BPF: follows `cgroup.stat` down to the directories that the
//! dying ones were below. Reads only branches whose count is not zero.

use std::path::{Path, PathBuf};

use sexton_host::cgroup::{CgroupStat, MemoryHierarchy};
use sexton_host::{Host, HostError};
use sexton_model::census::{Census, Counts, Hierarchy, Look, Method, OriginGroup};
use sexton_model::gap::{Gap, Why};
use sexton_model::origin::Origin;
use sexton_model::sight::Sight;

use super::{NAME, page_bytes};

/// What a removed child is called when its name is not known.
const GONE: &[u8] = b"<gone>";

/// Follows the counts. `Err` says why this way is closed.
pub(super) fn take(host: &Host, memory: &MemoryHierarchy) -> Result<Census, String> {
    let mount = mount_of(memory)?;
    let top = CgroupStat::read(host, mount)
        .map_err(|error| format!("not possible: {}", error.chain()))?;
    let mut census = Census::new(Method::CgroupStat, memory.hierarchy, page_bytes());
    let live = top.n_memory.unwrap_or(top.n_descendants + 1);
    census.counts = Counts {
        live: Some(live),
        dying: Some(top.dying()),
        leaked: None,
        total: Some(live + top.dying()),
        // In a part of the hierarchy the kernel counts that part only.
        kernel_total: Some(live + top.dying()).filter(|_| memory.narrowed_by.is_none()),
    };
    note_limits(&mut census.gaps, memory, &top);
    let mut queue = vec![(mount.to_owned(), top)];
    while let Some((directory, stat)) = queue.pop() {
        descend(host, memory, &directory, &stat, &mut queue, &mut census);
    }
    census
        .origins
        .sort_by(|a, b| (b.dying, &a.pattern).cmp(&(a.dying, &b.pattern)));
    Ok(census)
}

fn mount_of(memory: &MemoryHierarchy) -> Result<&Path, String> {
    if memory.hierarchy == Hierarchy::V1 {
        return Err("not possible: cgroup v1 has no cgroup.stat".into());
    }
    memory
        .mount
        .as_deref()
        .ok_or_else(|| "not possible: cgroup2 is not mounted here".into())
}

fn note_limits(gaps: &mut Vec<Gap>, memory: &MemoryHierarchy, top: &CgroupStat) {
    gaps.push(
        Gap::new(
            NAME,
            Why::Unsupported,
            "counts per directory only: no names of removed ones, no pins, no ages",
        )
        .with_remedy("sudo sexton zombies"),
    );
    if top.n_dying_memory.is_none() {
        let text = "this kernel counts dying cgroups of all controllers together, so some may hold no memory state";
        gaps.push(Gap::new(NAME, Why::Unsupported, text));
    }
    if let Some(narrowed) = &memory.narrowed_by {
        let text = format!("only a part of the node is counted: {narrowed}");
        gaps.push(
            Gap::new(NAME, Why::Unsupported, text)
                .with_remedy("run on the node, outside any container"),
        );
    }
}

/// Looks below one directory; what its children do not account for was directly
/// below it.
fn descend(
    host: &Host,
    memory: &MemoryHierarchy,
    directory: &Path,
    stat: &CgroupStat,
    queue: &mut Vec<(PathBuf, CgroupStat)>,
    census: &mut Census,
) {
    let entries = match host.list(directory) {
        Ok(entries) => entries,
        Err(error) => return note_unread(census, &error),
    };
    let mut below = 0;
    for entry in entries.into_iter().filter(|entry| entry.is_dir) {
        let child = directory.join(&entry.name);
        match CgroupStat::read(host, &child) {
            Ok(stat) if stat.dying() > 0 => {
                below += stat.dying();
                queue.push((child, stat));
            }
            Ok(_) => {}
            Err(error) => note_unread(census, &error),
        }
    }
    let own = stat.dying().saturating_sub(below);
    if own > 0 {
        census
            .origins
            .push(gone_below(&memory.path_of(directory), own));
    }
}

fn note_unread(census: &mut Census, error: &HostError) {
    // A directory that went away meanwhile is counted by its parent.
    if error.why() != Why::Vanished {
        census.gaps.push(super::host_gap(error));
    }
}

pub(super) fn gone_below(directory: &[u8], dying: u64) -> OriginGroup {
    let mut pattern = directory.to_vec();
    if !pattern.ends_with(b"/") {
        pattern.push(b'/');
    }
    pattern.extend_from_slice(GONE);
    OriginGroup {
        unit: Origin::of(directory).host_unit().map(str::to_owned),
        example: pattern.clone(),
        pattern,
        images: Vec::new(),
        live: 0,
        leaked: 0,
        young_empty: 0,
        dying,
        pages: None,
        held_by_children: 0,
        without_pin: 0,
        oldest_seconds: None,
    }
}

/// What this way would say beside a better census.
pub(super) fn look(host: &Host, memory: &MemoryHierarchy) -> Look {
    let stat = mount_of(memory).and_then(|mount| {
        CgroupStat::read(host, mount).map_err(|error| format!("not possible: {}", error.chain()))
    });
    match stat {
        Ok(stat) => Look {
            method: Method::CgroupStat,
            dying: Some(stat.dying()),
            remark: match &memory.narrowed_by {
                Some(narrowed) => format!("of a part of the node only: {narrowed}"),
                None => Method::CgroupStat.shows().into(),
            },
        },
        Err(remark) => Look {
            method: Method::CgroupStat,
            dying: None,
            remark,
        },
    }
}

pub(super) fn examine(host: &Host, memory: &MemoryHierarchy) -> Sight {
    let what = Method::CgroupStat.name();
    if memory.hierarchy == Hierarchy::V1 {
        // Not a loss: there is nothing to see.
        return Sight::sees(what, "not needed: cgroup v1 has no such file");
    }
    let look = look(host, memory);
    match look.dying {
        Some(_) => Sight::sees(what, Method::CgroupStat.shows()),
        None => Sight::blind(what, look.remark),
    }
}
