//! Inodes of squashfs, as bytes give them.

use crate::tree::invalid;
use std::io;

/// What a file is. Where lists follow, their length comes from the inode and is checked
/// against the bytes that are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sort {
    Dir { block: u32, offset: u16, len: u32 },
    File(FileInode),
    Link { target_bytes: u32 },
    Other,
}

/// A regular file, without its list of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileInode {
    pub(super) start: u64,
    pub(super) size_bytes: u64,
    /// `u32::MAX` when there is none.
    pub(super) fragment: u32,
    pub(super) fragment_offset: u32,
}

/// An inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inode {
    pub(super) sort: Sort,
    pub(super) permissions: u32,
    /// How many bytes it takes before the list or name that follows.
    pub(super) bytes: usize,
}

/// The longest inode without what follows it.
pub(super) const INODE_BYTES_MAX: usize = 56;

/// Reads one from its first bytes, up to [`INODE_BYTES_MAX`] of them.
pub(super) fn parse(raw: &[u8]) -> io::Result<Inode> {
    let need = |n: usize| {
        if raw.len() < n {
            Err(io::Error::from(io::ErrorKind::UnexpectedEof))
        } else {
            Ok(n)
        }
    };
    need(16)?;
    let half = |at: usize| u16::from_le_bytes([raw[at], raw[at + 1]]);
    let word = |at: usize| u32::from_le_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]]);
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let (sort, bytes) = match half(0) {
        1 => {
            let bytes = need(32)?;
            let (block, len, offset) = (word(16), u32::from(half(24)), half(26));
            (Sort::Dir { block, offset, len }, bytes)
        }
        8 => {
            let bytes = need(40)?;
            let (len, block, offset) = (word(20), word(24), half(34));
            (Sort::Dir { block, offset, len }, bytes)
        }
        2 => {
            let bytes = need(32)?;
            let file = FileInode {
                start: u64::from(word(16)),
                fragment: word(20),
                fragment_offset: word(24),
                size_bytes: u64::from(word(28)),
            };
            (Sort::File(file), bytes)
        }
        9 => {
            let bytes = need(56)?;
            let file = FileInode {
                start: long(16),
                size_bytes: long(24),
                fragment: word(44),
                fragment_offset: word(48),
            };
            (Sort::File(file), bytes)
        }
        3 | 10 => {
            let bytes = need(24)?;
            (
                Sort::Link {
                    target_bytes: word(20),
                },
                bytes,
            )
        }
        4..=7 | 11..=14 => (Sort::Other, 16),
        _ => return Err(invalid("an inode of no known sort")),
    };
    Ok(Inode {
        sort,
        permissions: u32::from(half(2)) & 0o7777,
        bytes,
    })
}
