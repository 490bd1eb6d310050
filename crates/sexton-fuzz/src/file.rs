//! Bytes as a file, for what reads files.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use rustix::fs::{MemfdFlags, memfd_create};

/// A file in memory that holds these bytes.
pub(crate) fn holding(bytes: &[u8]) -> File {
    let fd = memfd_create("fuzz", MemfdFlags::CLOEXEC).expect("memory for a small file");
    let file = File::from(fd);
    file.write_all_at(bytes, 0)
        .expect("memory for a small file");
    file
}
