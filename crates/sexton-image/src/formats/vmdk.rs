//! VMDK in one file: sparse (what VMware and `qemu-img` write) and stream-optimized (what an OVA
//! holds).
//!
//! As in VMware's "Virtual Disk Format 5.0". Another file that an image names is never opened.

use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use super::blocks::{self, Block, Blocks, Last, last};
use super::{Format, Opened, magic};
use crate::bytes::Shared;
use crate::error::ImageError;
use crate::gaps::Gaps;
use crate::tree::invalid;

const NAME: &str = "VMDK";

pub(super) static FORMAT: Format = Format {
    name: NAME,
    sniff: |head| magic(head, 0, b"KDMV"),
    open,
};

const SECTOR_BYTES: u64 = 512;

/// Grains of 4 KiB to 1 MiB; VMware and QEMU use 64 KiB.
const GRAIN_SECTORS: std::ops::RangeInclusive<u64> = 8..=2048;
/// Entries of a table of grains: always 512.
const N_ENTRIES: u64 = 512;
const DIRECTORY_BYTES_MAX: u64 = 32 << 20;
const DESCRIPTOR_BYTES_MAX: u64 = 1 << 20;

/// Where the directory is, in an image that was written as a stream: only its footer knows.
const AT_END: u64 = u64::MAX;

const HAS_ZERO_GRAINS: u32 = 0x4;
const IS_PACKED: u32 = 0x1_0000;

fn open(bytes: &Shared, gaps: &mut Gaps, depth: usize) -> Result<Opened, ImageError> {
    blocks::open(NAME, Vmdk::open(Arc::clone(bytes)), gaps, depth)
}

pub(super) struct Vmdk {
    file: Shared,
    len: u64,
    grain_bytes: u64,
    flags: u32,
    /// Sectors of the tables of grains.
    directory: Vec<u32>,
    tables: Last<Vec<u32>>,
    unpacked: Last<Vec<u8>>,
}

impl Vmdk {
    pub(super) fn open(file: Shared) -> io::Result<Self> {
        let mut header = [0; 512];
        file.read_exact_at(0, &mut header)?;
        check_descriptor(&file, long(&header, 28), long(&header, 36))?;
        if long(&header, 56) == AT_END {
            // A footer, and a marker of the end behind it.
            let at = file.len().checked_sub(1024);
            let at = at.ok_or(io::ErrorKind::UnexpectedEof)?;
            file.read_exact_at(at, &mut header)?;
            if &header[..4] != b"KDMV" {
                return Err(invalid("it is cut off: its footer is missing"));
            }
        }
        let (flags, n_sectors, grain) = (word(&header, 8), long(&header, 12), long(&header, 20));
        let is_possible = (1..=3).contains(&word(&header, 4))
            && GRAIN_SECTORS.contains(&grain)
            && grain.is_power_of_two()
            && u64::from(word(&header, 44)) == N_ENTRIES
            && n_sectors <= u64::MAX / SECTOR_BYTES;
        if !is_possible {
            return Err(invalid("impossible sizes in the header"));
        }
        let n_tables = n_sectors.div_ceil(grain * N_ENTRIES);
        let place = long(&header, 56).saturating_mul(SECTOR_BYTES);
        Ok(Self {
            directory: table(&file, place, n_tables)?,
            file,
            len: n_sectors * SECTOR_BYTES,
            grain_bytes: grain * SECTOR_BYTES,
            flags,
            tables: Mutex::new(None),
            unpacked: Mutex::new(None),
        })
    }
}

/// An image may be a layer over another, or name files that hold its content.
fn check_descriptor(file: &Shared, at: u64, n: u64) -> io::Result<()> {
    let bytes = n.saturating_mul(SECTOR_BYTES).min(DESCRIPTOR_BYTES_MAX);
    let mut raw = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
    let n = file.read_at(at.saturating_mul(SECTOR_BYTES), &mut raw)?;
    let text = String::from_utf8_lossy(&raw[..n]).to_lowercase();
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let found = lines.find(|(name, _)| name.trim() == key);
        found.map(|(_, value)| value.trim().trim_matches('"').to_owned())
    };
    let is_layer = value("parentcid").is_some_and(|id| id != "ffffffff");
    if is_layer || value("parentfilenamehint").is_some() {
        return Err(invalid(
            "it is a layer over another disk; join them with qemu-img convert and give the result",
        ));
    }
    match value("createtype").as_deref() {
        None | Some("monolithicsparse" | "streamoptimized") => Ok(()),
        Some(_) => Err(invalid(
            "its content is in other files; join them with qemu-img convert and give the result",
        )),
    }
}

impl Blocks for Vmdk {
    fn file(&self) -> &Shared {
        &self.file
    }

    fn disk_bytes(&self) -> u64 {
        self.len
    }

    fn block_bytes(&self) -> u64 {
        self.grain_bytes
    }

    fn find(&self, offset: u64) -> io::Result<Block> {
        let grain = offset / self.grain_bytes;
        let entry = usize::try_from(grain / N_ENTRIES).ok();
        let entry = entry.and_then(|n| self.directory.get(n)).copied();
        let Some(table_at @ 1..) = entry.map(u64::from) else {
            return Ok(Block::Nowhere);
        };
        let entries = last(&self.tables, table_at, || {
            table(&self.file, table_at * SECTOR_BYTES, N_ENTRIES)
        })?;
        let at = match entries[(grain % N_ENTRIES) as usize] {
            0 => return Ok(Block::Nowhere),
            1 if self.flags & HAS_ZERO_GRAINS != 0 => return Ok(Block::Nowhere),
            sector => u64::from(sector) * SECTOR_BYTES,
        };
        if self.flags & IS_PACKED == 0 {
            return Ok(Block::At(at));
        }
        // The number of the sector that it is, the length, and what is packed.
        let mut head = [0; 12];
        self.file.read_exact_at(at, &mut head)?;
        Ok(Block::Packed {
            at: at + 12,
            len: u64::from(word(&head, 8)),
        })
    }

    fn unpack(&self, at: u64, len: u64) -> io::Result<Arc<Vec<u8>>> {
        // What does not shrink grows by a few bytes.
        if len > self.grain_bytes * 2 {
            return Err(invalid("a packed grain of an impossible size"));
        }
        last(&self.unpacked, at, || {
            let mut packed = vec![0; usize::try_from(len).map_err(io::Error::other)?];
            self.file.read_exact_at(at, &mut packed)?;
            let mut grain = Vec::new();
            flate2::bufread::ZlibDecoder::new(&*packed)
                .take(self.grain_bytes)
                .read_to_end(&mut grain)?;
            // The last of a disk may be short.
            grain.resize(
                usize::try_from(self.grain_bytes).map_err(io::Error::other)?,
                0,
            );
            Ok(grain)
        })
    }
}

/// A table of numbers of sectors.
fn table(file: &Shared, at: u64, n: u64) -> io::Result<Vec<u32>> {
    let bytes = n.saturating_mul(4);
    if bytes > DIRECTORY_BYTES_MAX || at.saturating_add(bytes) > file.len() {
        return Err(invalid("a table beyond the end of the file"));
    }
    let mut raw = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
    file.read_exact_at(at, &mut raw)?;
    Ok(raw.chunks_exact(4).map(|raw| word(raw, 0)).collect())
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"))
}
