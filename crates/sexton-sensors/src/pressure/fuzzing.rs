//! For the fuzz targets.

use std::time::Duration;

use super::psi::{Psi, lost};

/// Parts of the time that a pressure file might say were lost.
pub fn pressure_file(file: &[u8]) -> Vec<f64> {
    let Some(psi) = Psi::parse(file) else {
        return Vec::new();
    };
    let lines = [Some(psi.some), psi.full].into_iter().flatten();
    let parts = lines.flat_map(|line| {
        let part = lost(1 << 20, line.total_us, Duration::from_secs(1));
        [Some(line.avg10), part]
    });
    parts.flatten().collect()
}
