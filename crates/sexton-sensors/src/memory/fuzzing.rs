//! For the fuzz targets.

use super::{cgroups, look, vmstat};

/// What the counters of memory, of a cgroup and of a process might come to.
pub fn memory_files(file: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(file);
    cgroups::hits(&text);
    look::faults(file);
    let counters = vmstat::Counters::parse(&text)?;
    vmstat::meminfo(&text, "MemTotal:").max(Some(counters.read_in_bytes()))
}
