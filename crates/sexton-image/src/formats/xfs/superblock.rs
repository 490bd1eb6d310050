//! The superblock: sizes, the root directory, and features.

use std::io;

use super::layout::{half, is_sum_right, long, word};
use super::{NAME, Xfs};
use crate::bytes::Shared;
use crate::error::ImageError;
use crate::tree::invalid;

/// What is read of it; what a checksum covers is as long as a sector.
const SECTOR_BYTES: std::ops::RangeInclusive<u16> = 512..=32768;

/// Features of version 5 that change how a file is read, by bit and name.
///
/// Those that are not listed here do not: sparse inodes, a UUID of metadata, large times,
/// exchange of ranges and parents in attributes.
const UNREAD: &[(u32, &str)] = &[
    (
        0x10,
        "damage that xfs_repair must mend first (needs repair)",
    ),
    (0x100, "a directory of metadata (metadir)"),
    (0x200, "zones"),
    (0x400, "zones with gaps"),
];
const KNOWN: u32 = 0x7ff;

const FILE_TYPE: u32 = 0x1;
const META_UUID: u32 = 0x4;
const MANY_EXTENTS: u32 = 0x20;

pub(super) struct Superblock {
    /// Whether it is version 5: with checksums.
    pub(super) is_v5: bool,
    pub(super) checks_sums: bool,
    pub(super) block_bytes: u64,
    pub(super) n_blocks: u64,
    pub(super) group_blocks: u32,
    pub(super) n_groups: u32,
    pub(super) group_bits: u32,
    pub(super) inode_bytes: usize,
    pub(super) inodes_bits: u32,
    pub(super) dir_block_bits: u32,
    pub(super) root: u64,
    /// Whether a directory says of what sort a file is.
    pub(super) has_types: bool,
    pub(super) has_many_extents: bool,
    /// What all metadata names.
    pub(super) uuid: [u8; 16],
    /// The log: its first block, 0 if it is on another device, and its blocks.
    pub(super) log: (u64, u32),
}

pub(super) fn read(bytes: &Shared, checks_sums: bool) -> Result<Superblock, ImageError> {
    let damaged = |error: io::Error| ImageError::damaged(NAME, error);
    let mut raw = vec![0; 512];
    bytes.read_exact_at(0, &mut raw).map_err(damaged)?;
    let sector_bytes = half(&raw, 102).map_err(damaged)?;
    if !SECTOR_BYTES.contains(&sector_bytes) || !sector_bytes.is_power_of_two() {
        return Err(damaged(invalid("an impossible sector size")));
    }
    raw.resize(usize::from(sector_bytes), 0);
    bytes.read_exact_at(0, &mut raw).map_err(damaged)?;
    let version = half(&raw, 100).map_err(damaged)?;
    let is_v5 = match version & 0xf {
        5 => true,
        4 if version & 0x2000 != 0 => false,
        other => {
            return Err(ImageError::Unread {
                what: format!("an XFS filesystem of version {other}"),
                remedy: super::super::unread::MOUNT,
            });
        }
    };
    if is_v5 {
        if checks_sums && !is_sum_right(&raw, 224) {
            return Err(damaged(invalid("the superblock's checksum is wrong")));
        }
        check_features(word(&raw, 216).map_err(damaged)?)?;
    }
    let superblock = parse(&raw, is_v5, checks_sums).map_err(damaged)?;
    superblock.check().map_err(damaged)?;
    Ok(superblock)
}

fn check_features(features: u32) -> Result<(), ImageError> {
    let mut named: Vec<&str> = UNREAD
        .iter()
        .filter(|(bit, _)| features & bit != 0)
        .map(|(_, name)| *name)
        .collect();
    if features & !KNOWN != 0 {
        named.push("unknown features");
    }
    if named.is_empty() {
        return Ok(());
    }
    Err(ImageError::Unread {
        what: format!("an XFS filesystem with {}", named.join(", ")),
        remedy: super::super::unread::MOUNT,
    })
}

