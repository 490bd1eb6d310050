//! For the fuzz targets.

use super::{blocked, scan};
use crate::tasks::Stat;

/// What a `stat` of a process and `/proc/loadavg` might say.
pub fn process_stat(bytes: &[u8]) -> Option<u64> {
    Stat::parse(bytes);
    let text = String::from_utf8_lossy(bytes);
    blocked::switches(&text);
    blocked::frames(&text);
    scan::tasks(&text)
}
