//! Files of systemd's journal, as far as it takes to tell when a unit wrote something, which
//! units failed, and what they wrote last.
//!
//! Source of the format: systemd.io/JOURNAL_FILE_FORMAT and `journal-def.h` of systemd. Each
//! value of a field, such as `_SYSTEMD_UNIT=a.service`, is one object that counts its entries
//! and leads to them, so that a look costs as much as there are units, not entries.

pub mod fuzzing;

use std::io;

use sexton_model::text::escape;

const SIGNATURE: &[u8; 8] = b"LPKSHHRH";
const HEADER_BYTES: usize = 208;

/// Offsets take four bytes instead of eight in files with this flag.
const COMPACT: u32 = 1 << 4;

/// The field that names the unit which wrote an entry.
pub const WRITER: &str = "_SYSTEMD_UNIT";

/// The field by which systemd says what kind of entry it wrote.
pub const MESSAGE_ID: &str = "MESSAGE_ID";

const OBJECT_BYTES: u64 = 16;
const TYPE_DATA: u8 = 1;
const TYPE_FIELD: u8 = 2;
const TYPE_ENTRY: u8 = 3;
const TYPE_ENTRY_ARRAY: u8 = 6;

/// systemd's own table has 333 places of 16 bytes.
const TABLE_BYTES_MAX: u64 = 1 << 20;

/// Field names in one file; a journal has some hundred.
const FIELDS_MAX: usize = 10_000;

/// Values of a field that are told apart in one file.
const VALUES_MAX: usize = 10_000;

/// Arrays of entries double in size, so that few lead to any entry.
const ARRAYS_MAX: usize = 64;

/// The name of a unit has at most 255 bytes.
const PAYLOAD_BYTES_MAX: u64 = 300;

/// Fields of one entry; systemd's own have some thirty.
const ITEMS_MAX: u64 = 256;

/// What is read of a field of an entry. A longer one is cut.
const TEXT_BYTES_MAX: u64 = 512;

/// Where bytes come from.
pub trait Bytes {
    /// Exactly so many bytes from a place on.
    fn at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>>;
}

/// What the head of a file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Which file this is: a new one has another.
    pub file_id: [u8; 16],
    /// Entries of all units.
    pub n_entries: u64,
    is_compact: bool,
    fields: (u64, u64),
}

/// All entries that have one value in a field, such as those of one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entries {
    /// Where the object is that counts them.
    pub offset: u64,
    /// The value, escaped: the name of the unit.
    pub value: String,
    /// How many there are.
    pub n: u64,
    next: u64,
    first: u64,
    array: u64,
}

/// An entry, and when it was written: the boot, and microseconds of its `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Where it is.
    offset: u64,
    /// The boot.
    pub boot_id: [u8; 16],
    /// Microseconds of its `CLOCK_MONOTONIC`.
    pub monotonic_us: u64,
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn number(bytes: &[u8], at: usize) -> io::Result<u64> {
    let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
    word.map(u64::from_le_bytes)
        .ok_or_else(|| malformed("it ends within a number"))
}

fn id(bytes: &[u8], at: usize) -> io::Result<[u8; 16]> {
    let id = bytes.get(at..at + 16).and_then(|id| id.try_into().ok());
    id.ok_or_else(|| malformed("it ends within an id"))
}

impl Header {
    /// Reads the head of a file.
    pub fn read(bytes: &dyn Bytes) -> io::Result<Self> {
        let head = bytes.at(0, HEADER_BYTES)?;
        if !head.starts_with(SIGNATURE) {
            return Err(malformed("it is no file of a journal"));
        }
        let flags = number(&head, 8)? >> 32;
        Ok(Self {
            file_id: id(&head, 24)?,
            n_entries: number(&head, 152)?,
            is_compact: flags & u64::from(COMPACT) != 0,
            fields: (number(&head, 120)?, number(&head, 128)?),
        })
    }

    /// The object of a field; `None` before any entry had it.
    pub fn field(&self, bytes: &dyn Bytes, name: &str) -> io::Result<Option<u64>> {
        let (offset, size) = self.fields;
        if size > TABLE_BYTES_MAX {
            return Err(malformed("its table of fields is too large"));
        }
        let len = usize::try_from(size).map_err(|_| malformed("a table too large"))?;
        let table = bytes.at(offset, len)?;
        let mut n_left = FIELDS_MAX;
        for place in table.chunks_exact(16) {
            let mut next = number(place, 0)?;
            while next != 0 {
                n_left = n_left
                    .checked_sub(1)
                    .ok_or_else(|| malformed("its fields have no end"))?;
                let head = object(bytes, next, TYPE_FIELD, 40)?;
                let len = number(&head, 8)?.saturating_sub(40);
                let is_long_enough = len == name.len() as u64;
                if is_long_enough && bytes.at(next + 40, name.len())? == name.as_bytes() {
                    return Ok(Some(next));
                }
                next = number(&head, 24)?;
            }
        }
        Ok(None)
    }

    /// The values of a field, the newest first, until one is known.
    pub fn values(
        &self,
        bytes: &dyn Bytes,
        field: (u64, &str),
        is_known: &dyn Fn(u64) -> bool,
    ) -> io::Result<Vec<Entries>> {
        let mut found = Vec::new();
        let (offset, name) = field;
        let mut next = number(&object(bytes, offset, TYPE_FIELD, 40)?, 32)?;
        while next != 0 && !is_known(next) {
            if found.len() >= VALUES_MAX {
                return Err(malformed("the values of a field have no end"));
            }
            let entries = self.value(bytes, next, name)?;
            next = entries.next;
            found.push(entries);
        }
        Ok(found)
    }

