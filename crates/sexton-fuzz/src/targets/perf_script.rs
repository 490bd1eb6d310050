//! The text of perf script.

use crate::{Target, profile};

pub(crate) const TARGET: Target = Target {
    name: "perf_script",
    run: profile::import,
};