fn parse(raw: &[u8], is_v5: bool, checks_sums: bool) -> io::Result<Superblock> {
    let features = if is_v5 { word(raw, 216)? } else { 0 };
    // Version 4 has a second word of features only if a bit of the version says so.
    let more = match half(raw, 100)? & 0x8000 {
        0 => 0,
        _ => word(raw, 200)?,
    };
    let uuid_at = match features & META_UUID {
        0 => 32,
        _ => 248,
    };
    if raw[126] != 0 {
        return Err(invalid("mkfs.xfs was stopped before it was done"));
    }
    Ok(Superblock {
        is_v5,
        checks_sums,
        block_bytes: u64::from(word(raw, 4)?),
        n_blocks: long(raw, 8)?,
        group_blocks: word(raw, 84)?,
        n_groups: word(raw, 88)?,
        group_bits: u32::from(raw[124]),
        inode_bytes: usize::from(half(raw, 104)?),
        inodes_bits: u32::from(raw[123]),
        dir_block_bits: u32::from(raw[192]),
        root: long(raw, 56)?,
        has_types: features & FILE_TYPE != 0 || !is_v5 && more & 0x200 != 0,
        has_many_extents: features & MANY_EXTENTS != 0,
        uuid: raw[uuid_at..uuid_at + 16].try_into().expect("sixteen"),
        log: (long(raw, 48)?, word(raw, 96)?),
    })
}

impl Superblock {
    /// The limits are those of the kernel: blocks of 512 bytes to 64 KiB, inodes of 256 bytes
    /// to 2 KiB, directory blocks of up to 64 KiB.
    fn check(&self) -> io::Result<()> {
        let block = self.block_bytes;
        let inode = self.inode_bytes as u64;
        let is_possible = (512..=65536).contains(&block)
            && block.is_power_of_two()
            && (256..=2048).contains(&inode)
            && inode.is_power_of_two()
            && inode <= block
            && 1 << self.inodes_bits.min(16) == block / inode
            && self.dir_block_bits <= 7
            && block << self.dir_block_bits <= 65536
            && self.group_bits <= 31
            && self.group_blocks > 0
            && u64::from(self.group_blocks) <= 1 << self.group_bits
            && self.n_groups > 0
            && self.n_blocks <= u64::from(self.n_groups) * u64::from(self.group_blocks);
        match is_possible {
            true => Ok(()),
            false => Err(invalid("impossible sizes in the superblock")),
        }
    }
}

impl Xfs {
    /// Where a block begins, in bytes.
    pub(super) fn block_at(&self, block: u64) -> io::Result<u64> {
        let superblock = &self.superblock;
        let group = block >> superblock.group_bits;
        let within = block & ((1 << superblock.group_bits) - 1);
        if group >= u64::from(superblock.n_groups) || within >= u64::from(superblock.group_blocks) {
            return Err(invalid("a block beyond the end of the filesystem"));
        }
        Ok((group * u64::from(superblock.group_blocks) + within) * superblock.block_bytes)
    }

    /// Checks that metadata is where it says and belongs to whom it says.
    ///
    /// A block that was written to another place, or left there by another filesystem, has a
    /// checksum that is right.
    pub(super) fn check_self(
        &self,
        raw: &[u8],
        (sum_at, uuid_at): (usize, usize),
        (place_at, place): (usize, u64),
        (owner_at, owner): (usize, u64),
    ) -> io::Result<()> {
        if !self.superblock.checks_sums {
            return Ok(());
        }
        if !is_sum_right(raw, sum_at) {
            return Err(invalid("a checksum is wrong"));
        }
        // Places are counted in sectors of 512 bytes.
        if raw.get(uuid_at..uuid_at + 16) != Some(&self.superblock.uuid)
            || long(raw, place_at)? != place / 512
            || long(raw, owner_at)? != owner
        {
            return Err(invalid("metadata of another file or filesystem"));
        }
        Ok(())
    }
}
