//! Folded stacks.

use crate::{Target, profile};

pub(crate) const TARGET: Target = Target {
    name: "folded",
    run: profile::import,
};
