//! Directories: in the inode, in one block, or in many.
//!
//! The hashes by which the kernel finds a name in a large one are not used: all names are read
//! once and kept.

use std::io;

use super::Xfs;
use super::extents::{self, Extent};
use super::inode::{Content, Inode};
use super::layout::{half, long, part, word};
use crate::inodes::Names;
use crate::tree::invalid;

/// Names come before this offset in the file that a directory is, hashes after it.
const NAMES_BYTES: u64 = 32 << 30;

/// All blocks with names of one directory together.
///
/// Chosen: 200,000 names of 255 bytes fit, and so does a million of 40.
const DIR_BYTES_MAX: u64 = 64 << 20;

/// What a directory says a directory is.
const IS_DIR: u8 = 2;

pub(super) fn names(filesystem: &Xfs, dir: &Inode) -> io::Result<Names<u64>> {
    let mut names = Names::new();
    match &dir.content {
        Content::Local(raw) => short(filesystem, raw, &mut names)?,
        _ => long_form(filesystem, dir, &mut names)?,
    }
    Ok(names)
}

fn short(filesystem: &Xfs, raw: &[u8], names: &mut Names<u64>) -> io::Result<()> {
    let head = part(raw, 0, 2)?;
    // Numbers have four bytes unless any of them needs eight.
    let (n, number_bytes) = match head[1] {
        0 => (head[0], 4),
        _ => (head[0], 8),
    };
    let has_types = filesystem.superblock.has_types;
    let mut at = 2 + number_bytes;
    for _ in 0..n {
        let len = usize::from(part(raw, at, 1)?[0]);
        let name = part(raw, at + 3, len)?;
        at += 3 + len;
        let is_dir = match has_types {
            true => Some(part(raw, at, 1)?[0] == IS_DIR),
            false => None,
        };
        at += usize::from(has_types);
        let number = match number_bytes {
            4 => u64::from(word(raw, at)?),
            _ => long(raw, at)?,
        };
        at += number_bytes;
        names.add(name, number, is_dir)?;
    }
    Ok(())
}

fn long_form(filesystem: &Xfs, dir: &Inode, names: &mut Names<u64>) -> io::Result<()> {
    let superblock = &filesystem.superblock;
    let bytes = superblock.block_bytes << superblock.dir_block_bits;
    let mut raw = vec![0; usize::try_from(bytes).expect("up to 64 KiB")];
    let extents = dir.extents()?;
    let mut total = 0;
    let mut next = 0;
    for extent in extents {
        let begins = extent.from.saturating_mul(superblock.block_bytes);
        let ends = begins.saturating_add(extent.n_blocks * superblock.block_bytes);
        // A block of names may be in several extents; it is read once.
        let mut at = (begins / bytes * bytes).max(next);
        while at < ends.min(NAMES_BYTES) {
            total += bytes;
            if total > DIR_BYTES_MAX {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            raw.fill(0);
            extents::fill(filesystem, extents, at, &mut raw)?;
            block(filesystem, dir, extents, at, &raw, names)?;
            at += bytes;
        }
        next = next.max(at);
    }
    Ok(())
}

/// The names of one block.
fn block(
    filesystem: &Xfs,
    dir: &Inode,
    extents: &[Extent],
    offset: u64,
    raw: &[u8],
    names: &mut Names<u64>,
) -> io::Result<()> {
    let (head_bytes, is_whole) = match &raw[..4] {
        b"XDB3" => (64, true),
        b"XDD3" => (64, false),
        b"XD2B" => (16, true),
        b"XD2D" => (16, false),
        _ => return Err(invalid("a block of a directory that is none")),
    };
    if filesystem.superblock.is_v5 != (head_bytes == 64) {
        return Err(invalid("a block of a directory of another version"));
    }
    if filesystem.superblock.is_v5 {
        let place = place(filesystem, extents, offset)?;
        filesystem.check_self(raw, (4, 24), (8, place), (40, dir.number))?;
    }
    // A directory of one block has its hashes at the end.
    let end = match is_whole {
        false => raw.len(),
        true => {
            let n = word(raw, raw.len() - 8)? as usize;
            let hashes = n.saturating_mul(8).saturating_add(8);
            raw.len()
                .checked_sub(hashes)
                .ok_or_else(|| invalid("a directory with impossible hashes"))?
        }
    };
    let raw = part(raw, 0, end)?;
    let mut at = head_bytes;
    while at < end {
        at += entry(filesystem, raw, at, names)?;
    }
    Ok(())
}

/// Takes the entry at `at`, and says how long it is.
fn entry(filesystem: &Xfs, raw: &[u8], at: usize, names: &mut Names<u64>) -> io::Result<usize> {
    if half(raw, at)? == 0xffff {
        let len = usize::from(half(raw, at + 2)?);
        return match len {
            0 => Err(invalid("a directory with an impossible gap")),
            len => Ok(len),
        };
    }
    let number = long(raw, at)?;
    let len = usize::from(part(raw, at + 8, 1)?[0]);
    let name = part(raw, at + 9, len)?;
    let has_types = filesystem.superblock.has_types;
    let is_dir = match has_types {
        true => Some(part(raw, at + 9 + len, 1)?[0] == IS_DIR),
        false => None,
    };
    if name != b"." && name != b".." {
        names.add(name, number, is_dir)?;
    }
    // The name, its sort and a tag of two bytes, to a multiple of eight.
    Ok((9 + len + usize::from(has_types) + 2).next_multiple_of(8))
}

/// Where in the filesystem a block of a directory begins.
fn place(filesystem: &Xfs, extents: &[Extent], offset: u64) -> io::Result<u64> {
    let block = offset / filesystem.superblock.block_bytes;
    let before = extents.partition_point(|extent| extent.from + extent.n_blocks <= block);
    let extent = extents
        .get(before)
        .filter(|extent| extent.from <= block)
        .ok_or_else(|| invalid("a directory with a hole"))?;
    filesystem.block_at(extent.block + (block - extent.from))
}