    /// One value of that field, as it is now.
    pub fn value(&self, bytes: &dyn Bytes, offset: u64, field: &str) -> io::Result<Entries> {
        let head = object(bytes, offset, TYPE_DATA, 64)?;
        let payload = self.payload();
        let len = number(&head, 8)?.saturating_sub(payload);
        if len > PAYLOAD_BYTES_MAX {
            return Err(malformed("a value is too long"));
        }
        let len = usize::try_from(len).map_err(|_| malformed("a value too long"))?;
        let text = bytes.at(offset.saturating_add(payload), len)?;
        let value = value_of(&text, field)
            .ok_or_else(|| malformed("a value is listed under another field"))?;
        Ok(Entries {
            offset,
            value: escape(value),
            n: number(&head, 56)?,
            next: number(&head, 32)?,
            first: number(&head, 40)?,
            array: number(&head, 48)?,
        })
    }

    /// Where the content of a value begins.
    fn payload(&self) -> u64 {
        if self.is_compact { 72 } else { 64 }
    }

    /// How many entries a value has now: the cheapest look there is.
    pub fn n_of(bytes: &dyn Bytes, offset: u64) -> io::Result<u64> {
        number(&bytes.at(offset.saturating_add(56), 8)?, 0)
    }

    /// The last entries with a value, at most `most`, in their order.
    pub fn last(&self, bytes: &dyn Bytes, of: &Entries, most: u64) -> io::Result<Vec<Written>> {
        let from = of.n.saturating_sub(most);
        let mut entries = Vec::new();
        if from == 0 && of.n > 0 {
            entries.push(of.first);
        }
        let width: u64 = if self.is_compact { 4 } else { 8 };
        let (mut array, mut index) = (of.array, 1);
        for _ in 0..ARRAYS_MAX {
            if array == 0 || index >= of.n {
                break;
            }
            let head = object(bytes, array, TYPE_ENTRY_ARRAY, 24)?;
            let room = number(&head, 8)?.saturating_sub(24) / width;
            let begin = from.max(index);
            let end = of.n.min(index.saturating_add(room));
            if begin < end {
                let skipped = (begin - index).saturating_mul(width);
                let place = array.saturating_add(24).saturating_add(skipped);
                let len = usize::try_from((end - begin) * width)
                    .map_err(|_| malformed("an array too large"))?;
                let items = bytes.at(place, len)?;
                entries.extend(items.chunks_exact(width as usize).map(offset_of));
            }
            index = index.saturating_add(room.max(1));
            array = number(&head, 16)?;
        }
        entries
            .into_iter()
            .filter(|entry| *entry != 0)
            .map(|entry| written(bytes, entry))
            .collect()
    }
    /// The given fields of an entry, those that it has, as they are stored. Long ones are cut;
    /// those that are stored compressed, which only long ones are, are left out.
    pub fn texts<'f>(
        &self,
        bytes: &dyn Bytes,
        entry: &Written,
        fields: &[&'f str],
    ) -> io::Result<Vec<(&'f str, Vec<u8>)>> {
        let head = object(bytes, entry.offset, TYPE_ENTRY, 64)?;
        let width: u64 = if self.is_compact { 4 } else { 16 };
        let n = number(&head, 8)?.saturating_sub(64) / width;
        let len = usize::try_from(n.min(ITEMS_MAX) * width)
            .map_err(|_| malformed("an entry too large"))?;
        let items = bytes.at(entry.offset.saturating_add(64), len)?;
        let mut found = Vec::new();
        for item in items.chunks_exact(width as usize) {
            let offset = offset_of(&item[..item.len().min(8)]);
            let head = object(bytes, offset, TYPE_DATA, 16)?;
            let is_plain = head.get(1) == Some(&0);
            let size = number(&head, 8)?.saturating_sub(self.payload());
            if !is_plain {
                continue;
            }
            let size = usize::try_from(size.min(TEXT_BYTES_MAX)).unwrap_or_default();
            let text = bytes.at(offset.saturating_add(self.payload()), size)?;
            for field in fields {
                if let Some(value) = value_of(&text, field) {
                    found.push((*field, value.to_vec()));
                }
            }
        }
        Ok(found)
    }
}

/// What stands behind `FIELD=`.
fn value_of<'a>(text: &'a [u8], field: &str) -> Option<&'a [u8]> {
    let rest = text.strip_prefix(field.as_bytes())?;
    rest.strip_prefix(b"=")
}

fn offset_of(item: &[u8]) -> u64 {
    item.iter()
        .rev()
        .fold(0, |offset, byte| offset << 8 | u64::from(*byte))
}

fn written(bytes: &dyn Bytes, entry: u64) -> io::Result<Written> {
    let head = object(bytes, entry, TYPE_ENTRY, 56)?;
    Ok(Written {
        offset: entry,
        monotonic_us: number(&head, 32)?,
        boot_id: id(&head, 40)?,
    })
}

/// The first bytes of an object of a type.
fn object(bytes: &dyn Bytes, offset: u64, kind: u8, len: usize) -> io::Result<Vec<u8>> {
    if offset < OBJECT_BYTES || !offset.is_multiple_of(8) {
        return Err(malformed("an object is where none can be"));
    }
    let head = bytes.at(offset, len)?;
    match head.first() {
        Some(found) if *found == kind => Ok(head),
        _ => Err(malformed("an object is of another type than it should be")),
    }
}

#[cfg(test)]
mod tests;
