//! VHD, dynamic. A fixed one is a raw disk with a footer, and is read as such.
//!
//! As in Microsoft's "Virtual Hard Disk Image Format Specification" of 2006.

use std::io;
use std::sync::Arc;

use super::blocks::{self, Block, Blocks};
use super::{Format, Opened, magic};
use crate::bytes::Shared;
use crate::error::ImageError;
use crate::gaps::Gaps;
use crate::tree::invalid;

const NAME: &str = "VHD";

pub(super) static FORMAT: Format = Format {
    name: NAME,
    sniff: |head| magic(head, 0, b"conectix"),
    open,
};

const SECTOR_BYTES: u64 = 512;

/// The format ends at 2 TiB; with blocks of 2 MiB that is a table of 4 MiB.
const TABLE_BYTES_MAX: u64 = 32 << 20;
const BLOCK_BYTES: std::ops::RangeInclusive<u64> = 512 << 10..=256 << 20;
const DISK_BYTES_MAX: u64 = 4 << 40;

const IS_DYNAMIC: u32 = 3;
const IS_LAYER: u32 = 4;
const IS_NOWHERE: u32 = u32::MAX;

fn open(bytes: &Shared, gaps: &mut Gaps, depth: usize) -> Result<Opened, ImageError> {
    blocks::open(NAME, Vhd::open(Arc::clone(bytes), true), gaps, depth)
}

pub(super) struct Vhd {
    file: Shared,
    len: u64,
    block_bytes: u64,
    /// Before each block: a bit for each of its sectors.
    bitmap_bytes: u64,
    /// Sectors of the blocks.
    table: Vec<u32>,
}

impl Vhd {
    /// A fuzzer is let in behind the checksums.
    pub(super) fn open(file: Shared, checks_sums: bool) -> io::Result<Self> {
        let mut footer = [0; 512];
        file.read_exact_at(0, &mut footer)?;
        if checks_sums {
            check_sum(&footer, 64)?;
        }
        match word(&footer, 60) {
            IS_DYNAMIC => {}
            IS_LAYER => {
                return Err(invalid(
                    "it is a layer over another disk; join them with qemu-img convert and give \
                     the result",
                ));
            }
            _ => return Err(invalid("a sort of disk that is not known")),
        }
        let mut header = [0; 1024];
        file.read_exact_at(long(&footer, 16), &mut header)?;
        if &header[..8] != b"cxsparse" {
            return Err(invalid("its header is missing"));
        }
        if checks_sums {
            check_sum(&header, 36)?;
        }
        let (len, block_bytes) = (long(&footer, 48), u64::from(word(&header, 32)));
        let table_bytes = u64::from(word(&header, 28)) * 4;
        if !BLOCK_BYTES.contains(&block_bytes)
            || !block_bytes.is_power_of_two()
            || table_bytes > TABLE_BYTES_MAX
            || len > DISK_BYTES_MAX
        {
            return Err(invalid("impossible sizes in the header"));
        }
        let mut raw = vec![0; usize::try_from(table_bytes).map_err(io::Error::other)?];
        file.read_exact_at(long(&header, 16), &mut raw)?;
        let n_sectors = block_bytes / SECTOR_BYTES;
        Ok(Self {
            file,
            len,
            block_bytes,
            bitmap_bytes: n_sectors.div_ceil(8).next_multiple_of(SECTOR_BYTES),
            table: raw.chunks_exact(4).map(|raw| word(raw, 0)).collect(),
        })
    }
}

/// The sum of all bytes but its own, with all bits turned.
fn check_sum(raw: &[u8], at: usize) -> io::Result<()> {
    let others = raw[..at].iter().chain(&raw[at + 4..]);
    let sum: u32 = others.map(|&byte| u32::from(byte)).sum();
    match !sum == word(raw, at) {
        true => Ok(()),
        false => Err(invalid("the checksum of a header is wrong")),
    }
}

impl Blocks for Vhd {
    fn file(&self) -> &Shared {
        &self.file
    }

    fn disk_bytes(&self) -> u64 {
        self.len
    }

    fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    fn find(&self, offset: u64) -> io::Result<Block> {
        let number = usize::try_from(offset / self.block_bytes).ok();
        // Sectors that were never written are zeros in the file too.
        Ok(match number.and_then(|n| self.table.get(n)) {
            None | Some(&IS_NOWHERE) => Block::Nowhere,
            Some(&sector) => Block::At(u64::from(sector) * SECTOR_BYTES + self.bitmap_bytes),
        })
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight"))
}
