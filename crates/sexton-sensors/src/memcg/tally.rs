//! Counts memory cgroups without a walk of all of them, for the gate.
//!
//! cgroup v2 keeps both counts itself. On v1 the kernel tells the sum, and live ones are
//! counted by their directories, but only until there are enough to pass, or too many to
//! go on.

use sexton_host::cgroup::{CgroupStat, Controller, MemoryHierarchy, count_directories_until};
use sexton_host::{Host, HostError};
use sexton_model::census::Hierarchy;
use sexton_model::gap::{Gap, Why};
use sexton_model::gate::{Live, Tally};

use super::{NAME, find_memory, host_gap};

/// Directories that are listed at most. Each costs about 20 us.
const MAX_DIRECTORIES: u64 = 5_000;

/// Counts. Of live ones no more are needed than `enough` says for the sum.
pub fn tally(host: &Host, enough: impl Fn(u64) -> u64) -> Tally {
    let mut tally = Tally::default();
    let memory = match find_memory(host) {
        Ok(memory) => memory,
        Err(gap) => {
            tally.gaps.push(gap);
            return tally;
        }
    };
    if let Some(narrowed) = &memory.narrowed_by {
        let text = format!("only a part of the node can be counted: {narrowed}");
        tally.gaps.push(
            Gap::new(NAME, Why::Unsupported, text)
                .with_remedy("run on the node, outside any container"),
        );
        return tally;
    }
    let counted = match memory.hierarchy {
        Hierarchy::V2 => by_stat(host, &memory, &mut tally),
        Hierarchy::V1 => by_directories(host, &memory, enough, &mut tally),
    };
    if let Err(error) = counted {
        tally.gaps.push(host_gap(&error));
    }
    tally
}

fn by_stat(host: &Host, memory: &MemoryHierarchy, tally: &mut Tally) -> Result<(), HostError> {
    let Some(mount) = &memory.mount else {
        tally.gaps.push(not_mounted());
        return Ok(());
    };
    let top = CgroupStat::read(host, mount)?;
    let live = top.n_memory.unwrap_or(top.n_descendants + 1);
    tally.total = Some(live + top.dying());
    tally.live = Some(Live::Exactly(live));
    Ok(())
}

fn by_directories(
    host: &Host,
    memory: &MemoryHierarchy,
    enough: impl Fn(u64) -> u64,
    tally: &mut Tally,
) -> Result<(), HostError> {
    let Some(row) = Controller::memory(host)? else {
        let text = "/proc/cgroups has no memory line, so there is no count of dying ones";
        tally.gaps.push(Gap::new(NAME, Why::Unsupported, text));
        return Ok(());
    };
    tally.total = Some(row.n_cgroups);
    let Some(mount) = &memory.mount else {
        tally.gaps.push(not_mounted());
        return Ok(());
    };
    let most = enough(row.n_cgroups).min(MAX_DIRECTORIES);
    let (count, is_all) = count_directories_until(host, mount, most)?;
    tally.live = Some(match is_all {
        true => Live::Exactly(count),
        false => Live::AtLeast(count),
    });
    Ok(())
}

fn not_mounted() -> Gap {
    Gap::new(
        NAME,
        Why::Unsupported,
        "the memory hierarchy is not mounted here, so it is not counted",
    )
}
