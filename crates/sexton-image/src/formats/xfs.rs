//! XFS, versions 4 and 5.
//!
//! Laid out as in the kernel's fs/xfs/libxfs/xfs_format.h and xfs_da_format.h. Checksums are
//! checked where there are any. What is on a realtime device is not read.

mod dir;
mod extents;
mod inode;
mod layout;
mod log;
mod superblock;

use std::io;
use std::sync::Arc;

use sexton_host::Meta;

use super::{Format, Opened, magic};
use crate::bytes::Shared;
use crate::error::ImageError;
use crate::gaps::Gaps;
use crate::inodes::{Filesystem, InodeRoot, Names};

use inode::Inode;
use superblock::Superblock;

const NAME: &str = "XFS";

pub(super) static FORMAT: Format = Format {
    name: NAME,
    sniff: |head| magic(head, 0, b"XFSB"),
    open: |bytes, gaps, _| open(bytes, gaps, true),
};

/// A fuzzer is let in behind the checksums.
pub(super) fn open(
    bytes: &Shared,
    gaps: &mut Gaps,
    checks_sums: bool,
) -> Result<Opened, ImageError> {
    let filesystem = Xfs {
        superblock: superblock::read(bytes, checks_sums)?,
        bytes: Arc::clone(bytes),
    };
    if let Some(gap) = log::gap(&filesystem) {
        gaps.add(gap);
    }
    // Without its root directory there is nothing to read.
    filesystem
        .inode(filesystem.superblock.root)
        .map_err(|error| ImageError::damaged(NAME, error))?;
    Ok((Box::new(InodeRoot::new(filesystem)), NAME.into()))
}

struct Xfs {
    bytes: Shared,
    superblock: Superblock,
}

impl Filesystem for Xfs {
    type Number = u64;
    type Inode = Inode;

    fn root(&self) -> u64 {
        self.superblock.root
    }

    fn inode(&self, number: u64) -> io::Result<Inode> {
        inode::read(self, number)
    }

    fn meta(&self, inode: &Inode) -> Meta {
        inode.meta()
    }

    fn names(&self, dir: &Inode) -> io::Result<Names<u64>> {
        dir::names(self, dir)
    }

    fn target(&self, link: &Inode) -> io::Result<Vec<u8>> {
        inode::target(self, link)
    }

    fn read(&self, file: &Inode, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        extents::read(self, file, offset, len)
    }
}
