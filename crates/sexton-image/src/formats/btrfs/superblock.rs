//! The superblock: sizes, the first trees, and features.

use std::io;

use super::NAME;
use super::layout::{Sum, half, long, part, word};
use crate::bytes::Shared;
use crate::error::ImageError;
use crate::tree::invalid;

/// Where it is; there are copies further behind, which the kernel does not read either.
const PLACE: u64 = 64 << 10;
const BYTES: usize = 4096;

/// Where the first chunks are listed, and how many bytes that list may have.
const CHUNKS_AT: usize = 0x32b;
const CHUNK_BYTES_MAX: usize = 2048;

/// Features that change how a file is read, by bit and name.
const UNREAD: &[(u64, &str)] = &[
    (0x80, "RAID 5 or 6"),
    (0x800, "RAID 1 with three or four copies"),
    (0x1000, "zones"),
    (0x2000, "an extent tree of version 2"),
    (0x4000, "a tree of RAID stripes"),
];

/// Those that do not, or that are read: mixed references, a default subvolume, mixed groups, LZO,
/// zstd, large nodes, long references, lean metadata, no holes, a UUID of metadata, quotas.
const KNOWN: u64 = 0x1_077f;
const METADATA_UUID: u64 = 0x400;

/// A block of a tree: where it is, its level, and when it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pointer {
    pub(super) place: u64,
    pub(super) level: u8,
    pub(super) generation: u64,
}

pub(super) struct Superblock {
    pub(super) sum: Sum,
    pub(super) checks_sums: bool,
    pub(super) sector_bytes: usize,
    pub(super) node_bytes: usize,
    pub(super) device: u64,
    pub(super) root: Pointer,
    pub(super) chunk_root: Pointer,
    /// Whether changes wait in the log.
    pub(super) has_log: bool,
    /// What all metadata names.
    pub(super) uuid: [u8; 16],
    /// The chunks that hold the tree of chunks.
    pub(super) first_chunks: Vec<u8>,
}

pub(super) fn read(bytes: &Shared, checks_sums: bool) -> Result<Superblock, ImageError> {
    let damaged = |error: io::Error| ImageError::damaged(NAME, error);
    let mut raw = vec![0; BYTES];
    bytes.read_exact_at(PLACE, &mut raw).map_err(damaged)?;
    let sum = match half(&raw, 0xc4).map_err(damaged)? {
        0 => Sum::Crc32c,
        2 => Sum::Sha256,
        1 => return Err(unread("checksums of xxhash64")),
        3 => return Err(unread("checksums of BLAKE2b")),
        _ => return Err(unread("unknown checksums")),
    };
    if checks_sums && !sum.is_right(&raw) {
        return Err(damaged(invalid("the superblock's checksum is wrong")));
    }
    check_features(&raw).map_err(damaged)??;
    let superblock = parse(&raw, sum, checks_sums).map_err(damaged)?;
    superblock.check().map_err(damaged)?;
    Ok(superblock)
}

fn unread(what: &str) -> ImageError {
    ImageError::Unread {
        what: format!("a Btrfs filesystem with {what}"),
        remedy: super::super::unread::MOUNT,
    }
}

fn check_features(raw: &[u8]) -> io::Result<Result<(), ImageError>> {
    let features = long(raw, 0xbc)?;
    let mut named: Vec<String> = UNREAD
        .iter()
        .filter(|(bit, _)| features & bit != 0)
        .map(|(_, name)| (*name).to_owned())
        .collect();
    let unread_bits: u64 = UNREAD.iter().map(|(bit, _)| bit).sum();
    if features & !(KNOWN | unread_bits) != 0 {
        named.push("unknown features".into());
    }
    match long(raw, 0x88)? {
        1 => {}
        n => named.push(format!("{n} devices, of which this is one")),
    }
    Ok(match named.is_empty() {
        true => Ok(()),
        false => Err(unread(&named.join(", "))),
    })
}

fn parse(raw: &[u8], sum: Sum, checks_sums: bool) -> io::Result<Superblock> {
    if long(raw, 0x30)? != PLACE {
        return Err(invalid("a superblock of another place"));
    }
    let size = |at| usize::try_from(word(raw, at)?).map_err(io::Error::other);
    let chunk_bytes = size(0xa0)?;
    if chunk_bytes > CHUNK_BYTES_MAX {
        return Err(invalid("an impossible list of chunks in the superblock"));
    }
    let uuid_at = match long(raw, 0xbc)? & METADATA_UUID {
        0 => 0x20,
        _ => 0x23b,
    };
    let uuid = |at| Ok::<_, io::Error>(part(raw, at, 16)?.try_into().expect("sixteen"));
    Ok(Superblock {
        sum,
        checks_sums,
        sector_bytes: size(0x90)?,
        node_bytes: size(0x94)?,
        device: long(raw, 0xc9)?,
        root: Pointer {
            place: long(raw, 0x50)?,
            level: raw[0xc6],
            generation: long(raw, 0x48)?,
        },
        chunk_root: Pointer {
            place: long(raw, 0x58)?,
            level: raw[0xc7],
            generation: long(raw, 0xa4)?,
        },
        has_log: long(raw, 0x60)? != 0,
        uuid: uuid(uuid_at)?,
        first_chunks: part(raw, CHUNKS_AT, chunk_bytes)?.to_vec(),
    })
}

impl Superblock {
    fn check(&self) -> io::Result<()> {
        let is_possible =
            |bytes: usize, from| (from..=64 << 10).contains(&bytes) && bytes.is_power_of_two();
        match is_possible(self.sector_bytes, 4096) && is_possible(self.node_bytes, 4096) {
            true => Ok(()),
            false => Err(invalid("impossible sizes in the superblock")),
        }
    }
}
