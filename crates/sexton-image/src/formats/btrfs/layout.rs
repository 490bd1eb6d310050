//! Numbers, keys and checksums as Btrfs stores them.

use std::io;

use crc::{CRC_32_ISCSI, Crc, Table};
use sha2::{Digest as _, Sha256};

use crate::tree::invalid;

static CRC32C: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// As long as the place of a checksum is, whatever its sort.
pub(super) const SUM_BYTES: usize = 32;

/// As long as a key is.
pub(super) const KEY_BYTES: usize = 17;

/// The bytes at a place, or an error that the structure is cut off.
pub(super) fn part(bytes: &[u8], at: usize, len: usize) -> io::Result<&[u8]> {
    bytes
        .get(at..at.saturating_add(len))
        .ok_or_else(|| invalid("a structure that is cut off"))
}

pub(super) fn half(bytes: &[u8], at: usize) -> io::Result<u16> {
    Ok(u16::from_le_bytes(
        part(bytes, at, 2)?.try_into().expect("two"),
    ))
}

pub(super) fn word(bytes: &[u8], at: usize) -> io::Result<u32> {
    Ok(u32::from_le_bytes(
        part(bytes, at, 4)?.try_into().expect("four"),
    ))
}

pub(super) fn long(bytes: &[u8], at: usize) -> io::Result<u64> {
    Ok(u64::from_le_bytes(
        part(bytes, at, 8)?.try_into().expect("eight"),
    ))
}

/// A size or place that must fit into memory.
pub(super) fn size(bytes: &[u8], at: usize) -> io::Result<usize> {
    usize::try_from(word(bytes, at)?).map_err(io::Error::other)
}

/// What an item of a tree is known by; trees are sorted by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) object: u64,
    pub(super) sort: u8,
    pub(super) offset: u64,
}

impl Key {
    pub(super) fn new(object: u64, sort: u8, offset: u64) -> Self {
        Self {
            object,
            sort,
            offset,
        }
    }

    pub(super) fn parse(bytes: &[u8], at: usize) -> io::Result<Self> {
        let raw = part(bytes, at, KEY_BYTES)?;
        Ok(Self::new(long(raw, 0)?, raw[8], long(raw, 9)?))
    }
}

/// The sorts of checksums that are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sum {
    Crc32c,
    Sha256,
}

impl Sum {
    /// Whether the checksum in front of a block is that of the rest.
    pub(super) fn is_right(self, block: &[u8]) -> bool {
        let Some((stored, rest)) = block.split_at_checked(SUM_BYTES) else {
            return false;
        };
        match self {
            Self::Crc32c => CRC32C.checksum(rest).to_le_bytes() == stored[..4],
            Self::Sha256 => Sha256::digest(rest)[..] == *stored,
        }
    }
}
