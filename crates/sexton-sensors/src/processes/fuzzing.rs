//! For the fuzz targets.

use super::{blocked, load};
use crate::tasks::Stat;

/// What a `stat` of a process and `/proc/loadavg` might say.
pub fn process_stat(bytes: &[u8]) -> Option<u64> {
    Stat::parse(bytes);
    let text = String::from_utf8_lossy(bytes);
    blocked::switches(&text);
    blocked::frames(&text);
    blocked::exec_start(&text);
    load::Load::parse(&text).map(|load| load.tasks)
}
