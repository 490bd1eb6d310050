//! Manifests of container images.

use sexton_image::fuzz;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "oci_manifest",
    run: fuzz::oci_manifest,
};
