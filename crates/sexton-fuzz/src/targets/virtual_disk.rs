//! VMDK, VHD and VHDX, behind their checksums: a byte that says which, and sectors with their
//! numbers.

use sexton_image::fuzz;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "virtual_disk",
    run: fuzz::virtual_disk,
};
