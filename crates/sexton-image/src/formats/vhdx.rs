//! VHDX, dynamic and fixed.
//!
//! As in Microsoft's [MS-VHDX]. One whose log holds changes is refused: they are not replayed.

use std::io;
use std::sync::Arc;

use crc::{CRC_32_ISCSI, Crc};

use super::blocks::{self, Block, Blocks};
use super::{Format, Opened, magic};
use crate::bytes::Shared;
use crate::error::ImageError;
use crate::gaps::Gaps;
use crate::tree::invalid;

const NAME: &str = "VHDX";

pub(super) static FORMAT: Format = Format {
    name: NAME,
    sniff: |head| magic(head, 0, b"vhdxfile"),
    open,
};

static CRC32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

const MIB: u64 = 1 << 20;
/// Two headers and two tables of regions; the newer header counts, and any table.
const HEADERS: [u64; 2] = [64 << 10, 128 << 10];
const REGIONS: [u64; 2] = [192 << 10, 256 << 10];

/// A disk of 64 TiB in blocks of 2 MiB has a table of 256 MiB; those are no images of systems.
const TABLE_BYTES_MAX: u64 = 64 << 20;

// GUIDs as they are stored.
const TABLE: [u8; 16] = *b"\x66\x77\xc2\x2d\x23\xf6\x00\x42\x9d\x64\x11\x5e\x9b\xfd\x4a\x08";
const METADATA: [u8; 16] = *b"\x06\xa2\x7c\x8b\x90\x47\x9a\x4b\xb8\xfe\x57\x5f\x05\x0f\x88\x6e";
const PARAMETERS: [u8; 16] = *b"\x37\x67\xa1\xca\x36\xfa\x43\x4d\xb3\xb6\x33\xf0\xaa\x44\xe7\x6b";
const DISK_SIZE: [u8; 16] = *b"\x24\x42\xa5\x2f\x1b\xcd\x76\x48\xb2\x11\x5d\xbe\xd8\x3b\xf4\xb8";
const SECTOR_SIZE: [u8; 16] = *b"\x1d\xbf\x41\x81\x6f\xa9\x09\x47\xba\x47\xf2\x33\xa8\xfa\xab\x5f";

const HAS_PARENT: u32 = 0x2;

fn open(bytes: &Shared, gaps: &mut Gaps, depth: usize) -> Result<Opened, ImageError> {
    blocks::open(NAME, Vhdx::open(Arc::clone(bytes), true), gaps, depth)
}

pub(super) struct Vhdx {
    file: Shared,
    len: u64,
    block_bytes: u64,
    /// So many blocks, and then an entry that is of none.
    chunk: u64,
    table: Vec<u64>,
}

impl Vhdx {
    /// A fuzzer is let in behind the checksums.
    pub(super) fn open(file: Shared, checks_sums: bool) -> io::Result<Self> {
        check_log(&file, checks_sums)?;
        let regions = regions(&file, checks_sums)?;
        let find = |guid: [u8; 16]| {
            let found = regions.chunks_exact(32).find(|entry| entry[..16] == guid);
            let missing = || invalid("a region of it is missing");
            found
                .map(|entry| (long(entry, 16), u64::from(word(entry, 24))))
                .ok_or_else(missing)
        };
        let metadata = Metadata::read(&file, find(METADATA)?.0)?;
        let parameters = metadata.item(&file, PARAMETERS)?;
        let block_bytes = u64::from(word(&parameters, 0));
        let len = long(&metadata.item(&file, DISK_SIZE)?, 0);
        let sector_bytes = u64::from(word(&metadata.item(&file, SECTOR_SIZE)?, 0));
        if word(&parameters, 4) & HAS_PARENT != 0 {
            return Err(invalid(
                "it is a layer over another disk; join them with qemu-img convert and give the \
                 result",
            ));
        }
        let (at, table_bytes) = find(TABLE)?;
        let is_possible = (MIB..=256 * MIB).contains(&block_bytes)
            && block_bytes.is_power_of_two()
            && [512, 4096].contains(&sector_bytes)
            && len <= 64 << 40
            && table_bytes <= TABLE_BYTES_MAX
            && at.saturating_add(table_bytes) <= file.len();
        if !is_possible {
            return Err(invalid("impossible sizes in the header"));
        }
        let mut raw = vec![0; usize::try_from(table_bytes).map_err(io::Error::other)?];
        file.read_exact_at(at, &mut raw)?;
        Ok(Self {
            file,
            len,
            block_bytes,
            chunk: (sector_bytes << 23) / block_bytes,
            table: raw.chunks_exact(8).map(|raw| long(raw, 0)).collect(),
        })
    }
}

