//! Where the blocks of a file are: a list in its inode, or a tree of such lists.

use std::io;

use super::Xfs;
use super::inode::Inode;
use super::layout::{half, long, part};
use crate::tree::invalid;

/// A file in more pieces is damaged or a trap.
///
/// Chosen: they take 32 MB of memory.
const N_EXTENTS_MAX: u64 = 1_000_000;

/// As high as a tree may be (`XFS_BTREE_MAXLEVELS`).
const N_LEVELS_MAX: u16 = 9;

/// Blocks of a file that lie together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    /// The number of its first block in the file,
    pub(super) from: u64,
    /// and in the filesystem.
    pub(super) block: u64,
    pub(super) n_blocks: u64,
    /// Reserved and never written: reads as zeros.
    pub(super) is_unwritten: bool,
}

impl Extent {
    fn parse(raw: &[u8]) -> io::Result<Self> {
        let (high, low) = (long(raw, 0)?, long(raw, 8)?);
        Ok(Self {
            from: high << 1 >> 10,
            block: (high & 0x1ff) << 43 | low >> 21,
            n_blocks: low & 0x1f_ffff,
            is_unwritten: high >> 63 == 1,
        })
    }
}

/// Takes extents in the order of the file, and refuses any other: so no extent and no block of
/// a tree comes twice, and what is made up of them is bounded.
struct Taker<'a> {
    filesystem: &'a Xfs,
    extents: Vec<Extent>,
    n_max: u64,
}

impl<'a> Taker<'a> {
    fn new(filesystem: &'a Xfs, n_extents: u64) -> io::Result<Self> {
        if n_extents > N_EXTENTS_MAX {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("a file in {n_extents} pieces"),
            ));
        }
        Ok(Self {
            filesystem,
            extents: Vec::new(),
            n_max: n_extents,
        })
    }

    fn take(&mut self, records: &[u8]) -> io::Result<()> {
        for raw in records.chunks_exact(16) {
            let extent = Extent::parse(raw)?;
            let end = self
                .extents
                .last()
                .map_or(0, |last| last.from + last.n_blocks);
            if extent.n_blocks == 0 || extent.from < end || self.extents.len() as u64 >= self.n_max
            {
                return Err(invalid("extents out of order"));
            }
            self.filesystem.block_at(extent.block)?;
            self.filesystem
                .block_at(extent.block.saturating_add(extent.n_blocks - 1))?;
            self.extents.push(extent);
        }
        Ok(())
    }

    fn finish(self) -> io::Result<Vec<Extent>> {
        match self.extents.len() as u64 == self.n_max {
            true => Ok(self.extents),
            false => Err(invalid("fewer extents than the inode says")),
        }
    }
}

pub(super) fn in_fork(filesystem: &Xfs, fork: &[u8], n_extents: u64) -> io::Result<Vec<Extent>> {
    let mut taker = Taker::new(filesystem, n_extents)?;
    let bytes = usize::try_from(n_extents * 16).map_err(io::Error::other)?;
    taker.take(part(fork, 0, bytes)?)?;
    taker.finish()
}

pub(super) fn in_tree(
    filesystem: &Xfs,
    owner: u64,
    root: &[u8],
    n_extents: u64,
) -> io::Result<Vec<Extent>> {
    let mut taker = Taker::new(filesystem, n_extents)?;
    let level = half(root, 0)?;
    if !(1..N_LEVELS_MAX).contains(&level) {
        return Err(invalid("a tree of extents of an impossible height"));
    }
    for child in children(root, half(root, 2)?, 4)? {
        branch(&mut taker, owner, child, level - 1)?;
    }
    taker.finish()
}

/// The blocks below a node, whose head has `head_bytes`: the keys come first.
fn children(node: &[u8], n: u16, head_bytes: usize) -> io::Result<Vec<u64>> {
    let n = usize::from(n);
    let n_max = node.len().saturating_sub(head_bytes) / 16;
    if n == 0 || n > n_max {
        return Err(invalid("a node of a tree with an impossible size"));
    }
    let at = head_bytes + n_max * 8;
    (0..n).map(|child| long(node, at + child * 8)).collect()
}

fn branch(taker: &mut Taker<'_>, owner: u64, block: u64, level: u16) -> io::Result<()> {
    let filesystem = taker.filesystem;
    let at = filesystem.block_at(block)?;
    let block_bytes = usize::try_from(filesystem.superblock.block_bytes).expect("up to 64 KiB");
    let mut raw = vec![0; block_bytes];
    filesystem.bytes.read_exact_at(at, &mut raw)?;
    let (magic, head_bytes) = match filesystem.superblock.is_v5 {
        true => (b"BMA3", 72),
        false => (b"BMAP", 24),
    };
    if raw[..4] != *magic || half(&raw, 4)? != level {
        return Err(invalid("a tree of extents that is none"));
    }
    if filesystem.superblock.is_v5 {
        filesystem.check_self(&raw, (64, 40), (24, at), (56, owner))?;
    }
    if level > 0 {
        for child in children(&raw, half(&raw, 6)?, head_bytes)? {
            branch(taker, owner, child, level - 1)?;
        }
        return Ok(());
    }
    // An empty leaf could come again and again.
    let n = usize::from(half(&raw, 6)?);
    if n == 0 {
        return Err(invalid("a leaf of a tree with an impossible size"));
    }
    taker.take(part(&raw, head_bytes, n * 16)?)
}

/// Up to `len` bytes of a file; what no extent covers reads as zeros.
pub(super) fn read(filesystem: &Xfs, file: &Inode, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let left = file.size_bytes.saturating_sub(offset);
    let len = len.min(usize::try_from(left).unwrap_or(usize::MAX));
    let mut content = vec![0; len];
    fill(filesystem, file.extents()?, offset, &mut content)?;
    Ok(content)
}

/// Fills in what extents cover of the bytes from `offset` on.
pub(super) fn fill(
    filesystem: &Xfs,
    extents: &[Extent],
    offset: u64,
    content: &mut [u8],
) -> io::Result<()> {
    let block_bytes = filesystem.superblock.block_bytes;
    let end = offset.saturating_add(content.len() as u64);
    // Blocks are counted with 54 bits and have up to 16: as bytes they may not fit.
    let first = extents.partition_point(|extent| {
        (extent.from + extent.n_blocks).saturating_mul(block_bytes) <= offset
    });
    for extent in &extents[first..] {
        let begins = extent.from.saturating_mul(block_bytes);
        if begins >= end {
            break;
        }
        if extent.is_unwritten {
            continue;
        }
        let from = begins.max(offset);
        let to = begins
            .saturating_add(extent.n_blocks * block_bytes)
            .min(end);
        let at = filesystem.block_at(extent.block)? + (from - begins);
        let within = |place: u64| usize::try_from(place - offset).expect("within the buffer");
        let piece = &mut content[within(from)..within(to)];
        filesystem.bytes.read_exact_at(at, piece)?;
    }
    Ok(())
}
