//! Partition tables of disks, MBR and GPT.

use sexton_image::fuzz;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "partition_table",
    run: fuzz::partition_table,
};
