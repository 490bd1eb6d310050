//! For the fuzz targets.

use std::sync::LazyLock;

use super::counters::Counters;
use super::files;

static COUNTERS: LazyLock<Counters> =
    LazyLock::new(|| Counters::load().expect("a test proves that they load"));

/// The subjects of what is kept of these statistics of a driver.
pub fn driver_statistics(driver: &str, names: &[String], values: &[u64]) -> Vec<String> {
    let kept = COUNTERS.choose(driver, "eth0", names);
    let sums = super::device::sums(&kept, values);
    sums.iter().map(|sum| sum.0.to_string()).collect()
}

/// What files of interrupts and queues might say.
pub fn interrupt_files(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    files::list_of_mask(&text);
    files::interrupt_name(&text, 7)
}
