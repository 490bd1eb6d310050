//! Inodes and symbolic links.

use std::io;

use sexton_host::{Kind, Meta};

use super::Xfs;
use super::extents::{self, Extent};
use super::layout::{half, is_sum_right, long, part, word};
use crate::tree::invalid;

/// As long as a symbolic link may be (`XFS_SYMLINK_MAXLEN`).
const TARGET_BYTES_MAX: u64 = 1024;

/// A file on the realtime device.
const IS_REALTIME: u16 = 0x1;
/// Counts of extents have 64 bits.
const HAS_MANY_EXTENTS: u64 = 0x10;

pub(super) struct Inode {
    pub(super) number: u64,
    pub(super) mode: u16,
    pub(super) size_bytes: u64,
    pub(super) content: Content,
}

pub(super) enum Content {
    /// In the inode itself.
    Local(Vec<u8>),
    Extents(Vec<Extent>),
    /// A device, pipe or socket: nothing to read.
    None,
    /// On the realtime device.
    Elsewhere,
}

impl Inode {
    pub(super) fn kind(&self) -> Kind {
        match self.mode & 0o170_000 {
            0o040_000 => Kind::Dir,
            0o100_000 => Kind::File,
            0o120_000 => Kind::Link,
            _ => Kind::Other,
        }
    }

    pub(super) fn meta(&self) -> Meta {
        Meta {
            kind: self.kind(),
            size_bytes: self.size_bytes,
            permissions: u32::from(self.mode) & 0o7777,
        }
    }

    pub(super) fn extents(&self) -> io::Result<&[Extent]> {
        match &self.content {
            Content::Extents(extents) => Ok(extents),
            Content::Elsewhere => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "it is on a realtime device",
            )),
            Content::Local(_) | Content::None => Err(invalid("a file without extents")),
        }
    }
}

pub(super) fn read(filesystem: &Xfs, number: u64) -> io::Result<Inode> {
    let superblock = &filesystem.superblock;
    let block = number >> superblock.inodes_bits;
    let within = number & ((1 << superblock.inodes_bits) - 1);
    let at = filesystem.block_at(block)? + within * superblock.inode_bytes as u64;
    let mut raw = vec![0; superblock.inode_bytes];
    filesystem.bytes.read_exact_at(at, &mut raw)?;
    if half(&raw, 0)? != 0x494e {
        return Err(invalid("an inode that is none"));
    }
    let version = raw[4];
    let core_bytes = match (superblock.is_v5, version) {
        (true, 3) => 176,
        (false, 1 | 2) => 100,
        _ => return Err(invalid("an inode of an impossible version")),
    };
    if superblock.is_v5 && superblock.checks_sums {
        if !is_sum_right(&raw, 100) {
            return Err(invalid("an inode whose checksum is wrong"));
        }
        if long(&raw, 152)? != number || raw[160..176] != superblock.uuid {
            return Err(invalid("an inode of another place or filesystem"));
        }
    }
    let mode = half(&raw, 2)?;
    let size_bytes = long(&raw, 56)?;
    if mode == 0 || size_bytes > i64::MAX as u64 {
        return Err(invalid("an inode that is free or has an impossible size"));
    }
    let fork_bytes = match usize::from(raw[82]) * 8 {
        0 => raw.len() - core_bytes,
        bytes => bytes,
    };
    let fork = part(&raw, core_bytes, fork_bytes)?;
    let mut inode = Inode {
        number,
        mode,
        size_bytes,
        content: Content::None,
    };
    inode.content = content(filesystem, &inode, &raw, fork)?;
    Ok(inode)
}

fn content(filesystem: &Xfs, inode: &Inode, raw: &[u8], fork: &[u8]) -> io::Result<Content> {
    if inode.kind() == Kind::Other {
        return Ok(Content::None);
    }
    if half(raw, 90)? & IS_REALTIME != 0 && inode.kind() == Kind::File {
        return Ok(Content::Elsewhere);
    }
    let superblock = &filesystem.superblock;
    let has_many = superblock.has_many_extents && long(raw, 120)? & HAS_MANY_EXTENTS != 0;
    let n_extents = match has_many {
        true => long(raw, 24)?,
        false => u64::from(word(raw, 76)?),
    };
    match raw[5] {
        // A file may be within its inode in no version that was released.
        1 if inode.kind() != Kind::File => {
            let len = usize::try_from(inode.size_bytes).unwrap_or(usize::MAX);
            Ok(Content::Local(part(fork, 0, len)?.to_vec()))
        }
        2 => Ok(Content::Extents(extents::in_fork(
            filesystem, fork, n_extents,
        )?)),
        3 => Ok(Content::Extents(extents::in_tree(
            filesystem,
            inode.number,
            fork,
            n_extents,
        )?)),
        _ => Err(invalid("an inode of an impossible format")),
    }
}

/// Where a symbolic link points to.
pub(super) fn target(filesystem: &Xfs, link: &Inode) -> io::Result<Vec<u8>> {
    if link.size_bytes > TARGET_BYTES_MAX {
        return Err(invalid("a link longer than any path can be"));
    }
    if let Content::Local(target) = &link.content {
        return Ok(target.clone());
    }
    let len = usize::try_from(link.size_bytes).map_err(io::Error::other)?;
    if !filesystem.superblock.is_v5 {
        return extents::read(filesystem, link, 0, len);
    }
    let mut target = Vec::with_capacity(len);
    for extent in link.extents()? {
        let left = len - target.len();
        if left == 0 {
            break;
        }
        // Each extent has a head of its own, and a link needs at most a few blocks.
        let at = filesystem.block_at(extent.block)?;
        let bytes = extent.n_blocks * filesystem.superblock.block_bytes;
        if bytes > 128 << 10 {
            return Err(invalid("a link longer than any path can be"));
        }
        let mut raw = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
        filesystem.bytes.read_exact_at(at, &mut raw)?;
        if raw[..4] != *b"XSLM" || word(&raw, 4)? as usize != target.len() {
            return Err(invalid("a symbolic link that is none"));
        }
        filesystem.check_self(&raw, (12, 16), (40, at), (32, link.number))?;
        let n = left.min(word(&raw, 8)? as usize);
        target.extend_from_slice(part(&raw, 56, n)?);
    }
    match target.len() == len {
        true => Ok(target),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
