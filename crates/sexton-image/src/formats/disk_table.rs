//! Partition tables: MBR with its logical partitions, and GPT.

use std::io;

use crate::bytes::Shared;
use crate::tree::invalid;

/// GPT disks have 128 entries; the header may say more.
const N_ENTRIES_MAX: u32 = 1_024;

/// Linux stops at 60 logical partitions.
const N_LOGICAL_MAX: usize = 128;

/// A partition: bytes of the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Partition {
    pub(super) number: u32,
    pub(super) from: u64,
    pub(super) len: u64,
}

/// The first sector of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MasterRecord {
    entries: [(u8, u32, u32); 4],
}

impl MasterRecord {
    /// `None` if this is no such sector.
    pub fn parse(sector: &[u8]) -> Option<Self> {
        if sector.get(510..512)? != b"\x55\xaa" {
            return None;
        }
        let entry = |n: usize| {
            let at = 446 + 16 * n;
            let word =
                |at: usize| u32::from_le_bytes(sector[at..at + 4].try_into().expect("four bytes"));
            (sector[at + 4], word(at + 8), word(at + 12))
        };
        let entries = [entry(0), entry(1), entry(2), entry(3)];
        // A boot sector of a filesystem ends with the same two bytes; the first byte of
        // each entry of a real table is 0x80 or 0.
        let flags = [446, 462, 478, 494]
            .iter()
            .all(|&at| sector[at] & 0x7f == 0);
        let any = entries.iter().any(|&(kind, _, n)| kind != 0 && n != 0);
        (flags && any).then_some(Self { entries })
    }

    fn is_protective(&self) -> bool {
        self.entries.iter().any(|&(kind, ..)| kind == 0xee)
    }
}

/// The partitions, and the name of the table.
pub(super) fn read(disk: &Shared) -> io::Result<(&'static str, Vec<Partition>)> {
    let mut sector = [0; 512];
    disk.read_exact_at(0, &mut sector)?;
    let record = MasterRecord::parse(&sector);
    if record.is_none_or(|record| record.is_protective()) {
        for sector_bytes in [512, 4096] {
            if let Some(partitions) = gpt(disk, sector_bytes)? {
                return Ok(("GPT", partitions));
            }
        }
    }
    match record {
        Some(record) => Ok(("MBR", mbr(disk, &record)?)),
        None => Err(invalid("no partition table")),
    }
}

fn mbr(disk: &Shared, record: &MasterRecord) -> io::Result<Vec<Partition>> {
    let mut partitions = Vec::new();
    let bytes = |sectors: u32| u64::from(sectors) * 512;
    for (number, &(kind, from, n)) in (1..).zip(&record.entries) {
        match kind {
            0 => {}
            0x05 | 0x0f | 0x85 => logical(disk, from, &mut partitions)?,
            _ => partitions.push(Partition {
                number,
                from: bytes(from),
                len: bytes(n),
            }),
        }
    }
    Ok(partitions)
}

/// A chain of tables, each with one partition and the place of the next table. Places are
/// relative: the partition's to its table, the next table's to the first.
fn logical(disk: &Shared, first: u32, partitions: &mut Vec<Partition>) -> io::Result<()> {
    let mut here = u64::from(first);
    for number in (5..).take(N_LOGICAL_MAX) {
        let mut sector = [0; 512];
        if disk.read_exact_at(here * 512, &mut sector).is_err() {
            return Ok(());
        }
        let Some(record) = MasterRecord::parse(&sector) else {
            return Ok(());
        };
        let (kind, from, n) = record.entries[0];
        if kind != 0 {
            partitions.push(Partition {
                number,
                from: (here + u64::from(from)) * 512,
                len: u64::from(n) * 512,
            });
        }
        let (kind, next, _) = record.entries[1];
        if kind == 0 || next == 0 {
            return Ok(());
        }
        here = u64::from(first) + u64::from(next);
    }
    Ok(())
}

fn gpt(disk: &Shared, sector_bytes: u64) -> io::Result<Option<Vec<Partition>>> {
    let mut header = [0; 92];
    if disk.read_at(sector_bytes, &mut header)? < header.len() || &header[..8] != b"EFI PART" {
        return Ok(None);
    }
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let (n_entries, entry_bytes) = (word(80), word(84));
    if n_entries > N_ENTRIES_MAX || !(128..=4096).contains(&entry_bytes) {
        return Err(invalid("a GPT with impossible sizes"));
    }
    let table = long(&header, 72).saturating_mul(sector_bytes);
    let mut partitions = Vec::new();
    for number in 1..=n_entries {
        let mut entry = [0; 128];
        let at = u64::from(number - 1) * u64::from(entry_bytes);
        if disk.read_at(table.saturating_add(at), &mut entry)? < entry.len() {
            break;
        }
        let (first, last) = (long(&entry, 32), long(&entry, 40));
        if entry[..16] == [0; 16] || last < first {
            continue;
        }
        partitions.push(Partition {
            number,
            from: first.saturating_mul(sector_bytes),
            len: (last - first)
                .saturating_add(1)
                .saturating_mul(sector_bytes),
        });
    }
    Ok(Some(partitions))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
