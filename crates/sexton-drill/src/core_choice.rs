//! Which core is held: the one that serves the fewest interrupts, so that a drill is felt
//! as little as it can be.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use sexton_host::Host;

use crate::error::DrillError;

/// The core to hold. There must be another one for everything else.
pub(crate) fn choose(host: &Host) -> Result<u32, DrillError> {
    let allowed = allowed()?;
    if allowed.len() < 2 {
        let text = "it holds one core and leaves the others alone, and there is no other";
        return Err(DrillError::NotPossible(text.into()));
    }
    let path = host.proc("interrupts").map_err(DrillError::Host)?;
    let table = host.read_text(path).map_err(DrillError::Host)?;
    let served = served(&table);
    let of = |core: u32| {
        let known = served.iter().find(|(known, _)| *known == core);
        known.map_or(0, |(_, n)| *n)
    };
    // The first core does the kernel's housekeeping: the last of those alike.
    let least = allowed.into_iter().rev().min_by_key(|core| of(*core));
    least.ok_or_else(|| DrillError::NotPossible("no core is known".into()))
}

/// Interrupts of devices that each core has served since boot.
fn served(table: &str) -> Vec<(u32, u64)> {
    let mut lines = table.lines();
    let heads = lines.next().unwrap_or_default().split_whitespace();
    let mut sums: Vec<(u32, u64)> = heads
        .filter_map(|head| head.strip_prefix("CPU")?.parse().ok())
        .map(|core| (core, 0))
        .collect();
    for line in lines {
        let mut words = line.split_whitespace();
        let irq = words.next().unwrap_or_default().trim_end_matches(':');
        if irq.parse::<u32>().is_err() {
            // Timers and the like, which every core has.
            continue;
        }
        for ((_, sum), word) in sums.iter_mut().zip(words) {
            *sum += word.parse::<u64>().unwrap_or(0);
        }
    }
    sums
}

/// The cores that this process may use.
fn allowed() -> Result<Vec<u32>, DrillError> {
    let set = sched_getaffinity(None)
        .map_err(|error| DrillError::NotPossible(format!("cannot ask for cores: {error}")))?;
    let cores = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
    Ok(cores.filter_map(|core| u32::try_from(core).ok()).collect())
}

/// Keeps this thread, and what it starts, on one core.
pub(crate) fn stay_on(core: u32) -> Result<(), DrillError> {
    set(&[core])
}

/// Keeps this thread, and what it starts, off one core.
pub(crate) fn stay_off(core: u32) -> Result<(), DrillError> {
    let mut others = allowed()?;
    others.retain(|other| *other != core);
    set(&others)
}

fn set(cores: &[u32]) -> Result<(), DrillError> {
    let mut only = CpuSet::new();
    for core in cores {
        only.set(*core as usize);
    }
    sched_setaffinity(None, &only)
        .map_err(|error| DrillError::NotPossible(format!("cannot choose cores {cores:?}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_of_devices_are_counted_by_core() {
        let table = "           CPU0       CPU2\n 38:          7      900 PCI-MSI 1-edge virtio2-input.0\n 39:      29060          1\nLOC:   99999999   99999999   Local timer interrupts\n";
        assert_eq!(served(table), [(0, 29_067), (2, 901)]);
        assert_eq!(served(""), []);
    }
}
