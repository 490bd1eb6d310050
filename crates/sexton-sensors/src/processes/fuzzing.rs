//! For the fuzz targets.

use super::scan;

/// What a `stat` of a process and `/proc/loadavg` might say.
pub fn process_stat(bytes: &[u8]) -> Option<u64> {
    scan::stat(bytes);
    scan::tasks(&String::from_utf8_lossy(bytes))
}