/// Whether the checksum behind the first four bytes is right.
fn is_sum_right(raw: &[u8]) -> bool {
    let mut digest = CRC32C.digest();
    digest.update(&raw[..4]);
    digest.update(&[0; 4]);
    digest.update(&raw[8..]);
    digest.finalize() == word(raw, 4)
}

/// The newer header says by a GUID whether the log holds anything.
fn check_log(file: &Shared, checks_sums: bool) -> io::Result<()> {
    let mut newest: Option<(u64, bool)> = None;
    for at in HEADERS {
        let mut raw = [0; 4096];
        file.read_exact_at(at, &mut raw)?;
        if &raw[..4] == b"head" && (!checks_sums || is_sum_right(&raw)) {
            let number = long(&raw, 8);
            if newest.is_none_or(|(known, _)| known < number) {
                newest = Some((number, raw[48..64] == [0; 16]));
            }
        }
    }
    match newest {
        Some((_, true)) => Ok(()),
        Some((_, false)) => Err(invalid(
            "it was not closed: changes are in its log; convert it with qemu-img convert -O qcow2 \
             and give that",
        )),
        None => Err(invalid("both of its headers are damaged")),
    }
}

/// The entries of the table of regions.
fn regions(file: &Shared, checks_sums: bool) -> io::Result<Vec<u8>> {
    for at in REGIONS {
        let mut raw = vec![0; 64 << 10];
        file.read_exact_at(at, &mut raw)?;
        let n = word(&raw, 8) as usize;
        if &raw[..4] == b"regi" && n <= 2047 && (!checks_sums || is_sum_right(&raw)) {
            return Ok(raw[16..16 + n * 32].to_vec());
        }
    }
    Err(invalid("both tables of its regions are damaged"))
}

struct Metadata {
    at: u64,
    entries: Vec<u8>,
}

impl Metadata {
    fn read(file: &Shared, at: u64) -> io::Result<Self> {
        let mut raw = vec![0; 64 << 10];
        file.read_exact_at(at, &mut raw)?;
        let n = usize::from(u16::from_le_bytes([raw[10], raw[11]]));
        if &raw[..8] != b"metadata" || n > 2047 {
            return Err(invalid("its metadata is damaged"));
        }
        let entries = raw[32..32 + n * 32].to_vec();
        Ok(Self { at, entries })
    }

    /// The first eight bytes of an item.
    fn item(&self, file: &Shared, guid: [u8; 16]) -> io::Result<[u8; 8]> {
        let mut entries = self.entries.chunks_exact(32);
        let found = entries.find(|entry| entry[..16] == guid);
        let entry = found.ok_or_else(|| invalid("its metadata lacks a size"))?;
        let mut raw = [0; 8];
        let n = (word(entry, 20) as usize).min(8);
        let at = self.at.saturating_add(u64::from(word(entry, 16)));
        file.read_exact_at(at, &mut raw[..n])?;
        Ok(raw)
    }
}

impl Blocks for Vhdx {
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
        let number = offset / self.block_bytes;
        let entry = usize::try_from(number + number / self.chunk).ok();
        let entry = entry.and_then(|n| self.table.get(n)).copied().unwrap_or(0);
        match entry & 7 {
            6 => Ok(Block::At(entry >> 20 << 20)),
            7 => Err(invalid("a block that is partly in another disk")),
            _ => Ok(Block::Nowhere),
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"))
}
