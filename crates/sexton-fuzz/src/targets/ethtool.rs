//! What drivers of network devices answer.

use sexton_host::ethtool::answer;
use sexton_sensors::fuzzing;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "ethtool",
    run,
};

/// Two that are known, and one that is not.
const DRIVERS: [&str; 3] = ["ena", "bnxt_en", "nobody"];

fn run(answer: &[u8]) {
    if let Some(driver) = answer::driver(answer) {
        for text in [driver.name, driver.version, driver.firmware, driver.bus] {
            crate::shown::assert_plain(&text);
        }
    }
    let names = answer::names(answer).unwrap_or_default();
    let values = answer::values(answer).unwrap_or_default();
    for driver in DRIVERS {
        for subject in fuzzing::driver_statistics(driver, &names, &values) {
            crate::shown::assert_plain(&subject);
        }
    }
}
