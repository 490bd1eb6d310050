//! For the fuzz targets.

use super::counters;

/// What counters of dropped packets might come to.
pub fn network_files(file: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(file);
    let (dropped, _) = counters::softnet(&text)?;
    counters::netstat(&text, "ListenOverflows").max(Some(dropped))
}
