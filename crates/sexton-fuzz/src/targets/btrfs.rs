//! Btrfs filesystems in images, behind their checksums: sectors with their numbers.

use sexton_image::fuzz;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "btrfs",
    run: fuzz::btrfs,
};
