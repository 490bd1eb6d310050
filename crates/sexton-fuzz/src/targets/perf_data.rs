//! What `perf record` writes: as it is, and as the records of a pipe, whose header always fits.

use crate::{Target, profile};

pub(crate) const TARGET: Target = Target {
    name: "perf_data",
    run,
};

fn run(bytes: &[u8]) {
    profile::import(bytes);
    let mut pipe = b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec();
    pipe.extend_from_slice(bytes);
    profile::import(&pipe);
}
