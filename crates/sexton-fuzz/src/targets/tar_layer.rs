//! Layers of container images.

use sexton_image::fuzz;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "tar_layer",
    run: fuzz::tar_layer,
};
