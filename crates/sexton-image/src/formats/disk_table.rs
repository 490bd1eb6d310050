//! Partition tables: MBR with its logical partitions, and GPT.

use std::io;

use super::volumes::hyphened;
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
    /// As udev writes it: `PARTUUID=`.
    pub(super) uuid: String,
    /// Its name in a GPT.
    pub(super) label: String,
    /// The type in a GPT, as it is stored.
    sort: [u8; 16],
}

/// Types of partitions that say where they belong, on x86-64 and on ARM64, and everywhere.
///
/// From the Discoverable Partitions Specification of the UAPI group.
const PLACES: &[(&str, &str)] = &[
    ("4f68bce3-e8cd-4db1-96e7-fbcaf984b709", "/"),
    ("b921b045-1df0-41c3-af44-4c6f280d3fae", "/"),
    ("8484680c-9521-48c6-9c11-b0720656f69e", "/usr"),
    ("b0e01050-ee5f-4390-949a-9101b17104e9", "/usr"),
    ("933ac7e1-2eb4-4f13-b844-0e14e2aef915", "/home"),
    ("3b8f8425-20e0-4f3b-907f-1a25a76f98e8", "/srv"),
    ("4d21b016-b534-45c2-a9fb-5c16e091fd2d", "/var"),
];

impl Partition {
    /// Where it belongs by its type.
    pub(super) fn place(&self) -> Option<&'static str> {
        let sort = guid(&self.sort);
        let found = PLACES.iter().find(|(known, _)| *known == sort);
        found.map(|(_, place)| *place)
    }
}

/// A GUID as it is written: its first three parts are stored with the least byte first.
fn guid(raw: &[u8; 16]) -> String {
    const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    hyphened(ORDER.map(|at| format!("{:02x}", raw[at])).concat())
}

/// The first sector of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MasterRecord {
    id: u32,
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
        let id = u32::from_le_bytes(sector[440..444].try_into().expect("four bytes"));
        (flags && any).then_some(Self { id, entries })
    }

    /// Partitions of such a disk have its number and theirs as their name.
    fn partition(&self, number: u32, from: u64, len: u64) -> Partition {
        Partition {
            number,
            from,
            len,
            uuid: format!("{:08x}-{number:02x}", self.id),
            label: String::new(),
            sort: [0; 16],
        }
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
            0x05 | 0x0f | 0x85 => logical(disk, record, from, &mut partitions)?,
            _ => partitions.push(record.partition(number, bytes(from), bytes(n))),
        }
    }
    Ok(partitions)
}

/// A chain of tables, each with one partition and the place of the next table. Places are
/// relative: the partition's to its table, the next table's to the first.
fn logical(
    disk: &Shared,
    main: &MasterRecord,
    first: u32,
    partitions: &mut Vec<Partition>,
) -> io::Result<()> {
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
            let from = (here + u64::from(from)) * 512;
            partitions.push(main.partition(number, from, u64::from(n) * 512));
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
            uuid: guid(entry[16..32].try_into().expect("sixteen")),
            label: label(&entry[56..128]),
            sort: entry[..16].try_into().expect("sixteen"),
        });
    }
    Ok(Some(partitions))
}

/// A name in UTF-16, up to its first zero.
fn label(raw: &[u8]) -> String {
    let units = raw.chunks_exact(2);
    let units = units.map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
    let units: Vec<u16> = units.take_while(|&unit| unit != 0).collect();
    String::from_utf16_lossy(&units)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
