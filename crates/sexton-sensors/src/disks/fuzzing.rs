//! For the fuzz targets.

use std::time::Duration;

use super::{table, users};

/// What the counters of disks and of a process might come to.
pub fn disk_files(file: &[u8]) -> Vec<f64> {
    let text = String::from_utf8_lossy(file);
    users::bytes(&text);
    let disks = table::parse(&text);
    let Some((_, first)) = disks.first() else {
        return Vec::new();
    };
    let changes = disks
        .iter()
        .map(|(_, disk)| disk.since(first, Duration::from_secs(1)));
    changes
        .flatten()
        .flat_map(|change| [change.busy, change.queue])
        .collect()
}
