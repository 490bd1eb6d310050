//! Numbers and checksums as XFS stores them.

use std::io;

use crc::{CRC_32_ISCSI, Crc, Table};

use crate::tree::invalid;

static CRC32C: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// The bytes at a place, or an error that the structure is cut off.
pub(super) fn part(bytes: &[u8], at: usize, len: usize) -> io::Result<&[u8]> {
    bytes
        .get(at..at.saturating_add(len))
        .ok_or_else(|| invalid("a structure that is cut off"))
}

pub(super) fn half(bytes: &[u8], at: usize) -> io::Result<u16> {
    Ok(u16::from_be_bytes(
        part(bytes, at, 2)?.try_into().expect("two"),
    ))
}

pub(super) fn word(bytes: &[u8], at: usize) -> io::Result<u32> {
    Ok(u32::from_be_bytes(
        part(bytes, at, 4)?.try_into().expect("four"),
    ))
}

pub(super) fn long(bytes: &[u8], at: usize) -> io::Result<u64> {
    Ok(u64::from_be_bytes(
        part(bytes, at, 8)?.try_into().expect("eight"),
    ))
}

/// Whether the checksum at `at`, of all the bytes with itself as zeros, is right.
pub(super) fn is_sum_right(bytes: &[u8], at: usize) -> bool {
    let Some(stored) = bytes.get(at..at + 4) else {
        return false;
    };
    let mut digest = CRC32C.digest();
    digest.update(&bytes[..at]);
    digest.update(&[0; 4]);
    digest.update(&bytes[at + 4..]);
    // Unlike all else, it is stored with the least byte first.
    digest.finalize().to_le_bytes() == stored
}
