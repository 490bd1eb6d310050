//! Sealed segments of bundles: Parquet.

use crate::file;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "segment",
    run,
};

fn run(bytes: &[u8]) {
    let read = sexton_store::fuzzing::segment(file::holding(bytes));
    read.expect("a file in memory can be read");
}
