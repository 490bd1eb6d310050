//! Profiles of OpenTelemetry.

use crate::{Target, profile};

pub(crate) const TARGET: Target = Target {
    name: "otlp",
    run: profile::import,
};
