//! Chunks: which bytes of the device those of the filesystem are.
//!
//! Only chunks on this one device are read: one copy (`single`) or two (`DUP`).

use std::io;

use super::layout::{KEY_BYTES, Key, half, long, part};
use crate::tree::invalid;

pub(super) const CHUNK_ITEM: u8 = 228;

/// The tree of chunks has its items under one number.
pub(super) const CHUNKS: u64 = 256;

/// More chunks are damage or a trap: at 1 GiB each these are 64 TiB.
const N_CHUNKS_MAX: usize = 65_536;

const HEAD_BYTES: usize = 48;
const STRIPE_BYTES: usize = 32;
const DUP: u64 = 0x20;
/// Bits that say how copies and stripes are spread.
const PROFILES: u64 = 0x7f8;

struct Chunk {
    from: u64,
    len: u64,
    /// Where on the device, one place for each copy.
    copies: Vec<u64>,
}

#[derive(Default)]
pub(super) struct Chunks(Vec<Chunk>);

impl Chunks {
    /// Those of the superblock's list: keys and items, one after the other.
    pub(super) fn of_list(list: &[u8], device: u64) -> io::Result<Self> {
        let mut chunks = Self::default();
        let mut rest = list;
        while !rest.is_empty() {
            let key = Key::parse(rest, 0)?;
            if key.sort != CHUNK_ITEM {
                return Err(invalid("something else in the list of chunks"));
            }
            let item = &rest[KEY_BYTES..];
            let bytes = HEAD_BYTES + usize::from(half(item, 44)?) * STRIPE_BYTES;
            chunks.add(key.offset, part(item, 0, bytes)?, device)?;
            rest = &item[bytes..];
        }
        Ok(chunks)
    }

    /// Adds one; those of the superblock come again in the tree.
    pub(super) fn add(&mut self, from: u64, item: &[u8], device: u64) -> io::Result<()> {
        let len = long(item, 0)?;
        let profile = long(item, 24)? & PROFILES;
        let n_copies = usize::from(half(item, 44)?);
        let n_expected = match profile {
            0 => 1,
            DUP => 2,
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "a RAID profile, of which only single and DUP are read",
                ));
            }
        };
        if len == 0 || from.checked_add(len).is_none() || n_copies != n_expected {
            return Err(invalid("an impossible chunk"));
        }
        let mut copies = Vec::new();
        for n in 0..n_copies {
            let stripe = part(item, HEAD_BYTES + n * STRIPE_BYTES, STRIPE_BYTES)?;
            if long(stripe, 0)? != device {
                return Err(invalid("a chunk on another device"));
            }
            copies.push(long(stripe, 8)?);
        }
        let place = self.0.partition_point(|chunk| chunk.from < from);
        let is_apart = |before: &Chunk| before.from + before.len <= from;
        match self.0.get(place) {
            Some(known) if known.from == from && known.len == len => return Ok(()),
            Some(next) if next.from < from + len => return Err(invalid("chunks that overlap")),
            _ if place > 0 && !is_apart(&self.0[place - 1]) => {
                return Err(invalid("chunks that overlap"));
            }
            _ if self.0.len() >= N_CHUNKS_MAX => return Err(io::ErrorKind::FileTooLarge.into()),
            _ => {}
        }
        self.0.insert(place, Chunk { from, len, copies });
        Ok(())
    }

    /// Where a byte is on the device, in each copy, and how many follow it there.
    pub(super) fn find(&self, place: u64) -> io::Result<(Vec<u64>, u64)> {
        let after = self.0.partition_point(|chunk| chunk.from <= place);
        let chunk = self.0[..after].last();
        match chunk.filter(|chunk| place - chunk.from < chunk.len) {
            Some(chunk) => {
                let within = place - chunk.from;
                let copies = chunk.copies.iter().map(|copy| copy.saturating_add(within));
                Ok((copies.collect(), chunk.len - within))
            }
            None => Err(invalid("a place that is in no chunk")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(len: u64, profile: u64, copies: &[u64]) -> Vec<u8> {
        let mut item = vec![0; HEAD_BYTES];
        item[..8].copy_from_slice(&len.to_le_bytes());
        item[24..32].copy_from_slice(&profile.to_le_bytes());
        item[44] = copies.len() as u8;
        for copy in copies {
            item.extend_from_slice(&1_u64.to_le_bytes());
            item.extend_from_slice(&copy.to_le_bytes());
            item.extend_from_slice(&[0; 16]);
        }
        item
    }

    #[test]
    fn places_in_chunks() {
        let mut chunks = Chunks::default();
        chunks.add(1000, &item(100, 4, &[5000]), 1).expect("fits");
        chunks
            .add(500, &item(500, 0x22, &[0, 700]), 1)
            .expect("fits");
        let check = |place: u64, expected: Option<(Vec<u64>, u64)>| {
            assert_eq!(chunks.find(place).ok(), expected, "{place}");
        };
        check(499, None);
        check(500, Some((vec![0, 700], 500)));
        check(999, Some((vec![499, 1199], 1)));
        check(1000, Some((vec![5000], 100)));
        check(1100, None);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut chunks = Chunks::default();
        chunks.add(1000, &item(100, 1, &[5000]), 1).expect("fits");
        let mut check = |from, item: Vec<u8>, expected: &str| {
            let error = chunks.add(from, &item, 1).expect_err("refused");
            assert!(error.to_string().contains(expected), "{error}");
        };
        check(950, item(100, 1, &[0]), "overlap");
        check(1050, item(100, 1, &[0]), "overlap");
        check(2000, item(100, 0x11, &[0, 1]), "a RAID profile");
        check(2000, item(100, 0x21, &[0]), "impossible");
        check(2000, item(0, 1, &[0]), "impossible");
        check(u64::MAX, item(2, 1, &[0]), "impossible");
        check(2000, vec![0; 20], "cut off");
    }
}
