//! rpm's newest database: the table `Packages` of an SQLite file, walked page by page.
//! The file format is described at <https://www.sqlite.org/fileformat2.html>.

use super::rpm::{Database, HEADER_BYTES_MAX};

/// Deeper trees than this cannot be: 2^31 pages of at least 2 children.
const DEPTH_MAX: usize = 40;

struct Pages<'a> {
    database: &'a Database<'a>,
    page_bytes: usize,
    /// Without what is kept free at the end of each.
    usable: usize,
    /// Pages that may still be read: each once, so that a loop ends.
    budget: u64,
}

pub(super) fn read(database: &Database<'_>, each: &mut dyn FnMut(&[u8])) -> Result<(), String> {
    let head = database.bytes(0, 100)?;
    if !head.starts_with(b"SQLite format 3\0") {
        return Err("it is no SQLite file".into());
    }
    let page_bytes = match u16::from_be_bytes([head[16], head[17]]) {
        1 => 65_536,
        n if n >= 512 && n.is_power_of_two() => usize::from(n),
        _ => return Err("its page size cannot be".into()),
    };
    let mut pages = Pages {
        database,
        page_bytes,
        usable: page_bytes - usize::from(head[20]),
        budget: 2 * database.len / page_bytes as u64 + 2,
    };
    // A file beside it holds what was not yet put into this one; only its writer can say
    // which of it counts.
    let mut table = None;
    pages.walk(1, 0, &mut |row| {
        // type, name, tbl_name, rootpage, sql
        let values = record(row);
        if let (Some(Value::Text(name)), Some(Value::Number(page))) = (values.get(1), values.get(3))
            && name == b"Packages"
        {
            table = Some(*page);
        }
    })?;
    let table = table.ok_or("it has no table Packages")?;
    pages.walk(table, 0, &mut |row| {
        if let Some(Value::Text(blob)) = record(row).get(1) {
            each(blob);
        }
    })
}

impl Pages<'_> {
    fn page(&mut self, number: u64) -> Result<Vec<u8>, String> {
        self.budget = self.budget.checked_sub(1).ok_or("its pages loop")?;
        let number = number.checked_sub(1).ok_or("a page 0")?;
        self.database.bytes(
            number.saturating_mul(self.page_bytes as u64),
            self.page_bytes,
        )
    }

    /// Every row of a table's tree, in order.
    fn walk(
        &mut self,
        number: u64,
        depth: usize,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err("its pages loop".into());
        }
        let page = self.page(number)?;
        let at = if number == 1 { 100 } else { 0 };
        let n_cells = usize::from(half(&page, at + 3)?);
        let (header, is_leaf) = match page[at] {
            0x0d => (8, true),
            0x05 => (12, false),
            _ => return Err("a page that belongs to no table".into()),
        };
        for n in 0..n_cells {
            let cell = usize::from(half(&page, at + header + 2 * n)?);
            if is_leaf {
                each(&self.payload(&page, cell)?);
            } else {
                self.walk(u64::from(word(&page, cell)?), depth + 1, each)?;
            }
        }
        if is_leaf {
            Ok(())
        } else {
            self.walk(u64::from(word(&page, at + 8)?), depth + 1, each)
        }
    }

    /// The content of a cell: what is in the page, and the pages it goes on in.
    fn payload(&mut self, page: &[u8], cell: usize) -> Result<Vec<u8>, String> {
        let rest = page.get(cell..).ok_or("a cell beyond its page")?;
        let (len, n) = varint(rest).ok_or("a cell that is cut off")?;
        let (_, m) = varint(&rest[n..]).ok_or("a cell that is cut off")?;
        let len = usize::try_from(len)
            .ok()
            .filter(|len| *len <= HEADER_BYTES_MAX);
        let len = len.ok_or("a row that is too long")?;
        let (usable, local_max) = (self.usable, self.usable.saturating_sub(35));
        let local = if len <= local_max {
            len
        } else {
            let min = (usable - 12) * 32 / 255 - 23;
            let local = min + (len - min) % (usable - 4);
            if local <= local_max { local } else { min }
        };
        let body = n + m;
        let mut content = rest
            .get(body..body + local)
            .ok_or("a cell beyond its page")?
            .to_vec();
        let mut next = if local < len {
            word(rest, body + local)?
        } else {
            0
        };
        while next != 0 && content.len() < len {
            let page = self.page(u64::from(next))?;
            next = word(&page, 0)?;
            let part = (len - content.len()).min(usable - 4);
            content.extend_from_slice(&page[4..4 + part]);
        }
        Ok(content)
    }
}

#[derive(Debug)]
enum Value<'a> {
    Number(u64),
    Text(&'a [u8]),
    Nothing,
}

/// The values of a row.
fn record(row: &[u8]) -> Vec<Value<'_>> {
    let Some((header_len, mut at)) = varint(row) else {
        return Vec::new();
    };
    let mut body = usize::try_from(header_len).unwrap_or(usize::MAX);
    let mut values = Vec::new();
    while at < usize::try_from(header_len).unwrap_or(0) {
        let Some((sort, n)) = row.get(at..).and_then(varint) else {
            break;
        };
        at += n;
        let len = match sort {
            0 | 8 | 9 => 0,
            1..=4 => sort as usize,
            5 => 6,
            6 | 7 => 8,
            _ => usize::try_from((sort.saturating_sub(12)) / 2).unwrap_or(usize::MAX),
        };
        let Some(bytes) = body.checked_add(len).and_then(|end| row.get(body..end)) else {
            break;
        };
        body += len;
        values.push(match sort {
            8 => Value::Number(0),
            9 => Value::Number(1),
            1..=6 => Value::Number(bytes.iter().fold(0, |sum, &b| sum << 8 | u64::from(b))),
            12.. => Value::Text(bytes),
            _ => Value::Nothing,
        });
    }
    values
}

/// A number of seven bits per byte, at most nine bytes.
fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number: u64 = 0;
    for n in 0..9 {
        let byte = *bytes.get(n)?;
        if n == 8 {
            return Some((number << 8 | u64::from(byte), 9));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((number, n + 1));
        }
    }
    None
}

fn half(bytes: &[u8], at: usize) -> Result<u16, String> {
    let found = bytes.get(at..at + 2).ok_or("a number beyond its page")?;
    Ok(u16::from_be_bytes([found[0], found[1]]))
}

fn word(bytes: &[u8], at: usize) -> Result<u32, String> {
    let found = bytes.get(at..at + 4).ok_or("a number beyond its page")?;
    Ok(u32::from_be_bytes([found[0], found[1], found[2], found[3]]))
}
