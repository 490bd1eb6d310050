//! pprof files of other profilers.

use crate::{Target, profile};

pub(crate) const TARGET: Target = Target {
    name: "pprof",
    run: profile::import,
};
