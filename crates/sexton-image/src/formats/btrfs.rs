//! Btrfs on one device, with its subvolumes.
//!
//! Laid out as in the kernel's include/uapi/linux/btrfs_tree.h. Checksums of metadata are checked,
//! and where metadata is kept twice the other copy is taken. Checksums of files are not.

mod chunks;
mod files;
mod layout;
mod lzo;
mod nodes;
mod subvolumes;
mod superblock;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use sexton_host::{Meta, Root};

use super::{Format, Opened, magic};
use crate::bytes::Shared;
use crate::error::ImageError;
use crate::gaps::Gaps;
use crate::inodes::{Filesystem, Names};

use files::Inode;
use nodes::Nodes;
use subvolumes::Number;
use superblock::Pointer;

const NAME: &str = "Btrfs";

pub(super) static FORMAT: Format = Format {
    name: NAME,
    sniff: |head| magic(head, 65600, b"_BHRfS_M"),
    open: |bytes, gaps, _| open(bytes, gaps, true),
};

/// A fuzzer is let in behind the checksums.
pub(super) fn open(
    bytes: &Shared,
    gaps: &mut Gaps,
    checks_sums: bool,
) -> Result<Opened, ImageError> {
    let filesystem = Arc::new(Btrfs::open(bytes, checks_sums)?);
    if filesystem.nodes.superblock.has_log {
        gaps.add(
            "the Btrfs filesystem was not unmounted: changes in its log are not read; mount and \
             unmount a copy, and give that"
                .into(),
        );
    }
    subvolumes::joined(&filesystem, gaps)
}

/// Opens what a mount with these options would show.
pub(super) fn mounted(bytes: &Shared, options: &[String]) -> Result<Box<dyn Root>, String> {
    let filesystem = Btrfs::open(bytes, true).map_err(|error| error.to_string())?;
    subvolumes::mounted(&Arc::new(filesystem), options)
}

struct Btrfs {
    nodes: Nodes,
    /// Trees of subvolumes that were asked for.
    trees: Mutex<HashMap<u64, Pointer>>,
}

impl Btrfs {
    fn open(bytes: &Shared, checks_sums: bool) -> Result<Self, ImageError> {
        let superblock = superblock::read(bytes, checks_sums)?;
        let nodes = Nodes::new(Arc::clone(bytes), superblock);
        let nodes = nodes.map_err(|error| match error.kind() {
            io::ErrorKind::Unsupported => ImageError::Unread {
                what: format!("a Btrfs filesystem with {error}"),
                remedy: super::unread::MOUNT,
            },
            _ => ImageError::damaged(NAME, error),
        })?;
        Ok(Self {
            nodes,
            trees: Mutex::default(),
        })
    }

    fn tree(&self, subvolume: u64) -> io::Result<Pointer> {
        let trees = || self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tree) = trees().get(&subvolume) {
            return Ok(*tree);
        }
        let tree = subvolumes::tree(self, subvolume)?;
        trees().insert(subvolume, tree);
        Ok(tree)
    }
}

/// A filesystem, seen from one of its subvolumes.
struct Subvolume {
    filesystem: Arc<Btrfs>,
    root: Number,
}

impl Filesystem for Subvolume {
    type Number = Number;
    type Inode = Inode;

    fn root(&self) -> Number {
        self.root
    }

    fn inode(&self, number: Number) -> io::Result<Inode> {
        files::inode(&self.filesystem, number)
    }

    fn meta(&self, inode: &Inode) -> Meta {
        inode.meta()
    }

    fn names(&self, dir: &Inode) -> io::Result<Names<Number>> {
        files::names(&self.filesystem, dir)
    }

    fn target(&self, link: &Inode) -> io::Result<Vec<u8>> {
        files::target(&self.filesystem, link)
    }

    fn read(&self, file: &Inode, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        files::read(&self.filesystem, file, offset, len)
    }
}
