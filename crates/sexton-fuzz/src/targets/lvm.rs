//! The text that LVM keeps of a volume group on its disks.

use sexton_image::fuzz;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "lvm",
    run: fuzz::lvm,
};
